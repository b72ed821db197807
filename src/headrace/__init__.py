"""Headrace: streaming SQL on Spark, in ksqlDB's language and wire protocol."""

from __future__ import annotations

import sys

__version__ = "0.1.0"

# Statements may be deep (`sql.cursor.MAX_NESTING`), JSON too (`formats.json.text.MAX_DEPTH`), and
# both are read recursively. Our own limits decide, in the server and in Spark's workers, and never
# how deep the stack was already.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
