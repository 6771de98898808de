#!/usr/bin/env python3
"""Run the tests of the adapters, each framework in an environment of its own.

    python scripts/integrations.py [--part ci | --part nightly] [NAME...]

A name is a folder of tests/integrations/requirements: its packages are installed into .venv-integrations/NAME at the
versions of its constraints.txt, and tests/integrations/test_NAME.py runs there with the extension that `make develop`
has built. `langchain-oldest` runs the tests of `langchain` with the oldest versions that are supported. The rows of the
table in docs/integrations.md are written there. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "integrations"
REQUIREMENTS = TESTS / "requirements"
OUT = ROOT / "out" / "integrations"
DOCUMENT = ROOT / "docs" / "integrations.md"

#: What CI runs at each change; the others run at night.
CI = ("langchain", "openai_agents", "pydantic_ai")

BEGIN, END = "<!-- rows by scripts/integrations.py -->", "<!-- end of rows -->"
HEADER = "| framework | package | calls | folds | summaries | most tokens | copies of the pin |"


def python_of(venv: Path) -> Path:
    """The interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def interpreter_for(name: str) -> str:
    """The interpreter that makes the environment of a name: this one, unless its packages need another version."""
    wanted = REQUIREMENTS / name / "python-version"
    if not wanted.exists():
        return sys.executable
    version = wanted.read_text(encoding="utf-8").strip()
    found = shutil.which(f"python{version}")
    if found is None:
        raise SystemExit(f"{name} needs python{version}, which is not on the PATH")
    return found


def prepared(name: str) -> Path:
    """The interpreter of the environment of a name, made if needed; foldline is imported from this checkout."""
    venv = ROOT / ".venv-integrations" / name
    requirements = REQUIREMENTS / name / "requirements.txt"
    venv.parent.mkdir(exist_ok=True)
    command = [interpreter_for(name), str(ROOT / "scripts" / "venv.py"), str(venv), "--file", str(requirements)]
    subprocess.run(command, check=True)
    python = python_of(venv)
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    (Path(site) / "foldline.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    return python


def run(name: str) -> bool:
    """Run the tests of a name; whether they passed."""
    started = time.monotonic()
    python = prepared(name)
    made = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    rows = OUT / f"{name}.jsonl"
    rows.unlink(missing_ok=True)
    tests = TESTS / f"test_{name.partition('-')[0]}.py"
    environment = os.environ | {"FOLDLINE_INTEGRATIONS_OUT": str(rows), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", "pytest", "-q", "-c", str(TESTS / "pytest.ini"), str(tests)]
    if name.endswith("-oldest"):
        command += ["-m", "not newest"]
    done = subprocess.run(command, check=False, env=environment, cwd=TESTS)
    ended = time.monotonic()
    print(f"{name}: environment {made - started:.0f} s, tests {ended - made:.0f} s", flush=True)
    return done.returncode == 0


def write_table() -> None:
    """Replace the rows of the frameworks that ran in the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    lines = [line for line in old.splitlines() if line.startswith("| ") and line != HEADER]
    rows = {tuple(cells[:2]): line for line in lines if (cells := [c.strip() for c in line.strip("| ").split("|")])}
    for file in sorted(OUT.glob("*.jsonl")):
        for text_row in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(text_row)
            package = f"{row['package']} {row['version']}"
            copies = ", ".join(map(str, row["copies"]))
            cells = [row["framework"], package, row["calls"], row["folds"], row["summaries"]]
            line = "| " + " | ".join(map(str, [*cells, f"{row['most_tokens']:,} of {row['window']:,}", copies])) + " |"
            rows[row["framework"], package] = line
    table = "\n".join([HEADER, "|---|---|---:|---:|---:|---:|---:|", *(rows[key] for key in sorted(rows))])
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Run the tests of the names that are given, by default all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--part", choices=("ci", "nightly"), help="what CI runs, or what runs at night")
    args = parser.parse_args()
    known = sorted(each.name for each in REQUIREMENTS.iterdir() if (each / "requirements.txt").exists())
    if unknown := sorted(set(args.names) - set(known)):
        parser.error(f"not one of {', '.join(known)}: {', '.join(unknown)}")
    part = {"ci": CI, "nightly": tuple(name for name in known if name not in CI), None: tuple(known)}[args.part]
    failed = [name for name in (args.names or part) if not run(name)]
    write_table()
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
