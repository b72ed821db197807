"""SQL types, schemas, sources, errors, settings and entities. No I/O."""
