#!/usr/bin/env python3
"""Make a virtual environment contain exactly a part of pyproject.toml's requirements, at pinned versions.

    python scripts/venv.py DIR [--build] [--extra NAME]... [--group NAME]... [--repin]
    python scripts/venv.py DIR --file REQUIREMENTS [--repin]

`--build` installs the build requirements, `--extra` the project's dependencies and those of an extra, `--group`
those of a dependency group; the project itself is never installed here. Nothing is done if Python, this folder,
the requirements and constraints.txt are unchanged; otherwise DIR is recreated. `--repin` takes the newest
versions instead and writes them to constraints.txt. With `--file` the requirements are those of a file, one per line,
and the versions are in constraints.txt next to it; each is installed separately, preceded by options of pip
if it needs any, and one that cannot be installed is named and left out. Standard library only; any pip works.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
CONSTRAINTS_HEADER = """\
# The versions that {who} install: what pip resolved on Linux with Python {version}.
# Written by `make pins`. Platform-neutral: no hashes, no markers, no addresses.
"""
MARK = "made-for.sha256"
#: The commands that use a file of requirements, by its folder.
WHO = {
    "peers": "`make bench` and `make bench-peers`",
    "conformance": "`make conformance`",
    "llm": "`make test-llm`",
    "quality": "`make bench-quality`",
    "mutants": "`make mutants`",
}


def requirements_of_extra(project: dict[str, Any], name: str) -> list[str]:
    """The requirements of an extra, with `project[a,b]` replaced by those of a and b."""
    own = re.compile(re.escape(project["name"]) + r"\[([\w, -]+)\]")
    found: list[str] = []
    for requirement in project["optional-dependencies"][name]:
        if match := own.fullmatch(requirement):
            for other in match[1].split(","):
                found += requirements_of_extra(project, other.strip())
        else:
            found.append(requirement)
    return found


def wanted_requirements(build: bool, extras: list[str], groups: list[str]) -> list[str]:
    """The requirements to install, sorted and unique."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = set(config["build-system"]["requires"] if build else [])
    if extras:
        wanted.update(config["project"]["dependencies"])
    for extra in extras:
        wanted.update(requirements_of_extra(config["project"], extra))
    for group in groups:
        wanted.update(config["dependency-groups"][group])
    return sorted(wanted)


def requirements_of_file(path: Path) -> list[str]:
    """The requirements in a file, one per line."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def python_of(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make(venv: Path, batches: list[list[str]], pip_options: list[str]) -> bool:
    """Recreate the environment; returns whether all batches of requirements were installed."""
    shutil.rmtree(venv, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    except subprocess.CalledProcessError:
        sys.exit(f"{sys.executable} cannot make virtual environments (on Debian: install python3-venv)")
    (venv / ".gitignore").write_text("*\n", encoding="utf-8")
    pip = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check"]
    missing = []
    for batch in filter(None, batches):
        done = subprocess.run([*pip, "install", "--quiet", *pip_options, *batch], check=len(batches) == 1)
        missing += batch if done.returncode else []
    for requirement in missing:
        print(f"{venv.name}: {requirement} cannot be installed", file=sys.stderr, flush=True)
    return not missing


def repin(venv: Path, constraints: Path, who: str) -> None:
    """Write the packages of an environment to the constraints file."""
    freeze = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "freeze"]
    frozen = subprocess.run(freeze, check=True, stdout=subprocess.PIPE, text=True).stdout
    pins = sorted((line for line in frozen.splitlines() if "==" in line), key=str.lower)
    header = CONSTRAINTS_HEADER.format(who=who, version=".".join(map(str, sys.version_info[:2])))
    constraints.write_text(header + "\n".join(pins) + "\n", encoding="utf-8")


def update(venv: Path, batches: list[list[str]], constraints: Path) -> None:
    """Recreate an outdated environment. The marker is written last, so that a partial environment never counts."""
    requirements = [requirement for batch in batches for requirement in batch]
    state = [sys.executable, sys.version, str(venv), *requirements, constraints.read_text(encoding="utf-8")]
    key = hashlib.sha256("\n".join(state).encode()).hexdigest()
    mark = venv / MARK
    if python_of(venv).exists() and mark.exists() and mark.read_text(encoding="utf-8") == key:
        return
    print(f"{venv.name}: making the environment ({len(requirements)} requirements)", flush=True)
    if make(venv, batches, ["--constraint", str(constraints)]):
        mark.write_text(key, encoding="utf-8")


def main() -> int:
    """Bring the environment up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument("--build", action="store_true", help="install what the build needs")
    parser.add_argument("--extra", action="append", default=[], help="install what this extra needs")
    parser.add_argument("--group", action="append", default=[], help="install this dependency group")
    parser.add_argument("--file", type=Path, help="install what this file names, each line for itself")
    parser.add_argument("--repin", action="store_true", help="take the newest versions and pin those")
    args = parser.parse_args()

    venv = args.venv.absolute()
    batches, constraints, who = (
        [wanted_requirements(args.build, args.extra, args.group)],
        CONSTRAINTS,
        "`make test` and `make demo`",
    )
    if args.file:
        batches = [line.split() for line in requirements_of_file(args.file)]
        constraints, who = args.file.parent / "constraints.txt", WHO.get(args.file.parent.name, str(args.file))
    try:
        if args.repin:
            make(venv, batches, [])
            repin(venv, constraints, who)
        else:
            update(venv, batches, constraints)
    except subprocess.CalledProcessError as error:
        return error.returncode
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
