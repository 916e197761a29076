"""What a change is, and every change that can be made to a source file."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

BINARY = {
    ast.Add: ("+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: ("*", ["/"]),
    ast.Div: ("/", ["*"]),
    ast.FloorDiv: ("//", ["*"]),
    ast.Mod: ("%", ["*"]),
    ast.Pow: ("**", ["*"]),
}
COMPARISONS = {
    ast.Lt: ("<", ["<=", ">="]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<="]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: ("is not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: ("not in", ["in"]),
}
_PAIRS = ["min max", "minimum maximum", "argmin argmax", "any all", "floor ceil", "sin cos", "zeros ones", "inf nan"]
SWAPPED = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
#: What a function that promises a value of some type returns instead.
RETURNED = {"bool": "not ({})", "int": "({}) + 1", "float": "-({})", "FloatArray": "-({})", "BoolArray": "~({})"}


@dataclass(frozen=True)
class Change:
    """One wrong change: characters ``start`` to ``end`` of a file become ``new``.

    ``key`` names it without line numbers, so that it is found again when the lines around it have moved: file,
    function, text of the line, what becomes what, and how many such changes come before it on lines of that text.
    ``lines`` are the first and last line of the statement it is in, ``at`` is its own; ``at_import`` says that it
    runs when the file is imported and not when a function is called.
    """

    path: str
    function: str
    text: str
    what: str
    nth: int
    start: int
    end: int
    new: str
    at: int
    lines: tuple[int, int]
    at_import: bool

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names this change whatever its line numbers are."""
        return self.path, self.function, self.text, self.what, self.nth

    def apply(self, source: str) -> str:
        """Return the changed source."""
        return source[: self.start] + self.new + source[self.end :]

    def matters(self, source: str) -> bool:
        """Return whether what comes out is valid Python and another program."""
        try:
            return ast.dump(ast.parse(self.apply(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False

    def diff(self, source: str) -> str:
        """Return the change as a unified diff."""
        before, after = source.splitlines(keepends=True), self.apply(source).splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}", n=2))


def changes_of(path: str, source: str) -> list[Change]:
    """Return every change to a source file, in order of place."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for change in sorted(_Walk(path, source).of(ast.parse(source)), key=lambda each: (each.start, each.end, each.what)):
        name = (change.function, change.text, change.what)
        found.append(replace(change, nth=seen[name]))
        seen[name] += 1
    return found


class _Walk:
    """Walks a tree and knows in which function and statement it is."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        self.rows = source.splitlines(keepends=True)
        self.offsets = [0]
        for row in self.rows:
            self.offsets.append(self.offsets[-1] + len(row))
        self.scope: list[str] = []
        self.returns, self.at_import = "", True
        self.lines = (1, 1)

    def of(self, tree: ast.Module) -> Iterator[Change]:
        """Yield every change, in the order of the walk."""
        yield from self.body(tree.body)

    def body(self, statements: list[ast.stmt]) -> Iterator[Change]:
        """Yield the changes to a list of statements."""
        for statement in statements:
            if not _is_idle(statement):
                yield from self.statement(statement)

    def statement(self, node: ast.stmt) -> Iterator[Change]:
        """Yield the changes to a statement, its own first."""
        inner = [part for name in ("body", "orelse", "finalbody") for part in getattr(node, name, [])]
        inner += [part for handler in getattr(node, "handlers", []) for part in handler.body]
        last = min((part.lineno for part in inner), default=node.end_lineno + 1) - 1
        self.lines = (node.lineno, max(node.lineno, last))
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from self.definition(node)
            return
        yield from self.whole(node)
        if not isinstance(node, ast.Raise):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr) and child is not getattr(node, "annotation", None):
                    yield from self.expression(child)
                elif isinstance(child, ast.withitem):
                    yield from self.expression(child.context_expr)
        for part in inner:
            yield from self.body([part])

    def definition(self, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Change]:
        """Yield the changes to a function or a class: to its defaults, and to what is in it."""
        outer = self.returns, self.at_import
        self.scope.append(node.name)
        if isinstance(node, ast.FunctionDef):
            self.returns = ast.unparse(node.returns) if node.returns else ""
            for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
                yield from self.expression(default)
            self.at_import = False
        yield from self.body(node.body)
        self.scope.pop()
        self.returns, self.at_import = outer

    def whole(self, node: ast.stmt) -> Iterator[Change]:
        """Yield the changes to a statement as a whole: leave it out, negate its condition, return something else."""
        if isinstance(node, ast.If | ast.While):
            yield from self.negated(node.test)
        elif isinstance(node, ast.Return) and node.value is not None:
            form = RETURNED.get(self.returns, "None")
            yield self.change(node.value, form.format(self.text(node.value)), f"return {form.format('...')}")
        elif isinstance(node, ast.AugAssign):
            sign, others = BINARY.get(type(node.op), ("", []))
            yield from self.tokens(node.target, node.value, f"{sign}=", [f"{other}=" for other in others])
        is_kept = isinstance(node, ast.Assign) and _are_names(node.targets)
        if (
            isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Continue | ast.Break)
            and not is_kept
        ):
            yield self.change(node, "pass", "statement left out")

    def expression(self, node: ast.expr) -> Iterator[Change]:
        """Yield the changes to an expression and to what is in it."""
        if isinstance(node, ast.JoinedStr):
            return
        yield from self.here(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self.expression(child)
            elif isinstance(child, ast.keyword):
                yield from self.expression(child.value)
            elif isinstance(child, ast.comprehension):
                for condition in child.ifs:
                    yield from self.negated(condition)
                for part in [child.iter, *child.ifs]:
                    yield from self.expression(part)

    def here(self, node: ast.expr) -> Iterator[Change]:
        """Yield the changes to an expression itself."""
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            sign, others = BINARY[type(node.op)]
            for change in self.tokens(node.left, node.right, sign, others):
                # A power binds more tightly than what takes its place.
                yield self.wrapped(change, node) if sign == "**" else change
        elif isinstance(node, ast.Compare):
            for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield from self.tokens(left, right, *COMPARISONS[type(operator)])
        elif isinstance(node, ast.BoolOp):
            sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                for change in self.tokens(left, right, sign, [other]):
                    yield self.wrapped(change, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            word = {ast.Not: "not", ast.USub: "-", ast.Invert: "~"}[type(node.op)]
            yield self.change(node, f"({self.text(node.operand)})", f"{word} left out")
        elif isinstance(node, ast.IfExp):
            yield from self.negated(node.test)
        elif isinstance(node, ast.Call):
            yield from self.keywords(node)
        elif isinstance(node, ast.Constant):
            yield from self.constants(node)
        elif isinstance(node, ast.Name) and node.id in SWAPPED:
            yield self.change(node, SWAPPED[node.id], f"{node.id} -> {SWAPPED[node.id]}")
        elif isinstance(node, ast.Attribute) and node.attr in SWAPPED:
            end = self.position(node.end_lineno, node.end_col_offset)
            what = f"{node.attr} -> {SWAPPED[node.attr]}"
            yield self.span(end - len(node.attr), end, SWAPPED[node.attr], what, node.end_lineno)

    def negated(self, condition: ast.expr) -> Iterator[Change]:
        """Yield the opposite of a condition, where no change of its operator is that."""
        if not _is_plain(condition):
            yield self.change(condition, f"not ({self.text(condition)})", "condition negated")

    def constants(self, node: ast.Constant) -> Iterator[Change]:
        """Yield other numbers in place of a number, and the other truth."""
        value = node.value
        others: list[object] = []
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, int):
            others = [value + 1, value - 1] if abs(value) < 10 else [value + 1, value * 2, 0]
        elif isinstance(value, float):
            # Twice a tolerance is mostly no change that physics can see.
            others = [value * (2 if abs(value) > 1e-6 else 1e6), 0.0] if value else [1.0]
        for other in others:
            yield self.change(node, repr(other), f"{value!r} -> {other!r}")

    def keywords(self, node: ast.Call) -> Iterator[Change]:
        """Yield the call without each of its keyword arguments."""
        for keyword in node.keywords:
            if keyword.arg in (None, "strict"):
                continue
            start = self.position(keyword.lineno, keyword.col_offset)
            end = self.position(keyword.end_lineno, keyword.end_col_offset)
            rest = self.source[end:]
            comma = len(rest) - len(rest.lstrip()) + 1 if rest.lstrip().startswith(",") else 0
            yield self.span(start, end + comma, "", f"{keyword.arg}= left out", keyword.lineno)

    def tokens(self, left: ast.expr, right: ast.expr, sign: str, others: list[str]) -> Iterator[Change]:
        """Yield the change of an operator between two expressions, found among the tokens between them."""
        start = self.position(left.end_lineno, left.end_col_offset)
        between = self.source[start : self.position(right.lineno, right.col_offset)]
        first, *more = sign.split()
        # Brackets and comments lie between the two as well.
        bare = "".join(_blank(line) for line in between.splitlines())
        for token in tokenize.generate_tokens(io.StringIO(bare.strip() + "\n").readline):
            if token.string == first:
                offset = start + len(bare) - len(bare.lstrip()) + token.start[1]
                length = len(first) if not more else self.source.index(more[-1], offset) + len(more[-1]) - offset
                for other in others:
                    yield self.span(offset, offset + length, other, f"{sign} -> {other}", self.line_of(offset))
                return

    def wrapped(self, change: Change, node: ast.expr) -> Change:
        """Put brackets round the expression that a change is in."""
        start = self.position(node.lineno, node.col_offset)
        end = self.position(node.end_lineno, node.end_col_offset)
        new = f"({self.source[start : change.start]}{change.new}{self.source[change.end : end]})"
        return replace(change, start=start, end=end, new=new)

    def change(self, node: ast.expr | ast.stmt, new: str, what: str) -> Change:
        """Return the change of a node into new text."""
        start = self.position(node.lineno, node.col_offset)
        return self.span(start, self.position(node.end_lineno, node.end_col_offset), new, what, node.lineno)

    def span(self, start: int, end: int, new: str, what: str, line: int) -> Change:
        """Return the change of some characters into new text."""
        text, function = self.rows[line - 1].strip(), ".".join(self.scope) or "module"
        return Change(self.path, function, text, what, 0, start, end, new, line, self.lines, self.at_import)

    def text(self, node: ast.expr) -> str:
        """Return the text of an expression."""
        return ast.get_source_segment(self.source, node) or ast.unparse(node)

    def position(self, line: int, column: int) -> int:
        """Return the number of the character at a line and a column, which Python counts in bytes."""
        row = self.rows[line - 1] if line <= len(self.rows) else ""
        return self.offsets[line - 1] + len(row.encode()[:column].decode())

    def line_of(self, offset: int) -> int:
        """Return the line that a character is on."""
        return self.source.count("\n", 0, offset) + 1


def _blank(line: str) -> str:
    """Return a line with its comment, its brackets and its end blanked."""
    code, mark, comment = line.partition("#")
    return code.replace("(", " ").replace(")", " ") + " " * (len(mark) + len(comment) + 1)


def _is_plain(node: ast.expr) -> bool:
    """Return whether negating a condition is no change of its own, since the change of its operator is that already."""
    return (isinstance(node, ast.Compare) and len(node.ops) == 1) or _is_negation(node)


def _is_negation(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _are_names(targets: list[ast.expr]) -> bool:
    """Return whether an assignment only gives names, without which nothing after it would run."""
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return all(isinstance(part, ast.Name | ast.Starred) for part in parts)


def _is_idle(node: ast.stmt) -> bool:
    """Return whether a statement does nothing when the library runs: a docstring, an import, a public list, a type."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    names = {target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)}
    return bool(names & {"__all__"})
