"""The SQL parser and printer. They know no catalog, no functions, no engine."""

from __future__ import annotations

import sys

# Trees may be deep (see `cursor.MAX_NESTING`), and everything that reads them does so recursively.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
