"""`headrace migrations`: the statements of a cluster, kept in numbered files and applied in order.

Projects, files, messages and the stream and table of the metadata are those of ksqlDB's tool, so
that a project can be taken from one to the other. Everything goes through the REST API.
"""
