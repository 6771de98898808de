"""The shape of the project: who imports whom, what is public, what a plain import costs."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import foldline as fl

ROOT = Path(__file__).resolve().parents[2]
RUST = ROOT / "src-rust"
PYTHON = ROOT / "python" / "foldline"

# --- Rust -------------------------------------------------------------------------------------------

BASE = {"error", "node", "json", "picture", "transcript"}
MIDDLE = {"formats", "count", "rules", "evidence"}

MAY_IMPORT = {
    "error": set(),
    "node": {"error"},
    "characters": {"node"},
    "json": {"error", "node"},
    "picture": set(),
    "neutral": set(),
    "transcript": {"error", "node", "picture"},
    **dict.fromkeys(MIDDLE, BASE),
    "tally": BASE | {"formats", "count"},
    "plan": BASE | MIDDLE,
    "apply": BASE | MIDDLE | {"plan"},
    "live": BASE | MIDDLE | {"plan"},
    "batch": BASE | MIDDLE | {"neutral", "tally", "plan", "apply"},
    "python": BASE | MIDDLE | {"neutral", "tally", "plan", "apply", "live", "batch", "characters"},
}
"""What each top-level module of the crate may import, itself aside."""

UNSAFE_FILES = {
    "characters.rs", "count/avx2.rs", "count/avx512.rs", "count/engine.rs", "json/blocks.rs", "python/containers.rs",
    "python/held.rs", "python/members.rs", "python/strings.rs",
}  # fmt: skip
"""The reviewed files that may hold `unsafe`; each says why in its own comments."""

OPTIONAL_PACKAGES = {
    "aiolimiter", "anthropic", "click", "genai_prices", "google", "httpx", "httpx2", "jinja2", "langchain_core",
    "openai", "opentelemetry", "psycopg", "pyarrow", "ray", "rich", "sqlalchemy", "stamina", "tiktoken",
    "tokenizers", "yaml", "zstandard",
}  # fmt: skip


def rust_files() -> list[Path]:
    return sorted(RUST.rglob("*.rs"))


def rust_id(file: Path) -> str:
    return file.relative_to(RUST).as_posix()


def code_of(file: Path) -> str:
    """A Rust file without its comments."""
    return re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8"))


def top_module(file: Path) -> str:
    return file.relative_to(RUST).parts[0].removesuffix(".rs")


def imported_modules(code: str) -> set[str]:
    """Top-level modules of the crate that a Rust text names."""
    found = set(re.findall(r"\bcrate::([a-z_]+)", code))
    for group in re.findall(r"\bcrate::\{([^;]*)\};", code):
        found |= set(re.findall(r"(?:^|,)\s*([a-z_]+)", group))
    return found


def test_rust_imports_go_one_way() -> None:
    files = [file for file in rust_files() if top_module(file) != "lib"]
    assert {top_module(file) for file in files} == MAY_IMPORT.keys(), "each top-level module has its place in the table"
    wrong = {}
    for file in files:
        module = top_module(file)
        if found := imported_modules(code_of(file)) - {module} - MAY_IMPORT[module]:
            wrong[rust_id(file)] = found
    assert wrong == {}


def test_the_scan_of_imports_sees_every_way_to_write_them() -> None:
    code = "use crate::plan::Plan;\nuse crate::{count::counter, rules};\nfn f() -> crate::error::Error {}"
    assert imported_modules(code) == {"plan", "count", "rules", "error"}


def test_no_rust_file_climbs_out_of_its_top_level_module() -> None:
    """Else the import rules could be got round. A line that is indented may stand in a module within the file."""
    wrong = []
    for file in rust_files():
        depth = len(file.relative_to(RUST).with_suffix("").parts) - (file.name == "mod.rs")
        for line in code_of(file).splitlines():
            climbs = re.findall(r"(?:super::)+", line)
            wrong += [(rust_id(file), line) for c in climbs if c.count("super") >= depth + line.startswith(" ")]
    assert wrong == []


def test_only_the_bindings_know_python() -> None:
    others = [file for file in rust_files() if top_module(file) != "python"]
    assert [rust_id(f) for f in others if re.search(r"\b(pyo3|numpy)::|crate::python", code_of(f))] == []


def test_the_bindings_are_behind_their_feature() -> None:
    assert re.search(r'#\[cfg\(feature = "python"\)\]\s*mod python;', code_of(RUST / "lib.rs"))


def test_unsafe_stands_only_in_reviewed_files() -> None:
    is_unsafe = re.compile(r"\bunsafe\b|allow\(unsafe_code\)")
    assert {rust_id(file) for file in rust_files() if is_unsafe.search(code_of(file))} == UNSAFE_FILES


def test_every_unsafe_block_says_why_it_is_sound() -> None:
    wrong = []
    for name in sorted(UNSAFE_FILES):
        lines = (RUST / name).read_text(encoding="utf-8").splitlines()
        for i, line in enumerate(lines):
            if not re.search(r"\bunsafe\b", line.partition("//")[0]):
                continue
            # A function says what its caller owes, after its description.
            word, before = ("# Safety", 6) if "unsafe fn" in line else ("SAFETY", 4)
            if not any(word in each for each in lines[max(0, i - before) : i + 1]):
                wrong.append(f"{name}:{i + 1}")
    assert wrong == []


def test_the_crate_denies_unsafe_code() -> None:
    assert 'unsafe_code = "deny"' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")


# --- Python -----------------------------------------------------------------------------------------


def public_files() -> list[Path]:
    """Modules whose names, and whose packages' names, begin with no underscore."""
    paths = [file.relative_to(PYTHON) for file in sorted(PYTHON.rglob("*.py"))]
    is_public = [all(part == "__init__.py" or not part.startswith("_") for part in path.parts) for path in paths]
    return [PYTHON / path for path, public in zip(paths, is_public) if public]


def module_name(file: Path) -> str:
    parts = list(file.relative_to(PYTHON.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_public_module_says_what_it_is_and_what_it_exports() -> None:
    wrong = []
    for file in public_files():
        tree = ast.parse(file.read_text(encoding="utf-8"))
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        exports = any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)
        if not ast.get_docstring(tree) or not exports:
            wrong.append(module_name(file))
    assert wrong == []


def test_every_exported_name_is_there_once() -> None:
    wrong = []
    for module in (importlib.import_module(module_name(file)) for file in public_files()):
        wrong += [f"{module.__name__}.{name}" for name in module.__all__ if not hasattr(module, name)]
        wrong += [f"{module.__name__}.{name}, {n} times" for name, n in Counter(module.__all__).items() if n > 1]
    assert wrong == []


def test_every_public_name_has_a_docstring() -> None:
    names = [name for name in fl.__all__ if name != "__version__"]
    assert [name for name in names if not (inspect.getdoc(getattr(fl, name)) or "").strip()] == []


def described(owner: type) -> Iterator[str]:
    for name, member in vars(owner).items():
        if not name.startswith("_") and (callable(member) or inspect.isdatadescriptor(member)):
            yield name


@pytest.mark.parametrize(
    "owner", [fl.TokenCounter, fl.Counts, fl.TranscriptCounts, fl.Plan], ids=lambda owner: owner.__name__
)
def test_every_member_of_the_compiled_classes_has_a_docstring(owner: type) -> None:
    names = list(described(owner))
    assert names
    assert [name for name in names if not (getattr(owner, name).__doc__ or "").strip()] == []


def test_the_version_is_the_distributions() -> None:
    stated = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert stated
    assert fl.__version__ == stated[1]


def modules_after(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has imported after a statement."""
    code = f"import sys, json; {statement}; print(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout))


def test_a_plain_import_imports_no_optional_package() -> None:
    assert modules_after("import foldline") & OPTIONAL_PACKAGES == set()


def test_counting_planning_folding_and_reading_import_no_optional_package() -> None:
    statement = (
        "import foldline as fl; m = [{'role': 'user', 'content': 'word ' * 400}] * 3; "
        "fl.compact(m, fl.KeepMessages(1)); fl.validate(m, 'openai'); list(fl.read('-'))"
    )
    code = f"import io; sys.stdin = io.TextIOWrapper(io.BytesIO()); {statement}"
    assert modules_after(code) & (OPTIONAL_PACKAGES - {"zstandard"}) == set()


def test_errors_are_one_family() -> None:
    errors = [getattr(fl.errors, name) for name in fl.errors.__all__]
    exceptions = [each for each in errors if not issubclass(each, Warning)]
    assert all(issubclass(each, fl.errors.FoldlineError) for each in exceptions)
    codes = [each.default_code for each in exceptions]
    assert len(set(codes)) == len(codes)


def test_public_submodules_are_modules() -> None:
    assert isinstance(fl.errors, ModuleType)
    assert isinstance(fl.summarizers, ModuleType)


# --- Files ------------------------------------------------------------------------------------------

MACHINE_PATHS = re.compile(
    "|".join(re.escape(str(place)) + r"(?![\w-])" for place in (ROOT, Path.home()) if len(place.parts) > 1)
    + r"|/home/(?!user/)\w+/|/Users/(?!me/)\w+/"
)
"""Where this checkout and its owner live, and homes in general."""

RECORDED = ("examples/data/", "shared/")
"""Sessions of others, published as they are."""


def tracked_files() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.decode().split("\0") if name and not name.startswith(RECORDED)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_no_file_names_a_folder_of_the_machine_it_was_written_on() -> None:
    found = []
    for file in tracked_files():
        if file == Path(__file__).resolve():
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATHS.finditer(text)]
    assert found == []


def test_no_marks_of_unfinished_work() -> None:
    mark = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|todo!\(|unimplemented!\(|dbg!\(")
    files = [*PYTHON.rglob("*.py"), *rust_files()]
    assert [file.relative_to(ROOT) for file in files if mark.search(file.read_text(encoding="utf-8"))] == []
