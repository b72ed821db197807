"""Names, types and expressions: from syntax trees to bound, typed expressions."""
