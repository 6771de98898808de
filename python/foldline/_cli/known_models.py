"""The command `models`: lists the known models, or explains one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from foldline._cli.options import json_option
from foldline._cli.progress import Column, Table, write_json
from foldline.counting import models
from foldline.errors import UnknownModelError

__all__ = ["models_command"]

_COLUMNS = ("name", "provider", "family", "encoding", "kind", "source", "context_window", "checked")


@click.command("models")
@click.argument("name", required=False)
@json_option
def models_command(name: str | None, *, as_json: bool) -> int:
    """List the known models, or explain how the model NAME is counted, by which file, and what is missing.

    NAME is written as providers, gateways and local servers write it: gpt-5, qwen3:32b, meta-llama/Llama-3.3-70B.
    """
    if name is None:
        table = Table([Column(key) for key in _COLUMNS], as_json=as_json)
        for model, source in zip(models.known(), models.sources(), strict=True):
            table.add(_record(model, source))
        table.close()
        return 0
    try:
        source, missing, found = models.source(name), models.missing(name), models.lookup(name)
    except UnknownModelError as error:
        raise click.BadParameter(f"{error.detail}; foldline models lists the known ones", param_hint="NAME") from None
    record = {"given": name, **_record(found, source), "missing": missing}
    if as_json:
        write_json(record)
    else:
        for key, value in record.items():
            if value is not None:
                click.echo(f"{key}: {value}")
    return 0 if missing is None else 1


def _record(model: models.Model, source: models.Source) -> dict[str, Any]:
    """A model as it is counted on this machine."""
    where = {"source": source.place or "missing", "file": source.file}
    return {**asdict(model), "encoding": source.encoding, "family": source.family, **where}
