"""The glossary names code that exists, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

RUST = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "src-rust").rglob("*.rs")))
PYTHON = "\n".join(
    file.read_text(encoding="utf-8") for pattern in ("*.py", "*.pyi") for file in (ROOT / "python").rglob(pattern)
)


def without_comments(rust: str) -> str:
    return re.sub(r"//[^\n]*", "", rust)


def declared_in_rust(code: str) -> set[str]:
    """Items, fields and enum variants."""
    items = re.findall(r"\b(?:struct|enum|trait|fn|const|static|type|mod)\s+(\w+)", code)
    return {*items, *re.findall(r"^\s*(?:pub(?:\([\w: ]+\))? )?(\w+)(?:: |,$|\(|\s*\{)", code, flags=re.MULTILINE)}


def declared_in_python(code: str) -> set[str]:
    """Modules, classes, functions, variables, attributes and parameters."""
    modules = {file.stem for file in (ROOT / "python").rglob("*.py")}
    return {*modules, *re.findall(r"\b(?:class|def)\s+(\w+)", code), *re.findall(r"\b(\w+)\s*[:=]", code)}


def entries() -> list[tuple[str, set[str], set[str]]]:
    """The terms with their identifiers in Rust and in Python."""
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\) *\| *", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    found = []
    for row in rows:
        term, _, rust, python = (*row, "", "")[:4]
        found.append((term, set(re.findall(r"`([^`]+)`", rust)), set(re.findall(r"`([^`]+)`", python))))
    return [entry for entry in found if entry[0] != "term"]


def test_the_glossary_is_read() -> None:
    terms = {term: (rust, python) for term, rust, python in entries()}
    assert terms["fingerprint"] == ({"fingerprint"}, {"fingerprint"})
    assert terms["tool call"] == ({"PartKind::ToolCall"}, set())
    assert terms["store"] == (set(), {"SessionStore"})


def test_declarations_are_told_from_comments() -> None:
    code = without_comments(
        "/// Holds a Ghost.\npub struct Real {\n    pub size_bytes: u32,\n}\nenum E {\n    One,\n}\n"
    )
    assert declared_in_rust(code) >= {"Real", "size_bytes", "One"}
    assert "Ghost" not in declared_in_rust(code)


def test_every_term_is_explained_once() -> None:
    terms = [term for term, _, _ in entries()]
    assert len(terms) == len(set(terms))


def test_what_the_glossary_names_exists() -> None:
    rust, python = declared_in_rust(without_comments(RUST)), declared_in_python(PYTHON)
    assert [name for _, names, _ in entries() for name in names if not set(name.split("::")) <= rust] == []
    assert [name for _, _, names in entries() for name in names if name not in python] == []
