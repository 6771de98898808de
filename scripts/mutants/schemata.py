"""All mutants of a file in one source: each is next to the original and switched on by its number.

One build instead of one for each mutant. `a < b` becomes `if mutant::on(7) { (a) == (b) } else { a < b }`. Mutants that
do not compile in this form are left out here, and built alone.
"""

from __future__ import annotations

from collections import defaultdict

import tree_sitter
import tree_sitter_rust
from mutants import Mutant

Node = tree_sitter.Node
_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
_BASE = "base_field_initializer"
_OF_ITERATORS = "::std::iter::"


def on(number: int) -> str:
    """The Rust expression that is true while a mutant is on."""
    return f"crate::mutant::on({number})"


def parsed(source: bytes) -> Node:
    """The root of the syntax tree of a Rust source."""
    return _PARSER.parse(source).root_node


def mutated(source: bytes, mutants: list[Mutant]) -> tuple[str, set[int]]:
    """The source with the mutants in it, and the numbers of those that it contains."""
    writer = _Writer(source, mutants)
    root = parsed(source)
    text = source[: root.start_byte].decode() + writer.written(root) + source[root.end_byte :].decode()
    # A switch is read at run time.
    return text.replace("const fn ", "fn "), writer.done


def _has_let(node: Node) -> bool:
    """Whether a condition binds names: such a chain allows neither `||` nor parentheses."""
    if node.type in ("let_condition", "let_chain"):
        return True
    return any(_has_let(child) for child in node.children if child.type not in ("closure_expression", "block"))


class _Writer:
    def __init__(self, source: bytes, mutants: list[Mutant]) -> None:
        self.source = source
        self.done: set[int] = set()
        self.at: dict[str, dict[int, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
        for mutant in mutants:
            self.at[mutant.genre][mutant.start].append(mutant)

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode()

    def take(self, mutants: list[Mutant]) -> list[Mutant]:
        self.done.update(mutant.number for mutant in mutants)
        return mutants

    def written(self, node: Node) -> str:
        """The text of a node with all mutants in it."""
        how = {
            "binary_expression": self.operator,
            "compound_assignment_expr": self.operator,
            "unary_expression": self.negation,
            "match_pattern": self.guard,
            "match_arm": self.arm,
            "field_initializer": self.field,
            "shorthand_field_initializer": self.field,
            "block": self.body,
        }.get(node.type, self.plain)
        return how(node)

    def plain(self, node: Node, start: int | None = None) -> str:
        """The text from an offset on, with the mutants of the children in it."""
        place = node.start_byte if start is None else start
        out = []
        for child in node.children:
            if child.start_byte < place:
                continue
            out += [self.source[place : child.start_byte].decode(), self.written(child)]
            place = child.end_byte
        return "".join(out) + self.source[place : node.end_byte].decode()

    def operator(self, node: Node) -> str:
        operator, left, right = node.children[1], node.child_by_field_name("left"), node.child_by_field_name("right")
        text = self.plain(node)
        if left is None or right is None or _has_let(node):
            return text
        found = self.take(self.at["BinaryOperator"].get(operator.start_byte, []))
        for mutant in found:
            other = f"({self.text(left)}) {mutant.replacement} ({self.text(right)})"
            text = f"if {on(mutant.number)} {{ {other} }} else {{ {text} }}"
        return f"({text})" if found and node.type == "binary_expression" else text

    def negation(self, node: Node) -> str:
        text = self.plain(node)
        found = self.take(self.at["UnaryOperator"].get(node.start_byte, []))
        for mutant in found:
            text = f"if {on(mutant.number)} {{ {self.text(node.children[1])} }} else {{ {text} }}"
        return f"({text})" if found else text

    def guard(self, node: Node) -> str:
        condition = node.child_by_field_name("condition")
        if condition is None or _has_let(condition):
            return self.plain(node)
        text = self.written(condition)
        for mutant in self.take(self.at["MatchArmGuard"].get(condition.start_byte, [])):
            switch = on(mutant.number)
            text = f"({switch} || ({text}))" if mutant.replacement == "true" else f"(!{switch} && ({text}))"
        return self.source[node.start_byte : condition.start_byte].decode() + text

    def arm(self, node: Node) -> str:
        found = self.at["MatchArm"].get(node.start_byte, [])
        pattern = node.child_by_field_name("pattern")
        if not found or pattern is None:
            return self.plain(node)
        condition = pattern.child_by_field_name("condition")
        if condition is not None and _has_let(condition):
            return self.plain(node)
        stays = " && ".join(f"!{on(mutant.number)}" for mutant in self.take(found))
        head = self.guard(pattern)
        if condition is None:
            head = f"{head} if {stays}"
        else:
            before = self.source[pattern.start_byte : condition.start_byte].decode()
            head = f"{before}({stays} && ({head.removeprefix(before)}))"
        before = self.source[node.start_byte : pattern.start_byte].decode()
        return before + head + self.plain(node, pattern.end_byte)

    def field(self, node: Node) -> str:
        """A deleted field takes the value of the base of the struct expression."""
        bases = [other for other in (node.parent.children if node.parent else ()) if other.type == _BASE]
        if not bases:
            return self.plain(node)
        value = node.child_by_field_name("value")
        name, text = self.text(node.children[0]), self.written(value or node.children[0])
        for mutant in self.take(self.at["StructField"].get(node.start_byte, [])):
            other = f"({self.text(bases[0]).removeprefix('..')}).{name}"
            text = f"if {on(mutant.number)} {{ {other} }} else {{ {text} }}"
        return f"{name}: {text}"

    def body(self, node: Node) -> str:
        text = self.plain(node)
        if node.parent is None or node.parent.type != "function_item":
            return text
        mine = [mutant for start, found in self.at["FnValue"].items() if node.start_byte <= start < node.end_byte
                for mutant in found if self.function_of(node, start) == node]  # fmt: skip
        iterators = self.take([mutant for mutant in mine if mutant.replacement.startswith(_OF_ITERATORS)])
        if iterators:
            text = f"{{ let found = {text}; {self.other_items(iterators)} }}"
        others = self.take([mutant for mutant in mine if not mutant.replacement.startswith(_OF_ITERATORS)])
        returns = [f"if {on(mutant.number)} {{ return {mutant.replacement}; }}" for mutant in others]
        return "{ " + " ".join(returns).replace("return ();", "return;") + text[1:]

    @staticmethod
    def other_items(mutants: list[Mutant]) -> str:
        """All alternatives to `found`, an iterator of an unnameable type, as one type."""
        choice = "None"
        for mutant in mutants:
            some = f"Some({mutant.replacement}.collect::<Vec<_>>())"
            choice = f"if {on(mutant.number)} {{ {some} }} else {{ {choice} }}"
        return (
            f"let instead = {choice}; let keep = instead.is_none(); "
            "instead.into_iter().flatten().chain(found.filter(move |_| keep))"
        )

    @staticmethod
    def function_of(node: Node, start: int) -> Node | None:
        """The body of the innermost function around an offset."""
        inner = node.descendant_for_byte_range(start, start)
        while inner is not None:
            if inner.type == "block" and inner.parent is not None and inner.parent.type == "function_item":
                return inner
            inner = inner.parent
        return None
