"""The REST API in ksqlDB's shapes, over HTTP/1.1 and HTTP/2 on one port."""
