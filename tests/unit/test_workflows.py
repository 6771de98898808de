"""The workflows: their systems and permissions, and the linking of the published wheels."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, Any] = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.fullmatch(r".*Python :: 3\.\d+", name)]


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for stem, workflow in WORKFLOWS.items():
        for name, job in workflow["jobs"].items():
            yield stem, name, job


def test_python_versions_are_those_of_the_classifiers() -> None:
    matrices = [job.get("strategy", {}).get("matrix", {}) for _, _, job in jobs()]
    assert [matrix["python"] for matrix in matrices if "python" in matrix] == [PYTHONS, PYTHONS]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    options = [step.get("with", {}) for _, _, job in jobs() for step in job.get("steps", [])]
    chosen = {" ".join(each["python-version"].split()) for each in options if "python-version" in each}
    # An adapter needs a newer version, beside the default, which is the last.
    assert chosen == {PYTHONS[0], "${{ matrix.python }}", f"{PYTHONS[1]} {PYTHONS[0]}"}


def test_tests_run_on_three_systems() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["python"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_there_is_one_rust_version() -> None:
    versions = {workflow["env"]["RUSTUP_TOOLCHAIN"] for workflow in WORKFLOWS.values() if "env" in workflow}
    assert len(versions) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    """With the version in a comment; reusable workflows of this repository use the running commit."""
    used = re.findall(r"\buses: (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\$/\.github/workflows/\w+\.yml")
    assert used
    assert [action for action in used if not pinned.fullmatch(action)] == []


def test_an_action_has_one_version() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    used = set(re.findall(r"\buses: ([\w/-]+)@(.+)$", text, flags=re.MULTILINE))
    assert len({action for action, _ in used}) == len(used)


def test_permissions_are_minimal() -> None:
    """No permissions by default; only the publishing job gets an identity, guarded by the environment."""
    assert all(workflow["permissions"] == {} for workflow in WORKFLOWS.values())
    granted = {(stem, name): job["permissions"] for stem, name, job in jobs()}
    assert {key for key, rights in granted.items() if "write" in rights.values()} == {("release", "publish")}
    assert granted["release", "publish"] == {"id-token": "write"}
    assert WORKFLOWS["release"]["jobs"]["publish"]["environment"] == "pypi"


def test_releases_use_no_cache() -> None:
    for stem in ("release", "wheels", "nightly"):
        text = (ROOT / ".github" / "workflows" / f"{stem}.yml").read_text(encoding="utf-8")
        assert "actions/cache" not in text
        assert not re.search(r"^ *cache:", text, flags=re.MULTILINE)


def test_every_wheel_is_tested() -> None:
    wheels = WORKFLOWS["wheels"]["jobs"]
    built = {row["target"] for row in wheels["wheel"]["strategy"]["matrix"]["include"]}
    tried = {row["target"] for row in wheels["try-in-container"]["strategy"]["matrix"]["include"]}
    assert tried | set(wheels["try"]["strategy"]["matrix"]["target"]) == built
    table = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+-\w+-\w+(?:-\w+)?)`", table)) == built


def test_pre_commit_hooks_are_local() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    assert {hook["language"] for hook in config["repos"][0]["hooks"]} == {"system"}


@pytest.fixture(scope="module")
def wheel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("foldline_wheel", ROOT / "scripts" / "wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("target", "libc", "zig", "options"),
    [
        (None, "glibc", True, ["--zig", "--compatibility", "manylinux_2_28"]),
        ("aarch64-unknown-linux-gnu", "glibc", True, ["--zig", "--compatibility", "manylinux_2_28"]),
        ("x86_64-unknown-linux-musl", "glibc", True, ["--zig", "--compatibility", "musllinux_1_2"]),
        (None, "glibc", False, []),
        (None, "", True, []),
        ("aarch64-apple-darwin", "", False, []),
    ],
)
def test_zig_links_wheels_for_linux(wheel: ModuleType, target: str, libc: str, zig: bool, options: list[str]) -> None:
    assert wheel.linker_options(target, libc, zig=zig) == options
