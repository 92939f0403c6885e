"""Benchmarks: `make bench` prints what each part costs, as ratios within one run."""
