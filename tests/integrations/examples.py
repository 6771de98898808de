"""The examples of docs/integrations.md: each runs as it stands, with a scripted model in its place."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"


def all_examples() -> list[str]:
    """All examples of the document."""
    return re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def examples(package: str) -> list[str]:
    """The examples that import an adapter."""
    return [each for each in all_examples() if f"from foldline.integrations.{package} import" in each]


def recipe(name: str, **names: Any) -> Any:
    """What a recipe defines, with these names."""
    (example,) = (each for each in all_examples() if re.search(rf"^(class|def) {name}\(", each, re.MULTILINE))
    return run(example, **names)


def run(example: str, **names: Any) -> dict[str, Any]:
    """Runs an example, at most 15 lines of code, with these names; gives its variables."""
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 15
    code = compile(example, "docs/integrations.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    scope = dict(names)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, scope))
    else:
        exec(code, scope)
    return scope
