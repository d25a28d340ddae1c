"""Which languages each service knows, and how it writes them; from ISO 639 codes."""

from typing import Final

GOOGLE: Final = frozenset(
    "ar bg ca cs da de el en es et fi fr hr hu id is it ja ko lt lv nl no pl pt ro ru sk sl sr sv tr".split()
)
"""Those of its parameter `lr` that are written as ISO 639 does."""
GOOGLE_OWN: Final = {"he": "iw", "nb": "no", "nn": "no", "zh": "zh-CN"}
"""Chinese means simplified characters: one value is taken, and most pages use these."""

BRAVE: Final = frozenset(
    """ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es
    sv ta te th tr uk vi""".split()
)
"""Those of its parameter `search_lang` that are written as ISO 639 does."""
BRAVE_OWN: Final = {"ja": "jp", "no": "nb", "nn": "nb", "pt": "pt-br", "zh": "zh-hans"}

WIKIPEDIAS: Final = frozenset(
    """ab af am an ar as av ay az ba be bg bi bm bn bo br bs ca ce co cr cs cu cv cy da de dv dz ee el en eo es et eu fa
    ff fi fj fo fr fy ga gd gl gn gu gv ha he hi hr ht hu hy ia id ie ig ik io is it iu ja jv ka kg ki kk km kn ko ks
    ku kv kw ky la lb lg li ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no nv ny oc om or os pa pi pl ps pt qu rm
    rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk
    ur uz ve vi vo wa wo xh yi yo za zh zu
    als arz ast bar bcl bug ceb ckb diq fur gor haw hif hsb ilo kab lad lij lmo mai mzn nap nds new nso pag pam pcd pms
    pnb sah scn sco szl tum vec war xal""".split()
)
"""Languages with a Wikipedia whose host begins with the code; others exist, this list is what is asked for."""
WIKIPEDIAS_OWN: Final = {"nb": "no"}


def google_language(code: str) -> str | None:
    """The value for `lr`, or null for a language that it cannot be limited to."""
    own = GOOGLE_OWN.get(code, code if code in GOOGLE else None)
    return None if own is None else f"lang_{own}"


def brave_language(code: str) -> str | None:
    """The value for `search_lang`, or null."""
    return BRAVE_OWN.get(code, code if code in BRAVE else None)


def wikipedia_language(code: str) -> str | None:
    """The first label of the host, or null where there is no Wikipedia that this list knows."""
    own = WIKIPEDIAS_OWN.get(code, code)
    return own if own in WIKIPEDIAS else None
