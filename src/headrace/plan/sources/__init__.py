"""Sources and sinks: WITH properties, formats, wrapping, CREATE STREAM and CREATE TABLE."""
