"""The benchmark: what users compare, measured side by side in one run. See docs/performance.md."""
