"""Makes the pictures of the documents: ``.venv-demo/bin/python docs/make_pictures.py``, after ``make demo``.

``demo.svg`` is what ``examples/demo.py`` prints on a terminal of so many columns. Needs the extra ``cli``.
"""

from __future__ import annotations

import importlib.util
import io
import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PROJECT = Path(__file__).resolve().parent.parent
COLUMNS = 144

#: Plain black on near-white: legible on light and dark pages alike.
THEME = TerminalTheme(
    (250, 250, 250),
    (30, 30, 30),
    [(0, 0, 0), (170, 0, 0), (0, 110, 0), (140, 90, 0), (0, 60, 170), (130, 0, 130), (0, 110, 120), (110, 110, 110)],
)


class Recorder(Console):
    """A terminal that remembers, and breaks long lines where a terminal does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"width": COLUMNS, "force_terminal": True, "record": True, "file": io.StringIO()})
        recorders.append(self)

    def print(self, *objects: Any, **options: Any) -> None:
        """As it is, but long lines in pieces."""
        if not options.pop("soft_wrap", False):
            super().print(*objects, **options)
            return
        for text in objects:
            assert isinstance(text, Text)
            for piece in text.divide(range(COLUMNS, len(text), COLUMNS)):
                super().print(piece, **options)


recorders: list[Recorder] = []


def demo() -> str:
    """Runs the demo and gives its picture."""
    spec = importlib.util.spec_from_file_location("demo", PROJECT / "examples" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    importlib.sys.modules["demo"] = module
    spec.loader.exec_module(module)
    module.Console = Recorder
    module.main()
    picture = recorders[-1].export_svg(title="make demo", theme=THEME, unique_id="demo")
    # No fonts from elsewhere: the reader's own monospaced one will do.
    picture = re.sub(r"\s*@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    return picture.replace("Fira Code, monospace", "Menlo, Consolas, 'DejaVu Sans Mono', monospace").replace(
        "font-family: Fira Code", "font-family: Menlo, Consolas, 'DejaVu Sans Mono'"
    )


def main() -> None:
    """Writes the pictures beside this file."""
    target = PROJECT / "docs" / "demo.svg"
    picture = demo()
    target.write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n", encoding="utf-8")
    print(f"docs/{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
