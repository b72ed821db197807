"""Planning: from syntax trees to bound, typed plan nodes. No I/O, no JVM."""
