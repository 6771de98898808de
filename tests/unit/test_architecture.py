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

CHAIN = [
    "error", "meter", "media", "sanitize", "node", "json", "transcript", "formats", "count", "rules", "evidence",
    "plan", "prepared", "fold", "batch", "python",
]  # fmt: skip
"""The top-level modules of the crate. Each may import those before it."""

LEAVES = {"error", "meter", "media", "sanitize"}
"""Modules that import no other."""

MAY_IMPORT: dict[str, set[str]] = {
    name: set() if name in LEAVES else set(CHAIN[:place]) for place, name in enumerate(CHAIN)
}
"""What each top-level module of the crate may import, itself aside."""

MAX_FILES = 20
"""The most files of a folder."""

UNSAFE_FILES = {
    "count/simd/avx2.rs",
    "count/simd/avx512.rs",
    "count/simd/dispatch.rs",
    "json/simd.rs",
    "python/node/c_api.rs",
}
"""The reviewed files that may hold `unsafe`; each says why in its own comments."""

OPTIONAL_PACKAGES = {
    "agents", "aiolimiter", "anthropic", "click", "crewai", "genai_prices", "google", "httpx", "httpx2", "jinja2",
    "langchain", "langchain_core", "langgraph", "litellm", "openai", "opentelemetry", "psycopg", "pyarrow",
    "pydantic_ai", "ray", "rich", "sqlalchemy", "stamina", "strands", "tiktoken", "tokenizers", "yaml",
    "zstandard",
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


def rust_module(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(RUST).with_suffix("").parts
    return () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts


def without_tests(code: str) -> str:
    return re.sub(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*?\n\}", "", code, flags=re.DOTALL)


def split_top_level(text: str) -> list[str]:
    """Splits at the commas that stand in no braces."""
    items, depth = [""], 0
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            items.append("")
        else:
            items[-1] += char
    return [item.strip() for item in items if item.strip()]


def paths_in(tree: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of a use tree, each with the name that it binds."""
    head, brace, rest = tree.partition("{")
    if brace:
        prefix = tuple(part.strip() for part in head.split("::") if part.strip())
        for item in split_top_level(rest[: rest.rindex("}")]):
            for path, name in paths_in(item):
                full = prefix if path == ("self",) else (*prefix, *path)
                yield full, full[-1] if name == "self" else name
    else:
        written, _, alias = tree.partition(" as ")
        path = tuple(part.strip() for part in written.split("::"))
        yield path, alias.strip() or path[-1]


Imports = dict[tuple[str, ...], list[tuple[tuple[str, ...], str, bool]]]


def uses_of(sources: dict[tuple[str, ...], str]) -> Imports:
    """By module: the absolute paths that it imports from the crate, the names they get, and whether they are public."""
    found: Imports = {}
    for module, code in sources.items():
        found[module] = []
        for public, tree in re.findall(r"^[ \t]*(pub(?:\([^)]*\))? )?use ([^;]*);", code, re.MULTILINE):
            for path, name in paths_in(tree):
                start, rest = module, path
                if path[0] == "crate":
                    start, rest = (), path[1:]
                elif path[0] in ("self", "super"):
                    climbs = path.count("super")
                    start, rest = module[: len(module) - climbs], path[climbs + (path[0] == "self") :]
                elif (*module, path[0]) not in sources:
                    continue
                found[module].append(((*start, *rest), name, bool(public)))
    return found


def rust_graph(sources: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """By file: the files that hold what it imports. A name that a folder re-exports stands in the file that has it."""
    uses = uses_of(sources)
    exported = {(*module, name): path for module, found in uses.items() for path, name, public in found if public}

    def home(path: tuple[str, ...]) -> tuple[str, ...]:
        for length in range(1, len(path) + 1):
            name = path[:length]
            if name in exported and name not in sources:
                return home((*exported[name], *path[length:]))
        return next(path[:length] for length in range(len(path), -1, -1) if path[:length] in sources)

    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, found in uses.items():
        # What a folder re-exports of its own files is no import.
        graph[module] = {home(path) for path, _, public in found if not (public and path[: len(module)] == module)}
        graph[module].discard(module)
    return graph


def circles_in(graph: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[str]]:
    """The sets of files that import each other, directly or through others."""
    reached: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for start, imported in graph.items():
        seen: set[tuple[str, ...]] = set()
        waiting = list(imported)
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += graph[module]
        reached[start] = seen
    circles = {frozenset(m for m in seen if start in reached[m]) for start, seen in reached.items() if start in seen}
    return sorted(sorted("::".join(module) for module in circle) for circle in circles)


def test_no_two_rust_files_import_each_other() -> None:
    sources = {rust_module(file): without_tests(code_of(file)) for file in rust_files()}
    assert circles_in(rust_graph(sources)) == []


def test_the_search_for_circles_finds_them() -> None:
    sources = {
        (): "mod a; mod b;",
        ("a",): "mod one;\nmod two;\npub use one::{One, deep::Deep as Other};",
        ("a", "one"): "use super::two::Two;\nuse std::fmt;",
        ("a", "two"): "use crate::{b, error};",
        ("b",): "use crate::a::One;",
    }
    assert circles_in(rust_graph(sources)) == [["a::one", "a::two", "b"]]
    direct = {(): "", ("x",): "use crate::y::{self, Y};", ("y",): "use super::x::X;"}
    assert circles_in(rust_graph(direct)) == [["x", "y"]]
    chain = {(): "", ("x",): "use crate::y::Y;", ("y",): "use std::fmt::{self, Write};"}
    assert circles_in(rust_graph(chain)) == []


def test_no_folder_of_rust_files_is_crowded() -> None:
    folders = {file.parent for file in rust_files()}
    sizes = {folder.relative_to(ROOT).as_posix(): len(list(folder.glob("*.rs"))) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > MAX_FILES} == {}


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


LAYERS = (
    "_core", "errors", "typing", "_util | _html", "_beside", "counting", "planning", "context",
    "summarizers | stores | reading", "triggers", "folding", "strategies", "compactor", "presets | testing", "config",
    "loop", "batch", "recall | report | telemetry | integrations", "_cli", "cli", "__main__",
)  # fmt: skip
"""The layers of foldline, lowest first: each package imports only packages of earlier layers, none of its own."""

LOWEST_ONLY = {"summarizers", "stores", "reading"}
"""Packages that import nothing above `_util` and `_beside`."""

MODULES = {
    "errors": "",
    "typing": "",
    "_util": "checks files lists overflow prices problems sqlite threads turns",
    "_html": "",
    "_beside": "",
    "counting": "counters tokenizer_json models",
    "planning": "opening keeps plan batch detect validate repair",
    "context": "calibration usage state metadata transcript",
    "summarizers": """
        rendering _sanitize _checks _evidence
        _prompt _prompt.fencing _prompt.blocks _prompt.prompts _prompt.prompting _prompt.reuse
        _remote _remote.failures _remote.background_loop _remote.remote _remote.bodies _remote.client _remote.answers
        _remote.sdk _remote.chat
        extractive prompted function google_genai openai_sdk openai_compatible anthropic_sdk langchain
    """,
    "stores": """
        _records _damage _tree _schema _rows _databases _locks _appending _session_file memory jsonl sql sql_async
    """,
    "reading": "_opening _frames _chunks _values _sessions _opencode _reader files _rows",
    "triggers": "base stats manual _stop_reasons sizes overflow",
    "folding": "redact result _finish _ask compact trim evidence",
    "strategies": """
        base function noop _note _tool_results truncate window clear media shaped pipeline summarize model_fold
    """,
    "compactor": """
        events result _commit _guard _background _pins _session _folds _checks _defaults _options _request _tasks
        _run _attempt _parts _outcomes _engine _history _calls compactor
    """,
    "presets": "",
    "testing": "",
    "config": "",
    "loop": "steps _truncated loop",
    "batch": "compactor _fragments _answers cache ray report",
    "report": "_texts _view _checks _figures _picture _sections page _sessions _steps _audit _context _diff bar",
    "telemetry": "names otel logs",
    "integrations": """
        _options _codec _folder _langchain_messages langchain openai_agents _pydantic_ai_messages pydantic_ai litellm
        google_adk crewai strands _agent_framework_messages agent_framework
        _inspect_ai_messages inspect_ai
    """,
    "_cli": """
        pace progress terminal sources inputs databases parquet restore fold_file estimate models finalize workers ray
        runs options walk batch_report run trim see check known_models commands
    """,
    "cli": "",
    "__main__": "",
}
"""Modules of each package, lowest first: each imports only modules of its package that stand before it. The package's
own `__init__` comes last."""


def module_order() -> dict[str, tuple[int, int]]:
    """The place of each module: the layer of its package, and its place in the package."""
    places = {package: place for place, layer in enumerate(LAYERS) for package in layer.split(" | ")}
    order = {}
    for package, modules in MODULES.items():
        names = modules.split()
        order |= {f"{package}.{name}": (places[package], i) for i, name in enumerate(names)}
        order[package] = (places[package], len(names))
    return order


def module_name(file: Path) -> str:
    parts = list(file.relative_to(PYTHON.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_files() -> list[Path]:
    return sorted(PYTHON.rglob("*.py"))


def name_below(file: Path) -> str:
    """A module's dotted name below `foldline`; empty for the package itself."""
    return module_name(file).removeprefix("foldline").removeprefix(".")


def python_imports(code: str) -> set[str]:
    """Names below `foldline` that a text imports, also within functions and for type checkers only.

    Of `from foldline.x import y` it is `x.y`: whether that is a module is for the caller to say.
    """
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # A relative import has no place in the package: it would get round the rule.
            base = "." * node.level + (node.module or "")
            found |= {f"{base}.{alias.name}" for alias in node.names}
    ours = {name for name in found if name.startswith((".", "foldline.")) or name == "foldline"}
    return {name.removeprefix("foldline.") for name in ours}


def imported_module(name: str) -> str:
    """The module of an imported name: the name itself, or what it is a member of."""
    known = {*module_order(), "_core"}
    return name if name in known else name.rpartition(".")[0]


def test_every_python_module_has_its_place() -> None:
    assert {name_below(file) for file in python_files()} - {""} == set(module_order())
    packages = [package for layer in LAYERS for package in layer.split(" | ")]
    assert set(MODULES) <= set(packages)
    assert len(set(packages)) == len(packages)


def wrong_imports(name: str, code: str) -> list[str]:
    """The imports of a module that go against the order of packages, or of modules in its package."""
    order = module_order() | {"_core": (0, 0)}
    package, wrong = name.partition(".")[0], []
    for imported in {imported_module(each) for each in python_imports(code)}:
        if imported not in order:
            wrong.append(f"{name} imports {imported or 'foldline itself'}")
            continue
        other = imported.partition(".")[0]
        is_earlier = order[imported] < order[name] if other == package else order[imported][0] < order[name][0]
        is_lowest = package not in LOWEST_ONLY or other == package or order[imported][0] <= order["_beside"][0]
        if not (is_earlier and is_lowest):
            wrong.append(f"{name} imports {imported}")
    return wrong


def test_python_imports_go_one_way() -> None:
    files = [file for file in python_files() if name_below(file)]
    assert [each for file in files for each in wrong_imports(name_below(file), file.read_text("utf-8"))] == []


def test_an_import_against_the_order_is_found() -> None:
    assert wrong_imports("planning.keeps", "from foldline.folding import compact") != []
    assert wrong_imports("planning.keeps", "from foldline.planning.plan import Infeasible") != []
    assert wrong_imports("stores.jsonl", "from foldline.planning.keeps import Keep") != []
    assert wrong_imports("folding.compact", "from foldline.planning.keeps import Keep") == []


def test_the_scan_of_python_imports_sees_every_way_to_write_them() -> None:
    code = """
import foldline
import foldline.loop
from foldline import _core, config as c
if TYPE_CHECKING:
    from foldline.batch.ray import compact_dataset
def f():
    from foldline.stores import sql
    from . import cli
"""
    found = {"foldline", "loop", "_core", "config", "batch.ray.compact_dataset", "stores.sql", "..cli"}
    assert python_imports(code) == found
    assert {imported_module(name) for name in found} == {"", "loop", "_core", "config", "batch.ray", "stores.sql", "."}


def public_files() -> list[Path]:
    """Modules whose names, and whose packages' names, begin with no underscore."""
    paths = [file.relative_to(PYTHON) for file in sorted(PYTHON.rglob("*.py"))]
    is_public = [all(part == "__init__.py" or not part.startswith("_") for part in path.parts) for path in paths]
    return [PYTHON / path for path, public in zip(paths, is_public) if public]


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
    imported = [file for file in public_files() if file.parent != PYTHON / "integrations"]
    for module in (importlib.import_module(module_name(file)) for file in imported):
        wrong += [f"{module.__name__}.{name}" for name in module.__all__ if not hasattr(module, name)]
        wrong += [f"{module.__name__}.{name}, {n} times" for name, n in Counter(module.__all__).items() if n > 1]
    assert wrong == []


def is_adapter(file: Path) -> bool:
    """Whether a module needs its framework, which only `make integrations` installs."""
    return file.parent == PYTHON / "integrations" and not file.name.startswith("_")


def test_every_name_that_an_adapter_exports_is_defined_with_a_docstring() -> None:
    files = [file for file in public_files() if is_adapter(file)]
    assert [file.stem for file in files] == fl.integrations.__all__
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        kinds = (ast.ClassDef, ast.FunctionDef)
        defined = {node.name for node in tree.body if isinstance(node, kinds) and ast.get_docstring(node)}
        listed = next(node for node in tree.body if isinstance(node, ast.Assign))
        assert set(ast.literal_eval(listed.value)) <= defined


def test_every_public_name_has_a_docstring() -> None:
    names = [name for name in fl.__all__ if name != "__version__"]
    assert [name for name in names if not (inspect.getdoc(getattr(fl, name)) or "").strip()] == []


def described(owner: type) -> Iterator[str]:
    for name, member in vars(owner).items():
        if not name.startswith("_") and (callable(member) or inspect.isdatadescriptor(member)):
            yield name


@pytest.mark.parametrize(
    "owner", [fl.TokenCounter, fl.Counts, fl.counting.TranscriptCounts, fl.Plan], ids=lambda owner: owner.__name__
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
