"""Lets the tests of levers import the helper beside them (they are no package)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
