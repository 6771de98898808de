"""Entry point of ``python -m foldline``."""

from __future__ import annotations

import sys

from foldline.cli import main

if __name__ == "__main__":
    sys.exit(main())
