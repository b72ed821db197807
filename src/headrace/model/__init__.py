"""What everything else speaks of: SQL types, schemas, names, errors, settings. No I/O."""
