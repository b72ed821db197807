"""The test runner: runs ksqlDB's test files with the planning and lowering of a server."""
