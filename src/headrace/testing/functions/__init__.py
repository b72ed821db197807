"""Functions that only test files call, loaded as a user's own are."""
