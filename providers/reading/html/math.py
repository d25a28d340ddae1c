"""Formulas: MathML as TeX where a page gives both, else on one line with the signs that keep numbers apart."""

import re
from collections.abc import Callable
from typing import Final

from providers.reading.cleaning import one_line
from providers.reading.html.code import code_of
from providers.reading.html.rules import Element, beginning_of, is_hidden

TEX: Final = frozenset(("application/x-tex", "application/x-latex", "tex", "latex"))
LEFT_OUT: Final = frozenset(("annotation", "annotation-xml", "mphantom", "none", "mprescripts", "maligngroup"))
LONGEST: Final = 20_000
"""Characters of a formula; more than that is read as words."""
DISPLAY: Final = re.compile(r"\{\\(?:displaystyle|textstyle)\s++(.*)\}", re.DOTALL)
ENVIRONMENT: Final = re.compile(
    r"\\(?:begin|end)\s*\{(?:[bBpvV]?matrix|smallmatrix|cases|array|split|equation|align(?:ed|at)?|gather(?:ed)?)\*?\}"
)
COMMAND: Final = re.compile(r"\\([A-Za-z]+)")
KNOWN: Final = frozenset(
    """
    frac dfrac tfrac cfrac binom sqrt prod coprod oint iint lim limsup liminf infty partial nabla text textbf textit
    textrm textsf texttt mbox mathrm mathbf mathbb mathcal mathit mathsf mathtt mathfrak mathscr boldsymbol
    operatorname left right big bigl bigr Bigl Bigr biggl biggr Biggl Biggr middle langle rangle lfloor rfloor lceil
    rceil lvert rvert lVert rVert quad qquad cdot cdots ldots dots vdots ddots times alpha beta gamma delta epsilon
    varepsilon zeta theta vartheta iota kappa lambda sigma varsigma upsilon varphi omega Gamma Delta Theta Lambda
    Sigma Upsilon Omega approx equiv cong simeq propto leqslant geqslant prec succ subset subseteq supset supseteq
    notin emptyset varnothing setminus cup bigcup bigcap oplus otimes wedge vee lnot forall exists nexists
    rightarrow leftarrow Rightarrow Leftarrow leftrightarrow Leftrightarrow longrightarrow Longrightarrow
    longleftarrow mapsto longmapsto implies iff prime circ bullet star dagger ddagger perp parallel angle triangle
    square overline underline overbrace underbrace widehat widetilde tilde hat bar vec ddot check acute grave breve
    overset underset stackrel substack displaystyle textstyle scriptstyle limits nolimits mathop mathrel mathbin
    bmod pmod mod sinh cosh tanh arcsin arccos arctan argmax argmin hline colon hbar ell aleph Re Im notag nonumber
    sum int sin cos tan log exp max min det dim ker deg gcd inf sup
    """.split()
)
"""Commands of TeX that are no words, or that are seen as what they are called."""
WORD: Final = re.compile(r"[^\W\d_]{4,}")
SHORT: Final = 3
"""Letters of a command that may have any name."""
SINGLE: Final = re.compile(r"\w+|.", re.DOTALL)
"""What needs no brackets as a part of a formula: one number, one name, one sign."""


def formula_of(math: Element) -> str:
    """A formula as text. TeX counts only while it says nothing that the formula does not show."""
    if beginning_of(math, LONGEST) is None:
        return one_line(code_of(math))
    line = one_line(_line(math))
    for note in math.iter("annotation"):
        if (note.get("encoding") or "").lower() in TEX:
            tex = one_line("".join(note.itertext()))
            inner = DISPLAY.fullmatch(tex)
            return (inner[1].strip() if inner else tex) if tex and _is_shown(tex, line) else line
    return line


def _is_shown(tex: str, line: str) -> bool:
    """Whether a source, which readers do not see, has the digits of the formula, which is seen, and no other words."""
    tex = ENVIRONMENT.sub(" ", tex)
    if any(len(name) > SHORT and name not in KNOWN for name in COMMAND.findall(tex)) or _digits(tex) != _digits(line):
        return False
    shown = "".join(line.split())
    return all(word in shown for word in WORD.findall(COMMAND.sub(" ", tex)))


def _digits(text: str) -> list[str]:
    return sorted(filter(str.isdigit, text))


def _line(element: Element) -> str:
    """A part of a formula on one line."""
    tag = element.tag
    if not isinstance(tag, str) or tag in LEFT_OUT or is_hidden(element):
        return ""
    parts = [part for part in element if isinstance(part.tag, str)]
    if not parts:
        return element.text or " " if tag == "mspace" else element.text or ""
    write = WRITTEN.get(tag)
    if write is None or len(parts) < LEAST_PARTS.get(tag, 1):
        return _row(parts)
    return write(parts)


def _row(parts: list[Element]) -> str:
    """Parts side by side; a number beside another one stays apart from it."""
    line = ""
    for part in parts:
        words = _line(part)
        if words and line[-1:].isdigit() and (words[0].isdigit() or part.tag == "mfrac"):
            line += " "
        line += words + (part.tail or "").strip()
    return line


def _one(part: Element) -> str:
    """A part as one: in brackets if it is more than a number, a name or a sign."""
    words = _line(part).strip()
    return words if SINGLE.fullmatch(words) else f"({words})"


def _rows(parts: list[Element]) -> str:
    return "; ".join(filter(None, map(_line, parts)))


def _over(parts: list[Element]) -> str:
    """An accent stands behind its letter, a bound above it."""
    accent = _line(parts[1]).strip()
    return _line(parts[0]) + (accent if parts[1].tag == "mo" and len(accent) == 1 else "^" + _one(parts[1]))


LEAST_PARTS: Final = {
    "msup": 2, "msub": 2, "mfrac": 2, "mroot": 2, "mover": 2, "munder": 2, "msubsup": 3, "munderover": 3,
}  # fmt: skip
WRITTEN: Final[dict[str, Callable[[list[Element]], str]]] = {
    "msup": lambda parts: f"{_one(parts[0])}^{_one(parts[1])}",
    "msub": lambda parts: f"{_one(parts[0])}_{_one(parts[1])}",
    "msubsup": lambda parts: f"{_one(parts[0])}_{_one(parts[1])}^{_one(parts[2])}",
    "mfrac": lambda parts: f"({_line(parts[0]).strip()})/({_line(parts[1]).strip()})",
    "msqrt": lambda parts: f"√({_row(parts)})",
    "mroot": lambda parts: f"√[{_line(parts[1]).strip()}]({_line(parts[0]).strip()})",
    "munder": lambda parts: f"{_line(parts[0])}_{_one(parts[1])}",
    "mover": _over,
    "munderover": lambda parts: f"{_line(parts[0])}_{_one(parts[1])}^{_one(parts[2])}",
    "mtable": _rows,
    "mtr": lambda parts: ", ".join(map(_line, parts)),
    "mlabeledtr": lambda parts: ", ".join(map(_line, parts)),
    "mfenced": lambda parts: f"({', '.join(map(_line, parts))})",
    "mmultiscripts": lambda parts: " ".join(filter(None, map(_line, parts))),
    "semantics": lambda parts: _line(parts[0]),
    "maction": lambda parts: _line(parts[0]),
}
"""How an element with parts is written; all others are their parts side by side."""
