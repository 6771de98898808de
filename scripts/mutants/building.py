"""A copy of the tree, the mutants in it, and what cargo makes of that."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

from mutants import Mutant
from schemata import Node, mutated, parsed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: The binaries of the crate's tests, the library's own aside.
TESTS = ("integration",)
_NUMBER = re.compile(r"mutant::on\((\d+)\)")


class Workshop:
    """A folder with a copy of the project; the checkout itself is never written to."""

    def __init__(self, folder: Path, python: Path) -> None:
        self.folder = folder
        self.tree = folder / "tree"
        self.binaries = folder / "bin"
        self.files: set[str] = set()  # those that are not as they were in the copy
        # Its own, or cargo would leave mutated files where the checkout's are expected.
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "build")}
        self.of_extension = {**self.environment, "PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": str(python)}

    def copy(self) -> None:
        """The files that git knows or would know, as they are now."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        shutil.rmtree(self.tree, ignore_errors=True)
        self.files.clear()
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        library = self.tree / "src-rust" / "lib.rs"
        text = re.sub(r"^#!\[.*\]\n", "", library.read_text(encoding="utf-8"), flags=re.MULTILINE)
        library.write_text("#![allow(warnings)]\n" + text, encoding="utf-8")
        manifest = self.tree / "Cargo.toml"
        manifest.write_text(re.sub(r"\n\[lints.*?(?=\n\[profile)", "", manifest.read_text("utf-8"), flags=re.DOTALL))

    def write(self, mutants: list[Mutant]) -> set[int]:
        """Put these mutants into the copy, and no others; the numbers of those that are in it."""
        by_file: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in mutants:
            by_file[mutant.file].append(mutant)
        done: set[int] = set()
        self.files |= set(by_file)
        for name in self.files:
            some = by_file[name]
            text, numbers = mutated((ROOT / name).read_bytes(), some)
            (self.tree / name).write_text(text, encoding="utf-8")
            done |= numbers
        most = max((mutant.number for mutant in mutants), default=0)
        switch = (HERE / "switch.rs").read_text(encoding="utf-8")
        rust = self.tree / "src-rust"
        (rust / "mutant.rs").write_text(f"{switch}\nconst MUTANTS: usize = {most};\n", encoding="utf-8")
        library = (rust / "lib.rs").read_text(encoding="utf-8")
        if "mod mutant;" not in library:
            (rust / "lib.rs").write_text(library + "pub mod mutant;\n", encoding="utf-8")
        return done

    def write_alone(self, mutant: Mutant) -> None:
        """Put this mutant into the copy as cargo-mutants would, and no other."""
        self.write([])
        source = (ROOT / mutant.file).read_bytes()
        rest = source[mutant.end :]
        if mutant.genre in ("MatchArm", "StructField"):
            rest = rest.removeprefix(b",")
        self.files.add(mutant.file)
        (self.tree / mutant.file).write_bytes(source[: mutant.start] + mutant.replacement.encode() + rest)

    def write_together(self, mutants: list[Mutant]) -> tuple[set[int], set[int]]:
        """Put as many of the mutants into the copy as one build takes.

        Gives the numbers of those that are in it, and of those that no build takes: what a function should give instead
        is not of its type. Others may compile in their own form.
        """
        genre = {mutant.number: mutant.genre for mutant in mutants}
        refused: set[int] = set()
        while True:
            done = self.write([mutant for mutant in mutants if mutant.number not in refused])
            errors = self.errors()
            if not errors:
                return done, {number for number in refused if genre[number] == "FnValue"}
            new = {number for error in errors for number in self._blamed(error, genre)} - refused
            if not new:
                raise SystemExit("the mutated crate does not build:\n" + "".join(e["rendered"] for e in errors[:5]))
            refused |= new

    def errors(self) -> list[dict[str, Any]]:
        """What the compiler refuses, as it tells machines."""
        command = ["cargo", "check", "--locked", "--lib", "--message-format", "json"]
        done = subprocess.run(command, check=False, **self._how(self.environment))
        found = [row["message"] for row in map(json.loads, done.stdout.splitlines()) if "message" in row]
        errors = [message for message in found if message["level"] == "error"]
        if done.returncode and not errors:
            raise SystemExit(done.stderr)
        return errors

    def _how(self, environment: dict[str, str]) -> dict[str, Any]:
        return {"cwd": self.tree, "env": environment, "capture_output": True, "text": True}

    def _blamed(self, error: dict[str, Any], genre: dict[int, str]) -> set[int]:
        """The numbers of the mutants that an error speaks of."""
        found: set[int] = set()
        for span in error["spans"]:
            if not span["is_primary"] or not (self.tree / span["file_name"]).is_file():
                continue
            source = (self.tree / span["file_name"]).read_bytes()
            if error["code"] and error["code"]["code"] == "E0004":  # a match that is no longer complete
                arms = _arms(parsed(source).descendant_for_byte_range(span["byte_start"], span["byte_end"]))
                found |= {number for number in arms if genre[number] == "MatchArm"}
                continue
            line = source.rfind(b"\n", 0, span["byte_start"]) + 1
            before = _NUMBER.findall(source[line : span["byte_start"]].decode())
            within = _NUMBER.findall(source[span["byte_start"] : span["byte_end"] + 3].decode())
            found |= set(map(int, before[-1:] or within))
        return found

    def build(self) -> None:
        """The tests of the crate, into the folder `bin`, and the Python module, into the package of the copy."""
        wanted = ["--lib", *(word for name in TESTS for word in ("--test", name))]
        for row in self._artifacts(["cargo", "test", "--no-run", *wanted], self.environment):
            if row.get("executable"):
                name = "lib" if row["target"]["name"] == "foldline" else row["target"]["name"]
                self._keep(Path(row["executable"]), self.binaries / name)
        for row in self._artifacts(["cargo", "build", "--features", "python", "--lib"], self.of_extension):
            shared = [Path(name) for name in row.get("filenames", ()) if re.search(r"\.(so|dylib|pyd)$", name)]
            if shared and row["target"]["name"] == "foldline":
                self._keep(shared[0], self.tree / "python" / "foldline" / "_core.abi3.so")

    def _artifacts(self, command: list[str], environment: dict[str, str]) -> list[dict[str, Any]]:
        command = [*command, "--locked", "--message-format", "json"]
        done = subprocess.run(command, check=False, **self._how(environment))
        if done.returncode:
            raise SystemExit(done.stderr)
        return [row for row in map(json.loads, done.stdout.splitlines()) if row["reason"] == "compiler-artifact"]

    @staticmethod
    def _keep(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(source, target)


def _arms(node: Node | None) -> set[int]:
    """The numbers in the arms of the match around a node."""
    while node is not None and node.type != "match_expression":
        node = node.parent
    body = node.child_by_field_name("body") if node is not None else None
    found: set[int] = set()
    for arm in body.children if body is not None else ():
        pattern = arm.child_by_field_name("pattern")
        if pattern is not None and pattern.text is not None:
            found |= set(map(int, _NUMBER.findall(pattern.text.decode())))
    return found
