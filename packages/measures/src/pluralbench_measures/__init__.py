"""Benchmark statistics with confidence intervals: rankings, agreement, calibration, correlation, paired tests."""
