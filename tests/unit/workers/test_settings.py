"""The configuration: where values come from, who wins, what is refused, and what is never shown."""

import json
from pathlib import Path

import pytest

from contracts.presets import preset
from contracts.request import Depth
from contracts.vocabulary import Tier
from providers.extractive import semantic
from workers.settings import sections
from workers.settings.loading import FILE_NAME, Flags, Settings, SettingsError, load_settings

KEY = "sk-ant-this-is-the-secret"


class Places:
    """A folder of anybody and the user's configuration folder."""

    def __init__(self, folder: Path) -> None:
        self.here, self.user = folder / "here", folder / "user"
        for place in (self.here, self.user):
            place.mkdir()

    def write(self, place: Path, text: str) -> Path:
        path = place / FILE_NAME
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, flags: Flags | None = None, **environment: str) -> Settings:
        return load_settings(flags, environment=environment, user_folder=self.user)

    def problems(self, flags: Flags | None = None, **environment: str) -> str:
        with pytest.raises(SettingsError) as raised:
            self.load(flags, **environment)
        return str(raised.value)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_flags_beat_environment_beats_files_beat_defaults(places: Places) -> None:
    """Each value comes from the nearest place that sets it, key by key."""
    places.write(places.user, 'retention_days = 1\n[models]\nsimple = "u"\nanalytical = "u"\ncomplex = "u"\n')
    named = places.write(places.here, '[models]\nsimple = "h"\nanalytical = "h"\n')
    settings = places.load(Flags(config=named), RESEARCH_MODEL_SIMPLE="e", ANTHROPIC_BASE_URL="http://localhost:1/")
    assert settings.models.by_tier() == {"simple": "e", "analytical": "h", "complex": "u"}
    assert settings.retention_days == 1
    flagged = places.load(Flags(model="f", model_url="https://m.example"), RESEARCH_MODEL_SIMPLE="e")
    assert set(flagged.models.by_tier().values()) == {"f"}
    assert flagged.model_host == "m.example"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("modles = 1", "modles: unknown key"),
        ('[corpus.a]\npath = "x"\ninclud = []', "corpus.a.includ: unknown key"),
        ('[corpus."../a"]\npath = "x"', "corpus.../a: must be at most 64 letters"),
        ("[strategy.supervisor.light]\nmax_itertions = 1", "strategy.supervisor.light.max_itertions: unknown key"),
        ("[strategy.supervisor.light]\nmax_iterations = 0", "strategy.supervisor.light.max_iterations: Input should"),
        ("[search.requests_per_minute]\ntavily = 5e-324", "search.requests_per_minute.tavily: Input should be greater"),
        ("[models.endpoints.x]\nwindow = 9000", "models.endpoints: x.base_url: missing"),
        ('[models.endpoints.x]\nbase_url = "http://h"\nkey = "k"', "models.endpoints.x.key: unknown key"),
        ('[models.endpoints."Not A Name"]\nbase_url = "http://h"', "models.endpoints.Not A Name"),
        ("[models.prices.m]\ninput = -3\noutput = 1", "models.prices.m.input: Input should be greater than or equal"),
        ("[tokens]\ntoken_safty_margin = 0.2", "tokens.token_safty_margin: unknown key: is token_safety_margin meant?"),
        ("[tokens]\ntoken_safety_margin = 1", "tokens.token_safety_margin: Input should be less than 1"),
        ('anthropic_api_key = "x"', "anthropic_api_key: unknown key"),
        ('[search.mcp.wiki]\ncomand = ["x"]', "search.mcp.wiki.comand: unknown key: is command meant?"),
        ('[search.mcp.wiki]\ntitle = "x"', "search.mcp.wiki.title: unknown key"),
        ('[search.mcp.wiki]\nsearch_tool = "x"', "search.mcp.wiki: name either the `command` of a program or"),
        ('[search.mcp.wiki]\ncommand = ["x"]\nurl = "http://h"', "search.mcp.wiki: name either the `command` of a"),
        ('[search.mcp.wiki]\ncommand = ["x"]\nheaders = {a = "B"}', "search.mcp.wiki: `headers` are for a `url`"),
        ('[search.mcp.wiki]\nurl = "http://h"\nenvironment = ["B"]', "search.mcp.wiki: `environment` is for a"),
        ('[search.mcp."A b"]\ncommand = ["x"]', "search.mcp.A b: String should match"),
        ('[search.mcp.wiki.fields]\nqery = "q"', "search.mcp.wiki.fields.qery: unknown key: is query meant?"),
        ('[search]\nproviders = ["mcp.wiki"]', "search.providers: no search provider is called mcp.wiki"),
        ("[models", "Expected"),
        ("[runs]\nat_once = true", "runs.at_once: must be a number, not true or false"),
        ("[limits.ceiling]\nmax_cost_usd = false", "limits.ceiling.max_cost_usd: must be a number, not true or false"),
        ("[budgets.tenants]\na = true", "budgets.tenants: must be a number, not true or false"),
        ("[models.prices.m]\ninput = true\noutput = 1", "models.prices.m.input: must be a number, not true or false"),
    ],
)
def test_what_a_file_may_not_say_is_refused_with_its_place(places: Places, text: str, line: str) -> None:
    """A misspelt or impossible key ends the start with the file, the path and no value."""
    path = places.write(places.user, text)
    assert f"{path}: {line}" in places.problems()


@pytest.mark.parametrize("text", ["#" * 100_001, "a." * 10_000 + "b = 1", "web = " + "[" * 50_000, '"a\\u001b[2J" = 1'])
def test_a_file_is_bounded_and_drives_no_terminal(places: Places, text: str) -> None:
    """One that is too large or too deep is refused in one line; control characters of names are not printed."""
    problems = places.problems(Flags(config=places.write(places.here, text)))
    assert len(problems.splitlines()) == 1
    assert len(problems) < 500
    assert "\x1b" not in problems


@pytest.mark.parametrize(
    ("environment", "configured", "reason"),
    [
        ({"ANTHROPIC_API_KEY": KEY}, False, "no model is named: set RESEARCH_MODEL or give --model"),
        ({"RESEARCH_MODEL": "m"}, False, "no endpoint: set ANTHROPIC_API_KEY, OPENAI_API_KEY, or an address"),
        ({"RESEARCH_MODEL": "m", "ANTHROPIC_API_KEY": KEY}, True, "at api.anthropic.com"),
        ({"RESEARCH_MODEL": "m", "ANTHROPIC_BASE_URL": "http://u:p@localhost:8080/v1"}, True, "at localhost:8080"),
    ],
)
def test_a_model_is_configured_by_name_and_key_or_address(
    places: Places, environment: dict[str, str], configured: bool, reason: str
) -> None:
    """A key in the environment is no decision to send text away: a model has to be named."""
    settings = places.load(**environment)
    assert settings.model_configured is configured
    assert reason in settings.model_reason
    assert bool(settings.notices()) is not configured


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"RESEARCH_MODEL": "d"}, ("d", "d", "d")),
        ({"RESEARCH_MODEL": "d", "RESEARCH_MODEL_COMPLEX": "c"}, ("d", "d", "c")),
        ({"RESEARCH_MODEL_SIMPLE": "s", "RESEARCH_MODEL_COMPLEX": "c"}, ("s", "c", "c")),
        ({"RESEARCH_MODEL_SIMPLE": "s"}, ("s", "s", "s")),
    ],
)
def test_a_tier_without_a_name_takes_the_next(
    places: Places, named: dict[str, str], expected: tuple[str, str, str]
) -> None:
    """A tier's own model, else the default, else a more demanding tier's, else any."""
    models = places.load(**named).models
    assert tuple(models.names_for(tier)[0] for tier in Tier) == expected


@pytest.mark.parametrize("variable", ["TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"])
def test_a_named_cluster_replaces_the_embedded_engine(places: Places, variable: str) -> None:
    """Any variable that names a cluster decides; others of Temporal do not."""
    assert places.load(**{variable: "x"}).uses_cluster
    assert not places.load(TEMPORAL_NAMESPACE="x").uses_cluster


SECRETS = {
    "ANTHROPIC_API_KEY": KEY,
    "TAVILY_API_KEY": "tavily-secret",
    "RESEARCH_ENDPOINT_OWN_KEY": "endpoint-secret",
    "TEMPORAL_API_KEY": "temporal-secret",
    "REDIS_URL": "redis://u:redis-secret@h",
    "SEARXNG_URL": "https://me:searxng-secret@search.example",
    "ANTHROPIC_BASE_URL": "https://u:model-secret@h/v1?token=model-secret",
    "RESEARCH_CONTENT_URL": "s3://u:content-secret@bucket/x",
}


def test_secrets_are_never_shown(places: Places) -> None:
    """No description holds one, and no representation a key; the log's redaction knows keys and passwords."""
    places.write(places.user, '[models.endpoints.own]\nbase_url = "http://127.0.0.1:1"\n')
    settings = places.load(TEMPORAL_ADDRESS="h:1", RESEARCH_MODEL="m", **SECRETS)
    assert "secret" not in json.dumps(settings.describe())
    keys = [value for name, value in SECRETS.items() if name.endswith("_KEY")]
    assert not any(key in repr(settings) for key in (*keys, "redis-secret"))
    assert {*keys, "searxng-secret"} <= set(settings.secrets())
    assert settings.describe()["models"]["base_url"] == "https://h/v1"


def test_workers_that_resolve_a_request_alike_have_the_same_mark(places: Places) -> None:
    """Digest and mark ignore folders and the values of keys; the mark tells which keys there are."""
    named = {"RESEARCH_MODEL": "m"}
    one = places.load(**named, ANTHROPIC_API_KEY=KEY)
    same = places.load(**named, ANTHROPIC_API_KEY="another", RESEARCH_HOME="/elsewhere")
    assert (one.digest(), one.mark()) == (same.digest(), same.mark())
    assert places.load(RESEARCH_MODEL="other").digest() != one.digest()
    marks = {one.mark(), places.load(**named).mark(), places.load().mark(), places.load(TAVILY_API_KEY="key").mark()}
    assert len(marks) == 4
    places.write(places.user, '[corpus.a]\npath = "a"\n')
    assert places.load(**named).digest() != one.digest()


def test_folders_of_a_file_are_relative_to_it(places: Places) -> None:
    """A corpus path means the same folder from wherever a command is run."""
    places.write(places.user, 'home = "data"\n[corpus.a]\npath = "docs"\nlanguage = "de"\n')
    settings = places.load(Flags(config=places.write(places.here, '[corpus.b]\npath = "docs"\n')))
    assert settings.home == places.user / "data"
    assert settings.corpus["a"].path == places.user / "docs"
    assert settings.corpus["b"].path == places.here / "docs"


def test_operators_presets_replace_single_values(places: Places) -> None:
    """A preset of the file changes what it names; the rest stays as documented (X-24)."""
    extended = "max_sources = 3\nmax_new_sources = 7\ndeadline_seconds = 60\nreserve_seconds = 45\n"
    light = "max_sources = 3\nreserve_seconds = 9\n"
    places.write(places.user, f"[strategy.supervisor.light]\n{light}[strategy.supervisor.extended]\n{extended}")
    settings = places.load()
    base = preset("supervisor", Depth.LIGHT)
    changed = settings.preset("supervisor", Depth.LIGHT)
    assert (changed.max_sources, changed.max_new_sources, changed.reserve_seconds) == (3, 3, 9)
    assert changed.max_iterations == base.max_iterations
    explicit = settings.preset("supervisor", Depth.EXTENDED)
    assert (explicit.max_new_sources, explicit.reserve_seconds) == (7, 45), "an explicit value is used as written"
    assert settings.preset("supervisor", Depth.AUTO) == preset("supervisor", Depth.MEDIUM)


def test_a_file_of_the_working_directory_is_not_read(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloned folder may contain a stranger's: neither a model nor a host nor anything invalid in it counts."""
    monkeypatch.chdir(places.here)
    for text in ('[models]\ndefault = "planted"\n[web]\nallow_hosts = ["planted:80"]\n', "no configuration"):
        places.write(places.here, text)
        assert (places.load().models.default, places.load().web.allow_hosts) == (None, [])


def test_a_named_file_is_read_over_the_users_own(places: Places) -> None:
    """By flag, which wins, or by variable."""
    places.write(places.user, "retention_days = 7\n[search]\nmax_results_per_query = 3\n")
    named = places.write(places.here, "[search]\nmax_results_per_query = 4\n")
    for flags, variable in ((None, named), (Flags(config=named), places.user / "nothing.toml")):
        settings = places.load(flags, RESEARCH_CONFIG=str(variable))
        assert (settings.retention_days, settings.search.max_results_per_query) == (7, 4)
    assert "there is no such file" in places.problems(RESEARCH_CONFIG=str(places.user / "nothing.toml"))


FIRECRAWL = '[web.firecrawl]\nurl = "{}"\n'


def test_a_browser_of_a_service_has_an_address_and_a_key(places: Places) -> None:
    """The key is a secret, and goes in clear to no other machine; the address is part of what shapes a run."""
    places.write(places.user, FIRECRAWL.format("https://user@api.firecrawl.test/"))
    settings = places.load(FIRECRAWL_API_KEY="fc-planted")
    assert "fc-planted" in settings.secrets()
    assert settings.describe()["web"]["firecrawl"]["url"] == "https://api.firecrawl.test/"
    places.write(places.user, FIRECRAWL.format("http://firecrawl.test:3002"))
    assert "FIRECRAWL_API_KEY would be sent in clear" in places.problems(FIRECRAWL_API_KEY="fc-planted")
    assert places.load().digest() != settings.digest()
    places.write(places.user, FIRECRAWL.format("http://127.0.0.1:3002"))
    assert places.load(FIRECRAWL_API_KEY="fc-planted").web.firecrawl is not None


def test_ranking_by_meaning_is_used_where_its_extra_is_installed(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Auto follows the installation, false switches it off, true without the extra is refused with the command."""
    digests = {places.load(RESEARCH_SEMANTIC_RANKING=value).digest() for value in ("", "auto", "true")}
    assert len(digests) == 1
    off = places.load(RESEARCH_SEMANTIC_RANKING="false")
    assert off.digest() not in digests
    assert [places.load().ranks_by_meaning, off.ranks_by_meaning] == [True, False]
    assert (
        places.problems(RESEARCH_SEMANTIC_RANKING="maybe") == "RESEARCH_SEMANTIC_RANKING: must be true, false or auto"
    )
    monkeypatch.setattr(semantic, "NEEDED", ("a_package_that_nobody_has",))
    assert not places.load().ranks_by_meaning
    line = places.problems(RESEARCH_SEMANTIC_RANKING="true")
    assert line.startswith("RESEARCH_SEMANTIC_RANKING: ")
    assert "pip install 'durable-research[semantic]', or set ranking.semantic = false" in line


def test_traces_need_their_extra_and_a_safe_way(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off by default; the header is a secret and crosses no network in clear; without the extra the command is named."""
    assert places.load().tracing.endpoint is None
    plain = places.load().digest()
    settings = places.load(
        RESEARCH_TRACING_ENDPOINT="http://user:planted@127.0.0.1:4318/otlp", RESEARCH_TRACING_HEADER="X-Key: hidden-key"
    )
    assert settings.tracing_headers() == {"X-Key": "hidden-key"}
    assert {"X-Key: hidden-key", "hidden-key"} <= set(settings.secrets())
    assert settings.describe()["tracing"]["endpoint"] == "http://127.0.0.1:4318/otlp"
    assert settings.digest() == plain, "it shapes no run"
    far = {"RESEARCH_TRACING_ENDPOINT": "http://collector.example.org:4318"}
    assert places.load(**far).tracing.endpoint
    assert "RESEARCH_TRACING_HEADER would be sent in clear" in places.problems(
        **far, RESEARCH_TRACING_HEADER="X-Key: hidden-key"
    )
    assert "write it as Name: value" in places.problems(**far, RESEARCH_TRACING_HEADER="hidden-key")
    monkeypatch.setattr(sections, "TRACING_PACKAGES", ("a_package_that_nobody_has.part",))
    assert places.problems(**far) == (
        "RESEARCH_TRACING_ENDPOINT: the extra `tracing` is not installed: pip install 'durable-research[tracing]'"
    )
