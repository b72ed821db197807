"""Plan nodes and expressions as DataFrame programs."""
