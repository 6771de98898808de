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


def test_the_glossary_can_be_parsed() -> None:
    terms = {term: (rust, python) for term, rust, python in entries()}
    assert terms["fingerprint"] == ({"fingerprint"}, {"fingerprint"})
    assert terms["tool call"] == ({"PartKind::ToolCall"}, set())
    assert terms["store"] == (set(), {"SessionStore"})


def test_declarations_are_distinguished_from_comments() -> None:
    code = without_comments(
        "/// Holds a Ghost.\npub struct Real {\n    pub size_bytes: u32,\n}\nenum E {\n    One,\n}\n"
    )
    assert declared_in_rust(code) >= {"Real", "size_bytes", "One"}
    assert "Ghost" not in declared_in_rust(code)


def test_every_term_is_explained_once() -> None:
    terms = [term for term, _, _ in entries()]
    assert len(terms) == len(set(terms))


def test_every_identifier_in_the_glossary_exists() -> None:
    rust, python = declared_in_rust(without_comments(RUST)), declared_in_python(PYTHON)
    assert [name for _, names, _ in entries() for name in names if not set(name.split("::")) <= rust] == []
    assert [name for _, _, names in entries() for name in names if name not in python] == []


#: Names that were replaced, and may not come back: the old one, and the name to use.
REPLACED_IN_RUST = {
    "GoOn": "Interrupt",
    "go_on": "check",
    "may_go_on": "check",
    "count_upto": "count_up_to",
    "Recall": "MessageCache",
    "Recalling": "Cached",
    "LOOK_UPS": "PROBES",
    "Asked": "Probe",
    "Rare": "MissMask",
    "Common": "ShortTokens",
    "Homes": "HomeLines",
    "PATIENCE": "MAX_COMPARES_PER_BYTE",
    "LaidBy": "MemoPool",
    "Loan": "MemoGuard",
    "Desk": "Scratch",
    "Huge": "LargeTable",
    "Crew": "WorkQueue",
    "Gathered": "TextRefs",
    "Estimate": "LengthSum or AutoState",
    "Trust": "Accuracy",
    "Beside": "ToolPlacement",
    "Around": "MessageFraming or FoldContext",
    "Wanted": "KeySet",
    "Signs": "ByteMasks or NameHash",
    "Ahead": "Cursor",
    "Made": "Overlay",
    "EntryNode": "TapeList",
    "Listener": "Detector",
    "hear": "observe",
    "Heard": "Observed",
    "Otherwise": "Redetect",
    "Judge": "Candidates",
    "Said": "Hints",
    "Known": "PartType",
    "Knot": "TreeEntry",
    "Strand": "PartialTurn",
    "Weaver": "TurnBuilder",
    "Left": "AbandonedBranch",
    "Growing": "Incremental",
    "settle": "update",
    "Ledger": "PrefixSums or CommandRuns",
    "Standing": "Foldability or Constraints",
    "Subject": "PlanInput",
    "Shrinker": "Shortener",
    "Choice": "Baseline",
    "LastResort": "TailClearing",
    "Verdict": "ResultStatus",
    "neutralise": "sanitize or escape_section_tags",
    "take_up": "commit_pending",
    "enrol": "push",
    "weigh": "update_overhead",
    "afresh": "reset",
    "Marks": "Annotations",
    "breathe": "yield_gil",
    "Met": "KeyCache",
}
REPLACED_IN_PYTHON = {
    "may_go_on": "check",
    "neutralise": "sanitize",
    "ask": "request_summary",
    "Works": "Task",
    "Ticket": "CommitToken",
    "give_up": "abandon",
    "_told": "_subscribers",
    "Telling": "ProgressSink",
    "Room": "OutputBudget",
    "Ask": "ModelCall",
    "Words": "PromptTexts",
    "stretches": "chunks",
    "private_loop": "background_loop",
    "sweep": "remove_stale",
    "around_tokens": "overhead_tokens",
    "limit_tokens": "threshold_tokens",
    "NoProgress": "CompactionResult",
    "output_reserve_tokens": "reserve_tokens",
}
REPLACED_CODES = {
    "two_keeps": "conflicting_keeps",
    "two_answers": "multiple_choices",
    "summary_over_room": "summary_over_limit",
    "unknown_end": "unknown_finish_reason",
    "damaged": "corrupt",
}


def words_of_rust(code: str) -> set[str]:
    """Every identifier outside comments and strings."""
    token = r"""//[^\n]*|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|'(?:\\[^']+|[^\\'])'"""
    return set(re.findall(r"\w+", re.sub(token, " ", code, flags=re.DOTALL)))


def test_replaced_names_are_gone() -> None:
    rust, python = words_of_rust(RUST), declared_in_python(PYTHON)
    assert {old: new for old, new in REPLACED_IN_RUST.items() if old in rust} == {}
    assert {old: new for old, new in REPLACED_IN_PYTHON.items() if old in python} == {}


def test_replaced_codes_are_gone() -> None:
    text = without_comments(RUST) + PYTHON
    assert {old: new for old, new in REPLACED_CODES.items() if f'"{old}"' in text} == {}


def test_the_names_in_use_exist() -> None:
    rust, python = words_of_rust(RUST), declared_in_python(PYTHON)
    in_use = {name for new in REPLACED_IN_RUST.values() for name in new.split(" or ")}
    assert in_use - rust - {"Constraints", "CommandRuns"} == set()
    assert set(REPLACED_IN_PYTHON.values()) <= python
