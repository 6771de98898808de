#!/usr/bin/env python3
"""Build the release wheel, or the source distribution.

    python scripts/wheel.py [--out DIR] [--target TRIPLE]
    python scripts/wheel.py [--out DIR] --sdist

maturin and zig come from `.venv-build`, at the versions of constraints.txt. A Linux wheel that is linked with the C
library of this machine requires one at least as new. Zig links with the symbols of an older version, so that the wheel
runs on the systems of its tag: Debian 11, Ubuntu 20.04, RHEL 8 have glibc 2.28 or newer. Without zig (macOS, Windows,
other processors, a musl system without `--target`) the linker of the system is used. `--target` builds for another
platform and needs Rust's standard library for it: `rustup target add TRIPLE`. Standard library only.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-build"
PROGRAMS = VENV / ("Scripts" if sys.platform == "win32" else "bin")
SUFFIX = ".exe" if sys.platform == "win32" else ""
#: The oldest systems that a Linux wheel supports, by the end of the target.
COMPATIBILITY = {"linux-gnu": "manylinux_2_28", "linux-musl": "musllinux_1_2"}


def linker_options(target: str | None, libc: str, *, zig: bool) -> list[str]:
    """The options that let zig link a Linux wheel; none if the linker of the system is used."""
    system = "-".join(target.split("-")[-2:]) if target else "linux-gnu" if libc == "glibc" else ""
    return ["--zig", "--compatibility", COMPATIBILITY[system]] if zig and system in COMPATIBILITY else []


def main() -> int:
    """Prepare the build environment and run maturin in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--target", metavar="TRIPLE", help="target of Rust (default: this platform)")
    parser.add_argument("--sdist", action="store_true", help="build the source distribution instead of a wheel")
    args = parser.parse_args()

    python = str(PROGRAMS / f"python{SUFFIX}")
    command = [str(PROGRAMS / f"maturin{SUFFIX}"), "sdist", "--out", str(args.out)]
    try:
        subprocess.run([sys.executable, ROOT / "scripts" / "venv.py", VENV, "--build", "--group", "zig"], check=True)
        if not args.sdist:
            probe = subprocess.run([python, "-c", "import ziglang"], check=False, stderr=subprocess.DEVNULL)
            command[1:2] = ["build", "--release", "--locked", "--interpreter", python]
            command += ["--target", args.target] if args.target else []
            command += linker_options(args.target, platform.libc_ver()[0], zig=probe.returncode == 0)
        # maturin looks for zig in the first Python on the path.
        path = os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", "")])
        subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"PATH": path, "PYO3_PYTHON": python})
    except subprocess.CalledProcessError as error:
        return error.returncode
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
