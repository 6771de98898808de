"""The documents: what they show runs, and what they name exists."""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import re
import shlex
import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]
NAMES = (
    "README.md", "ARCHITECTURE.md", "GLOSSARY.md", "TRUST.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "docs/releasing.md",
)  # fmt: skip
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
EXAMPLES = ("README.md", "docs/guide.md", "docs/command-line.md")
"""The documents whose examples run."""
GENERATED = ("docs/conformance.md", "docs/data.md", "docs/quality.md", "docs/scale.md")
"""Documents with tables that scripts write."""
DOCS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")}
ALL_TEXTS = TEXTS | DOCS

needs_cli = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("click", "rich")), reason="needs the extra cli"
)


def fences(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def code(text: str) -> str:
    """Everything that is set as code, a piece a line."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join(blocks + re.findall(r"`([^`\n]+)`", prose))


# --- what they show -----------------------------------------------------------------------------------


@pytest.mark.parametrize("example", [example for name in EXAMPLES for example in fences(ALL_TEXTS[name], "python")])
def test_python_examples_print_what_they_say(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    said = [line.rpartition("  # ")[2] for line in example.splitlines() if line.startswith("print(")]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == said
    assert said


@pytest.mark.parametrize("session", [session for name in EXAMPLES for session in fences(ALL_TEXTS[name], "console")])
@needs_cli
def test_commands_print_what_they_say(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of their own, one after the other."""
    from foldline.cli import main

    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    for block in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, output = block.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "foldline"
        assert main(arguments) == 0, command
        printed, problems = capsys.readouterr()
        assert not problems
        assert printed.rstrip().splitlines() == output.rstrip().splitlines(), command


@needs_cli
def test_options_are_those_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    from foldline.cli import main

    for command in ("count", "plan", "compact", "check", "restore", "show", "audit", "diff"):
        main([command, "--help"])
    helped = capsys.readouterr().out
    section = TEXTS["README.md"].partition("## On the command line")[2].partition("\n## ")[0]
    named = set(re.findall(r"--[a-z-]+", code(section + DOCS["docs/command-line.md"])))
    assert named
    assert {option for option in named if not re.search(rf"{option}\b", helped)} == set()


@needs_cli
def test_the_picture_is_what_the_demo_prints(tmp_path: Path) -> None:
    """Every line but the one that tells the time. A new one: `.venv-demo/bin/python docs/make_pictures.py`."""
    spec = importlib.util.spec_from_file_location("make_pictures", ROOT / "docs" / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    pictures: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    printed = pictures.record_demo(tmp_path).export_text().splitlines()
    drawn = [html.unescape(text) for text in re.findall(r">([^<>]+)</text>", pictures.PICTURE.read_text("utf-8"))]
    words = {word for line in printed if "written in" not in line for word in line.split()}
    assert words <= {word for text in drawn for word in text.split()}


# --- what they name -------------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """The anchor of a heading, as forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ALL_TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", ALL_TEXTS[name], flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        file = ((ROOT / name).parent / path).resolve() if path else ROOT / name
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert anchor in map(slug, headings), target


def project_files() -> set[str]:
    tops = ("src-rust", "python", "tests", "benches", "docs", "examples", "scripts", "fuzz", "build", ".ci")
    found = {path.relative_to(ROOT).as_posix() for top in tops for path in (ROOT / top).rglob("*")}
    return found | {path.name for path in ROOT.iterdir()}


@pytest.mark.parametrize("name", ALL_TEXTS)
def test_files_that_are_named_exist(name: str) -> None:
    """Files by their whole path or its end, such as `plan/keep.rs`; folders by their whole path."""
    files = project_files()
    named = set(re.findall(r"(?<![\w./*-])[\w./*-]+\.(?:rs|py|pyi|md|toml|svg|lock)\b", code(ALL_TEXTS[name])))
    named |= set(
        re.findall(r"(?<![\w./*-])(?:src-rust|tests|docs|examples|scripts)/[\w./*-]*\w", code(ALL_TEXTS[name]))
    )

    def exists(path: str) -> bool:
        pattern = re.compile("(?:.*/)?" + re.escape(path).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(file) for file in files)

    assert {path for path in named if not exists(path)} == set()


@pytest.mark.parametrize("name", NAMES)
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)", code(TEXTS[name]))) <= targets


@pytest.mark.parametrize("name", NAMES)
def test_cargo_tests_exist(name: str) -> None:
    """`--test integration rules::` runs `tests/rust/rules.rs`."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    tests = {test["name"] for test in manifest["test"]}
    main = (ROOT / "tests" / "rust" / "main.rs").read_text(encoding="utf-8")
    modules = set(re.findall(r"^mod (\w+);", main, flags=re.MULTILINE))
    named = re.findall(r"cargo test [^\n`]*--test (\w+)(?: (\w+)::)?", code(TEXTS[name]))
    assert {test for test, _ in named} <= tests
    assert {module for _, module in named if module} <= modules


def test_the_names_of_the_package_are_those_of_the_table() -> None:
    """About 50, and no more without a row: the others are in the modules."""
    listed = re.findall(r"^\| `fl\.(\w+)` \|", DOCS["docs/api.md"], flags=re.MULTILINE)
    assert sorted(listed) == sorted(fl.__all__)
    assert len(fl.__all__) <= 58


def test_the_names_of_the_modules_exist() -> None:
    listed = re.findall(r"^\| `fl\.(\w+)\.(\w+)` \|", DOCS["docs/api.md"], flags=re.MULTILINE)
    assert listed
    assert [f"{module}.{name}" for module, name in listed if not hasattr(getattr(fl, module), name)] == []


@pytest.mark.parametrize(
    ("row", "literal"),
    [
        ("FoldResult.outcome", fl.typing.Outcome),
        ("formats", fl.typing.Format),
        ("session formats", fl.typing.SessionFormat),
        ("providers", fl.typing.Provider),
        ("Plan.actions", fl.typing.Action),
        ("Counts.kind", fl.typing.CountKind),
        ("origins", fl.typing.Origin),
        ("Compactor(on_failure=…)", fl.typing.FailurePolicy),
    ],
)
def test_closed_lists_are_those_of_the_types(row: str, literal: object) -> None:
    line = re.search(rf"^\| `?{re.escape(row)}`? \| (.*) \|$", DOCS["docs/api.md"], flags=re.MULTILINE)
    assert line is not None
    assert tuple(re.findall(r"`(\w+)`", line[1])) == get_args(literal)


def test_the_reasons_of_a_fold_are_all_listed() -> None:
    line = re.search(r"^\| `FoldResult.reason` \| (.*) \|$", DOCS["docs/api.md"], flags=re.MULTILINE)
    assert line is not None
    assert set(fl.typing.UNCHANGED_REASONS) | {"requested", "seed_rule", "over_floor"} == set(
        re.findall(r"`(\w+)`", line[1])
    )


def public_names() -> list[str]:
    names = [f"fl.{name}" for name in fl.__all__]
    names += [f"fl.errors.{name}" for name in fl.errors.__all__]
    return names + [f"fl.summarizers.{name}" for name in fl.summarizers.__all__]


def test_public_names_are_explained() -> None:
    text = TEXTS["README.md"] + TEXTS["GLOSSARY.md"] + DOCS["docs/api.md"]
    assert [name for name in public_names() if not re.search(rf"(?<![\w.]){re.escape(name)}\b", text)] == []


@pytest.mark.parametrize(("name", "most"), [("README.md", 120), ("ARCHITECTURE.md", 200)])
def test_the_first_documents_are_short(name: str, most: int) -> None:
    assert len(TEXTS[name].splitlines()) <= most


def test_the_index_lists_every_document() -> None:
    folder = {Path(name).name for name in DOCS if Path(name).parent == Path("docs")} - {"README.md"}
    assert folder <= set(re.findall(r"\]\(([\w.-]+\.md)\)", DOCS["docs/README.md"]))


def constants() -> dict[str, set[int]]:
    """The numbers that constants of either language stand for, by name."""
    found: dict[str, set[int]] = {}
    for file in [*(ROOT / "src-rust").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]:
        for match in re.finditer(
            r"\b([A-Z][A-Z_]+)(?:: \w+)? = ([\d_]+)(?: << (\d+))?;?$", file.read_text("utf-8"), re.MULTILINE
        ):
            found.setdefault(match[1], set()).add(int(match[2]) << int(match[3] or 0))
    return found


def test_limits_are_those_of_the_constants() -> None:
    rows = re.findall(r"\| ([\d,]+) \| `([A-Z_]+)` \|$", DOCS["docs/errors.md"], flags=re.MULTILINE)
    assert rows
    known = constants()
    assert [(value, name) for value, name in rows if int(value.replace(",", "")) not in known.get(name, ())] == []


def test_the_changelog_knows_the_version() -> None:
    assert re.search(rf"^## \[{re.escape(fl.__version__)}\]", TEXTS["CHANGELOG.md"], flags=re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in ALL_TEXTS if name not in GENERATED])
def test_lines_are_no_longer_than_120(name: str) -> None:
    """Tables and examples aside."""
    prose = re.sub(r"^```.*?^```$", "", ALL_TEXTS[name], flags=re.DOTALL | re.MULTILINE)
    assert [line for line in prose.splitlines() if len(line) > 120 and not line.startswith(("|", "!["))] == []
