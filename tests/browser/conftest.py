"""Chromium for the tests of pages. A page that says, asks or breaks anything fails its test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Screenshots, for people to look at.
SHOTS = ROOT / "out" / "report"


# Not of the session: while Playwright's synchronous interface is open, its event loop runs in this thread, and
# `asyncio.run` of any other test in the process fails.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    executable = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert executable, "no Chromium: scripts/chromium.sh installs it"
    with sync_playwright() as playwright:
        # As root Chromium refuses to start with its sandbox; it only ever opens pages made here.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from its text, and at the end checks that it said nothing and asked for nothing."""
    contexts, said = [], []

    def open_page(html: str, *, scheme: str = "light", anchor: str = "", script: bool = True, **more: Any) -> Any:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        size = more.pop("viewport", {"width": 1400, "height": 1800})
        context = chromium.new_context(viewport=size, color_scheme=scheme, java_script_enabled=script, **more)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        address = file.as_uri()
        page.on(
            "request", lambda request: None if request.url.startswith(address) else said.append(f"asked: {request.url}")
        )
        page.goto(address + anchor)
        page.said = said
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="session")
def shots() -> Path:
    """The folder of screenshots."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS
