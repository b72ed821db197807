"""The test runner: ksqlDB's test files, run on the same planning and lowering as a server."""
