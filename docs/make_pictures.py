"""Makes the pictures of the documents: ``.venv-demo/bin/python docs/make_pictures.py``, after ``make demo``.

``demo.svg`` is the output of ``examples/demo.py`` on a terminal of fixed width, with an excerpt of the summary.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PROJECT = Path(__file__).resolve().parent.parent
DEMO = PROJECT / "examples" / "demo.py"
PICTURE = PROJECT / "docs" / "demo.svg"

COLUMNS = 100
SUMMARY_LINES = 18

#: Near-black on near-white: legible on light and dark pages.
THEME = TerminalTheme(
    (250, 250, 250),
    (30, 30, 30),
    [(0, 0, 0), (170, 0, 0), (0, 110, 0), (140, 90, 0), (0, 60, 170), (130, 0, 130), (0, 110, 120), (110, 110, 110)],
)


class Recorder(Console):
    """A terminal that records its output and breaks long lines."""

    last: Recorder

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"width": COLUMNS, "force_terminal": True, "record": True, "file": io.StringIO()})
        Recorder.last = self

    def print(self, *objects: Any, soft_wrap: bool = False, **options: Any) -> None:
        """The output, with long lines broken."""
        if not soft_wrap:
            super().print(*objects, **options)
            return
        for text in objects:
            assert isinstance(text, Text)
            for piece in text.divide(range(COLUMNS, len(text), COLUMNS)):
                super().print(piece, **options)


def record_demo(project: Path = PROJECT) -> Recorder:
    """Runs the demo, which writes its results below ``project``, and returns its output."""
    spec = importlib.util.spec_from_file_location("foldline_demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look the module up there.
    spec.loader.exec_module(module)
    module.PROJECT, module.OUT = project, project / "out" / "demo"
    module.Console, module.SUMMARY_LINES = Recorder, SUMMARY_LINES
    module.main()
    return Recorder.last


def picture_of(recorder: Recorder) -> str:
    """The picture of the output. It names no external font, so the reader's own is used."""
    picture = recorder.export_svg(title="make demo", theme=THEME, unique_id="demo")
    picture = re.sub(r"\s*@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    picture = picture.replace("Fira Code", "Menlo, Consolas, 'DejaVu Sans Mono'")
    return "".join(f"{line.rstrip()}\n" for line in picture.splitlines())


def main() -> None:
    """Writes the pictures next to this file."""
    PICTURE.write_text(picture_of(record_demo()), encoding="utf-8")
    print(f"{PICTURE.relative_to(PROJECT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
