"""The benchmarks that papers report on, read from their original files."""
