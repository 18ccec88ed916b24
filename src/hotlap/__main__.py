"""``python -m hotlap``."""

from __future__ import annotations

import sys

from hotlap.cli.main import main

sys.exit(main())
