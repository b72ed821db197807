"""State of kernels: buckets, their log, and how rows travel to them."""
