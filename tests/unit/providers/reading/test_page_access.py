"""Pages that hold their content back are recognized, and articles that only speak of it are not."""

import pytest

from contracts.vocabulary import PageAccess
from providers.reading.page_signals import phrases
from providers.reading.web_page import extract_web_html

PROSE = (
    "Autovacuum visits each table that has seen enough changes. It removes dead rows, freezes old ones and renews the "
    "statistics on which plans are built. Each worker sleeps when its cost limit is reached, so that other queries keep "
    "their share of the disk. "
)


def access_of(
    body: str, *, title: str = "Vacuum | Site", head: str = "", url: str = "http://site.test/a"
) -> PageAccess:
    """What a page with this body is taken for."""
    return extract_web_html(f"<html><head><title>{title}</title>{head}</head><body>{body}</body></html>", url).access


def paragraphs(characters: int) -> str:
    """Paragraphs of prose."""
    return f"<p>{PROSE}</p>" * (characters // len(PROSE) + 1)


def linked_data(free: str, kind: str = "NewsArticle") -> str:
    """JSON-LD that says whether an article is free."""
    return (
        f'<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "{kind}", '
        f'"isAccessibleForFree": {free}}}</script>'
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (paragraphs(300) + "<p>Subscribe to continue reading. Already a subscriber? Log in</p>", PageAccess.PAYWALL),
        (paragraphs(300) + "<p>Jetzt weiterlesen mit unserem Abo. Sie sind bereits Abonnent?</p>", PageAccess.PAYWALL),
        (paragraphs(300) + "<p>Cet article est réservé aux abonnés. Déjà abonné ?</p>", PageAccess.PAYWALL),
        (paragraphs(300) + "<p>Suscríbete para seguir leyendo. ¿Ya eres suscriptor?</p>", PageAccess.PAYWALL),
        (paragraphs(300) + "<p>Contenuto riservato agli abbonati</p>", PageAccess.PAYWALL),
        (paragraphs(300) + "<p>Alleen voor abonnees</p>", PageAccess.PAYWALL),
        (paragraphs(1_500) + "<div class='c-paywall'><p>This story is for subscribers.</p></div>", PageAccess.PAYWALL),
        (paragraphs(300) + "<dialog open><button>Subscribe to unlock</button></dialog>", PageAccess.PAYWALL),
        (("<h1>Before you continue to Search</h1><p>We use cookies and data to deliver services.</p>"
         "<button>Accept all</button>"), PageAccess.CONSENT_WALL),
        ("<p>Wir und unsere 142 Partner speichern Daten auf Ihrem Gerät.</p><button>Alle akzeptieren</button>",
         PageAccess.CONSENT_WALL),
        ("<p>Nous et nos partenaires utilisons des traceurs.</p><button>Tout accepter</button>", PageAccess.CONSENT_WALL),
        ("<p>Utilizamos cookies propias y de terceros.</p><button>Aceptar y continuar</button>", PageAccess.CONSENT_WALL),
        ("<p>Sorry, the page you are looking for has moved or never was.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Seite nicht gefunden</h1><p>Vielleicht hilft die Suche.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Page introuvable</h1><p>Retournez à l’accueil.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Página no encontrada</h1><p>Vuelva al inicio.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>404</h1><ul>" + "<li><a href=/x>Another article that you may like</a></li>" * 40 + "</ul>",
         PageAccess.SOFT_NOT_FOUND),
        ("<noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div><script src=a.js></script>",
         PageAccess.SCRIPT_REQUIRED),
        ("<p>Bitte aktivieren Sie JavaScript in Ihrem Browser.</p>", PageAccess.SCRIPT_REQUIRED),
        ("<p>Veuillez activer JavaScript pour voir cette page.</p>", PageAccess.SCRIPT_REQUIRED),
        ("<p>Por favor, habilite JavaScript para continuar.</p>", PageAccess.SCRIPT_REQUIRED),
        ("<div id=__next><p>Loading…</p></div><script src=/_next/main.js></script>", PageAccess.SCRIPT_REQUIRED),
        (("<h1>Sign in</h1><form><label>Email</label><input name=e><label>Password</label><input type=password>"
         "<p>Forgot your password?</p></form>"), PageAccess.LOGIN_REQUIRED),
        ("<p>Sie müssen angemeldet sein, um dieses Thema zu sehen.</p>", PageAccess.LOGIN_REQUIRED),
        ("<p>Vous devez vous connecter pour voir ce sujet.</p>", PageAccess.LOGIN_REQUIRED),
        ("<p>Debes iniciar sesión para ver este tema.</p>", PageAccess.LOGIN_REQUIRED),
        ("<h1>site.test</h1><p>Checking your browser before accessing the site.</p>", PageAccess.BOT_CHECK),
        ("<p>Bestätigen Sie, dass Sie ein Mensch sind.</p>", PageAccess.BOT_CHECK),
        ("<p>Je ne suis pas un robot</p>", PageAccess.BOT_CHECK),
        ("<p>Verifica que eres humano para continuar.</p>", PageAccess.BOT_CHECK),
        ("<p>Enable JavaScript and cookies to continue</p><script src='/cdn-cgi/challenge-platform/x.js'></script>",
         PageAccess.BOT_CHECK),
    ],
)  # fmt: skip
def test_pages_that_hold_their_content_back_are_recognized(body: str, expected: PageAccess) -> None:
    """Offers, walls, notices and checks in several languages, each for what it is (X-20)."""
    assert access_of(body) is expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Just a moment...", PageAccess.BOT_CHECK),
        ("Attention Required! | Cloudflare", PageAccess.BOT_CHECK),
        ("Page Not Found – The Site", PageAccess.SOFT_NOT_FOUND),
        ("Erreur 404 - Le site", PageAccess.SOFT_NOT_FOUND),
        ("Log in | Site", PageAccess.LOGIN_REQUIRED),
        ("Vacuum | Site", PageAccess.OPEN),
    ],
)
def test_a_title_that_is_nothing_but_a_notice_says_it(title: str, expected: PageAccess) -> None:
    """With hardly any text below it."""
    assert access_of("<p>One short line.</p>", title=title) is expected


@pytest.mark.parametrize(
    "mention",
    [
        "Readers are told to subscribe to continue reading, and most of them leave.",
        "Before you continue to the results, sites say that we value your privacy and ask you to accept all cookies.",
        "The server answers: page not found, the page you requested could not be found.",
        "Some pages ask you to enable JavaScript in your browser; JavaScript is required there.",
        "You must be logged in to change a table; please sign in first. Forgot your password?",
        "Checking your browser: verify you are human, are you a robot? Unusual traffic from your network.",
    ],
)
@pytest.mark.parametrize("place", ["first", "last"])
def test_long_articles_may_speak_of_it(mention: str, place: str) -> None:
    """An article about paywalls, robots or missing pages is an article, wherever it says so."""
    prose = paragraphs(2_700)
    body = f"<p>{mention}</p>{prose}" if place == "first" else f"{prose}<p>{mention}</p>"
    assert access_of(body) is PageAccess.OPEN


@pytest.mark.parametrize(
    "body",
    [
        "<p>The notice says “Subscribe to continue reading” and nothing else.</p>",
        "<p>Python raises this error. " + PROSE + "</p><pre>page not found: please log in, enable javascript</pre>",
        "<h1>404 Not Found</h1>" + paragraphs(1_000),
        "<h1>Sign in with a token</h1>"
        + paragraphs(400)
        + "<p>Forgot your password? An administrator can reset it.</p>",
        paragraphs(500) + "<div class='cookie-banner'><p>We use cookies.</p><button>Accept all cookies</button></div>",
        paragraphs(500)
        + "<noscript>Please enable JavaScript for the best experience.</noscript><script src=a.js></script>",
        paragraphs(500) + "<form><input type=password></form>",
        "<div id=app>" + paragraphs(300) + "</div><script src=a.js></script>",
        paragraphs(600) + "<div class=g-recaptcha></div>",
        paragraphs(3_000) + "<div class=paywall><p>Subscribe to read more of this kind.</p></div>",
    ],
)
def test_short_pages_that_are_about_it_or_show_enough_are_open(body: str) -> None:
    """Quotes, code, banners beside the content, and headings that name a status are no walls."""
    assert access_of(body) is PageAccess.OPEN


def test_what_publishers_declare_decides_about_teasers() -> None:
    """`isAccessibleForFree` counts where the text is short or stops at an offer; a free article is no offer's teaser."""
    offer = "<p>Subscribe to continue reading.</p>"
    assert access_of(paragraphs(1_000), head=linked_data("false")) is PageAccess.PAYWALL
    assert access_of(paragraphs(1_000), head=linked_data('"False"', "Article")) is PageAccess.PAYWALL
    assert access_of(paragraphs(4_000) + offer, head=linked_data("false")) is PageAccess.PAYWALL
    assert access_of(paragraphs(4_000), head=linked_data("false")) is PageAccess.OPEN
    assert access_of(paragraphs(9_000) + offer, head=linked_data("false")) is PageAccess.OPEN
    assert access_of(paragraphs(400) + offer, head=linked_data("true")) is PageAccess.OPEN
    assert access_of(paragraphs(1_000), head=linked_data("false", "Product")) is PageAccess.OPEN
    assert (
        access_of(paragraphs(1_000), head="<meta property='article:content_tier' content=locked>") is PageAccess.PAYWALL
    )


def test_a_host_for_consent_is_a_wall() -> None:
    """Where a redirect ended at a page that only asks for consent."""
    body = "<p>Some words about how much data is worth.</p>"
    assert access_of(body, url="https://consent.site.test/m?continue=x") is PageAccess.CONSENT_WALL
    assert access_of(body) is PageAccess.OPEN


def test_an_application_without_text_gives_its_notice() -> None:
    """What it says to those who run no scripts is the text, so that nobody takes it for an unreadable page."""
    page = extract_web_html(
        "<body><noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>"
        "<script src=a.js></script></body>",
        "http://site.test/",
    )
    assert (page.text, page.access) == ("You need to enable JavaScript to run this app.", PageAccess.SCRIPT_REQUIRED)


def test_the_phrases_are_written_as_they_are_compared() -> None:
    """Lower case, plain apostrophes, no spaces around; every kind has phrases in four languages at least."""
    for part in ("said", "weak", "stops", "called", "marks"):
        for words in phrases(part).values():
            assert all(phrase == phrase.casefold().strip() and phrase and "’" not in phrase for phrase in words)
    assert phrases("said").keys() == set(PageAccess) - {PageAccess.OPEN}
    assert all(len(set(words)) >= 15 for words in phrases("said").values())


TEASER = f"<article><p>{PROSE}{PROSE}</p>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (TEASER + "<h2>Thanks for reading.</h2><p>Create your free account or log in to continue reading.</p>",
         PageAccess.PAYWALL),
        (TEASER + "<div class=c-paywall><p>You have 82% of this article left to read.</p></div>", PageAccess.PAYWALL),
        (TEASER + "<h2>Access options</h2><p>Buy article PDF 39,95 €</p>", PageAccess.PAYWALL),
        (TEASER + "<p>Already a subscriber? Log in</p><dialog open>3 free articles left</dialog>", PageAccess.PAYWALL),
        (TEASER + "<div class=paywall><p>Already a subscriber? Log in</p></div>", PageAccess.PAYWALL),
        (TEASER + "<p>Доступно только подписчикам.</p>", PageAccess.PAYWALL),
        (TEASER + "<p>Pozostało 85% artykułu. Dostęp dla prenumeratorów.</p>", PageAccess.PAYWALL),
        (TEASER + "<p>Vill du läsa vidare? Prenumerera för att läsa hela artikeln.</p>", PageAccess.PAYWALL),
        (TEASER + "<p>この記事は有料会員限定です。残り1234文字</p>", PageAccess.PAYWALL),
        (TEASER + "<p>订阅后继续阅读全文。</p>", PageAccess.PAYWALL),
        (TEASER + "<p>Register for free to continue reading</p>", PageAccess.LOGIN_REQUIRED),
        ("<p>The article you requested is no longer available.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Welcome to nginx!</h1><p>If you see this page, it works.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>500 Internal Server Error</h1><p>Contact the administrator.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<p>Our site is currently undergoing scheduled maintenance.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>site.test</h1><p>This domain may be for sale.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>451: Unavailable due to legal reasons</h1><p>The GDPR is enforced.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Страница не найдена</h1><p>Вернитесь на главную.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<p>Przepraszamy, strona nie istnieje.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<p>Sidan kunde inte hittas.</p>", PageAccess.SOFT_NOT_FOUND),
        ("<p>お探しのページは削除されたか、移動しました。</p>", PageAccess.SOFT_NOT_FOUND),
        ("<p>抱歉，您访问的页面不存在。</p>", PageAccess.SOFT_NOT_FOUND),
        ("<h1>Too Many Requests</h1><p>Try again.</p>", PageAccess.BOT_CHECK),
        ("<p>当サイトではCookieを使用しています。続行するには同意してください。</p>", PageAccess.CONSENT_WALL),
        ("<p>Мы используем файлы cookie.</p><button>Принять все</button>", PageAccess.CONSENT_WALL),
        ("<p>Для работы сайта включите JavaScript.</p>", PageAccess.SCRIPT_REQUIRED),
        ("<p>JavaScriptを有効にしてください。</p>", PageAccess.SCRIPT_REQUIRED),
        ("<p>Loading...</p><div id=content></div><script src=a.js></script>", PageAccess.SCRIPT_REQUIRED),
    ],
)  # fmt: skip
def test_notices_of_other_kinds_and_languages_are_recognized(body: str, expected: PageAccess) -> None:
    """Teasers with other words, errors that are sent as pages, and what is said in more languages (X-20)."""
    assert access_of(body) is expected


@pytest.mark.parametrize(
    "body",
    [
        (
            f"<h1>How to fix a 404</h1><p>{PROSE}A 404 page not found error appears when the page you requested could not"
            " be found.</p>"
        ),
        (
            f"<h1>FAQ</h1><p>This site works without scripts. {PROSE}</p><h2>Does it need scripts?</h2>"
            "<p>No, but to edit the table you must enable JavaScript in your browser.</p><script>1</script>"
        ),
        TEASER + "<p>Already a subscriber? Log in to manage your newsletter.</p>",
        TEASER + "<p>Readers were told to subscribe to continue reading until now.</p>",
        TEASER + "<p>Please sign in to leave a comment.</p>",
        (
            f"<h1>Bad gateways</h1><p>{PROSE}Then the proxy answers with a bad gateway, or the service is temporarily"
            " unavailable.</p>"
        ),
    ],
)
def test_a_phrase_that_is_neither_first_nor_most_of_a_page_is_no_notice(body: str) -> None:
    """Short pages that mention it by the way show their content."""
    assert access_of(body) is PageAccess.OPEN
