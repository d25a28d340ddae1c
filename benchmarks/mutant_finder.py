"""Small changes of a Python file, one at a time: a comparison, a number, a text, an argument, a call left out."""

import ast
import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
IN_ANY_ORDER: Final = ("max", "min", "clamp", "same_query")
"""Mean the same with their first arguments in another order."""
CACHES: Final = ("cache", "lru_cache")
"""A function that remembers is run by whichever test needs it first."""

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one expression or statement."""

    path: str
    kind: str
    line: int
    end_line: int
    start: int
    """Offset in the file's bytes."""
    end: int
    text: str
    """What stands there instead."""
    in_function: bool
    """Whether it is run when a test calls it; else when the file is imported, whichever test did that first."""

    def apply(self) -> tuple[str, str]:
        """The file before and after."""
        before = (ROOT / self.path).read_bytes()
        return before.decode(), (before[: self.start] + self.text.encode() + before[self.end :]).decode()

    def diff(self) -> str:
        """The change, one line of context."""
        before, after = (text.splitlines() for text in self.apply())
        return "\n".join(difflib.unified_diff(before, after, self.path, self.kind, n=1, lineterm=""))

    def place(self) -> str:
        """What it is known by while the file stays as it is."""
        return f"{self.path}:{self.start}-{self.end} {self.text}"

    def key(self) -> str:
        """What it is known by while the file around it changes: the lines as they were, and what is new."""
        before, _ = self.apply()
        lines = " ".join(" ".join(before.splitlines()[self.line - 1 : self.end_line]).split())
        return f"{self.path}: {self.kind}: {lines} -> {self.text}"


class Finder(ast.NodeVisitor):
    """Every mutant of a file."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.found: list[Mutant] = []
        self._depth = 0
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.visit(ast.parse(source))

    def _add(self, kind: str, node: Any, text: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        self.found.append(
            Mutant(self.path, kind, node.lineno, node.end_lineno, start, end, text, in_function=self._depth > 0)
        )

    def _instead(self, kind: str, node: ast.expr, **changed: Any) -> None:
        """The same node with other fields."""
        fields = {name: getattr(node, name) for name in node._fields} | changed
        self._add(kind, node, f"({ast.unparse(type(node)(**fields))})")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """What stands within has no place of its own in Python 3.11."""
        self._add("text", node, '""')

    def visit_Constant(self, node: ast.Constant) -> None:
        """The other truth value, the next number, no text where there is one."""
        if isinstance(node.value, bool):
            self._add("boolean", node, str(not node.value))
        elif isinstance(node.value, (int, float)):
            self._add("number", node, repr(node.value + 1))
        elif isinstance(node.value, str):
            self._add("text", node, '""' if node.value else '"mutant"')

    def visit_Compare(self, node: ast.Compare) -> None:
        """`<=` for `<`, `!=` for `==`, and so on."""
        for place, operator in enumerate(node.ops):
            ops = [*node.ops]
            ops[place] = COMPARISONS[type(operator)]()
            self._instead("comparison", node, ops=ops)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`or` for `and`."""
        self._instead("boolean", node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Without `not`, without a minus sign."""
        if isinstance(node.op, (ast.Not, ast.USub)):
            self._add("boolean" if isinstance(node.op, ast.Not) else "arithmetic", node, ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """`-` for `+`, and so on."""
        if type(node.op) in ARITHMETIC:
            self._instead("arithmetic", node, op=ARITHMETIC[type(node.op)]())
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The first two arguments change places; each keyword is dropped; types are left alone."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "TypeVar":
            return
        ordered = name not in IN_ANY_ORDER
        if ordered and len(node.args) > 1 and not any(isinstance(one, ast.Starred) for one in node.args[:2]):
            self._instead("swapped arguments", node, args=[node.args[1], node.args[0], *node.args[2:]])
        # `zip(strict=True)` raises only where a fault elsewhere made the lengths differ.
        changed = [keyword for keyword in node.keywords if (name, keyword.arg) != ("zip", "strict")]
        for dropped in changed:
            self._instead("dropped keyword", node, keywords=[one for one in node.keywords if one is not dropped])
        for part in (node.func, *node.args, *changed):
            self.visit(part)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other value."""
        self._instead("condition", node, test=ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """The other branch."""
        self._add("condition", node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Everything is kept."""
        for test in node.ifs:
            self._add("condition", test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Nothing comes back."""
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("return", node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """What is called for its effect is not called."""
        if isinstance(node.value, (ast.Call, ast.Await)):
            self._add("removed call", node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)  # a docstring is no constant

    def visit_Assign(self, node: ast.Assign) -> None:
        """A field keeps its value; what a module exports is read by nobody."""
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return
        if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self._add("removed assignment", node, "pass")
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A sum keeps its value."""
        self._add("removed assignment", node, "pass")
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Its value alone, not its type."""
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Their defaults alone, not their types."""
        for default in (*node.defaults, *(given for given in node.kw_defaults if given is not None)):
            self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Neither decorators nor types."""
        self.visit(node.args)
        once = any(name in ast.unparse(decorator) for decorator in node.decorator_list for name in CACHES)
        self._depth += not once
        for statement in node.body:
            self.visit(statement)
        self._depth -= not once

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its body alone; that of a protocol never runs."""
        if "Protocol" in map(ast.unparse, node.bases):
            return
        for statement in node.body:
            self.visit(statement)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Likewise."""
        self.visit_FunctionDef(node)
