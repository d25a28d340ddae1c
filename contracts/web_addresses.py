"""The identity form of web addresses: spellings that lead to the same page compare as equal, and nothing else does.

Left as they are, because a wrong merge loses a source and a missed one only costs a read (equal content is found
after it): the order of parameters, `http` against `https`, `www.`, a slash at the end, the case of a path.
"""

import re
from functools import lru_cache
from typing import Final

from contracts.unicode_forms import normalize

TRACKING_NAMES: Final = frozenset(
    """__hsfp __hssc __hstc _branch_match_id _ga _gl _hsenc _hsmi _openstat action_object_map action_ref_map
    action_type_map cmpid dclid epik fb_action_ids fb_action_types fb_ref fb_source fbclid gad_campaignid
    gad_source gbraid gclid gclsrc guccounter guce_referrer guce_referrer_sig hsctatracking igsh igshid irclickid
    jsessionid li_fat_id mc_cid mc_eid mkt_tok ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id
    phpsessid rb_clickid ref_src ref_url s_cid s_kwcid srsltid trk trkcampaign ttclid twclid vero_conv vero_id
    wbraid wickedid wt.mc_id xtor yclid ysclid""".split()
)
"""Parameters that say who led to a page or whose visit it is, never which page it is."""

TRACKING_PREFIXES: Final = ("utm_", "mtm_", "pk_", "piwik_", "hsa_", "at_custom", "ns_mchannel", "ns_campaign")
"""The same, for families of names."""

ADDRESS: Final = re.compile(r"(https?)://([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{0,5}))?", re.ASCII)
NOT_IN_A_HOST: Final = re.compile(r"[\x00-\x20\x7f/?#@:\\%\[\]<>^|]")
OTHER_DOTS: Final = re.compile("[。．｡]")
SESSION_IN_PATH: Final = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
IN_PATH: Final = "A-Za-z0-9._~!'()*,:@-"
"""Characters that mean the same with and without their escape: the unreserved ones, and some that part nothing."""
IN_QUERY: Final = IN_PATH.removesuffix("-") + "/?-"
SEPARATORS: Final = "/;=&+$"
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LAST_PORT: Final = 65_535
REMEMBERED: Final = 8_192


def _to_respell(plain: str) -> re.Pattern[str]:
    """Finds what may need another spelling: escapes, and characters that may not stand for themselves."""
    return re.compile(rf"%([0-9A-Fa-f]{{2}})|([^{plain.removesuffix('-')}{SEPARATORS}-])", re.DOTALL)


PATH_SPELLING: Final = (_to_respell(IN_PATH), re.compile(f"[{IN_PATH}]"))
QUERY_SPELLING: Final = (_to_respell(IN_QUERY), re.compile(f"[{IN_QUERY}]"))


@lru_cache(maxsize=REMEMBERED)
def canonical_url(url: str) -> str:
    """The identity form of an http(s) address; anything else, and what cannot be parsed, stays as it is. Never raises.

    Lower-case scheme and host, the host in ASCII without a dot at its end, no default port, user or fragment; escapes
    in one spelling; no dot segments; no tracking parameters. A fragment is never sent to a server, so that what is
    read is the same with every one, `#!` too. Applied twice it changes nothing.
    """
    found = ADDRESS.fullmatch(url)
    if found is None:
        return url
    scheme, authority, path, query = found[1].lower(), found[2], found[3], found[4]
    place = HOST.fullmatch(authority.rpartition("@")[2])
    host = _host(place[1]) if place else ""
    if place is None or not host:
        return url
    port = int(place[2]) if place[2] else DEFAULT_PORTS[scheme]
    if port > LAST_PORT:
        return url
    netloc = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    kept = _query(query or "")
    return f"{scheme}://{netloc}{_path(path)}" + (f"?{kept}" if kept else "")


def host_of(url: str) -> str:
    """The host of an http(s) address in its identity form, without a port; empty for anything else."""
    found = ADDRESS.fullmatch(canonical_url(url))
    place = HOST.fullmatch(found[2]) if found else None
    return place[1] if place else ""


def belongs_to(host: str, domain: str) -> bool:
    """Whether a host is a domain or lies below it, label by label: `notnature.com` does not belong to `nature.com`."""
    return host == domain or host.endswith("." + domain)


def _host(written: str) -> str:
    if written.startswith("["):
        return written.lower()
    if written.isascii() and not NOT_IN_A_HOST.search(written):
        return written.lower().rstrip(".")
    folded = _fold(_fold(OTHER_DOTS.sub(".", written)))
    # A compatibility form may hide a separator (`⁈`): such a host has no identity.
    if NOT_IN_A_HOST.search(folded):
        return ""
    host = folded.rstrip(".")
    try:
        return ".".join(_label(label) for label in host.split("."))
    except UnicodeError:
        return ""


def _fold(text: str) -> str:
    return "".join(map(str.lower, normalize("NFKC", text)))


def _label(label: str) -> str:
    # The modern form (`ß` stays a letter of its own); the older codec of the standard library would merge two sites.
    return label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")


def _path(path: str) -> str:
    kept: list[str] = []
    segments = SESSION_IN_PATH.sub("", _respell(path, *PATH_SPELLING)).split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _query(query: str) -> str:
    pairs = _respell(query, *QUERY_SPELLING).replace("%20", "+").split("&")
    return "&".join(pair for pair in pairs if pair and not _tracks(pair.partition("=")[0].lower()))


def _tracks(name: str) -> bool:
    return name in TRACKING_NAMES or name.startswith(TRACKING_PREFIXES)


def _respell(text: str, doubtful: re.Pattern[str], plain: re.Pattern[str]) -> str:
    """Each character plain or escaped, whichever is its one spelling here."""

    def spell(match: re.Match[str]) -> str:
        if match[1] is not None:
            character = chr(int(match[1], 16))
            return character if plain.fullmatch(character) else "%" + match[1].upper()
        return "".join(f"%{byte:02X}" for byte in match[2].encode("utf-8", "surrogatepass"))

    return doubtful.sub(spell, text)
