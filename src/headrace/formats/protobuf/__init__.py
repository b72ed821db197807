"""PROTOBUF and PROTOBUF_NOSR: messages as rows and columns."""
