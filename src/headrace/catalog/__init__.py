"""What exists: sources, types and queries; and the log of statements that made it so."""
