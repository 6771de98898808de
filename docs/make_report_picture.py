"""Makes docs/report.png, the picture of the README: the top of the report of a bundled session.

    .venv/bin/python docs/make_report_picture.py

Needs what the tests marked `browser` need: `make BROWSER=1 develop`. Pillow reduces the picture to 96 colours.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import foldline as fl

ROOT = Path(__file__).resolve().parent.parent
SESSION = ROOT / "examples" / "data" / "claude-code-session.jsonl"
PICTURE = ROOT / "docs" / "report.png"


def summarize(messages: list[object]) -> str:
    """The summary that a hurried model might write; foldline adds what it lacks."""
    del messages
    return "The user wanted a view for `entire resume` that lists the sessions of each branch. A first one was written."


def main() -> None:
    """Folds, writes the report, takes the picture."""
    transcript = next(iter(fl.read(SESSION)))
    counter = fl.TokenCounter.for_model("claude-opus-4-5")
    keep = fl.FitTokens(12_000)
    result = fl.compact(transcript.messages, keep, summarizer=summarize, counter=counter, summary_tokens=1_400)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        fl.report.save(result, page_file, transcript=transcript, prices=fl.report.Prices(5, 0.5, 25, 6.25))
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(page_file.as_uri())
        shot = page.screenshot()
        browser.close()
    small = (
        Image.open(io.BytesIO(shot))
        .convert("RGB")
        .quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    )
    small.save(PICTURE, optimize=True)
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
