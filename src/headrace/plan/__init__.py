"""Analysis: from AST to bound, typed plan nodes. Pure: no I/O, no JVM."""
