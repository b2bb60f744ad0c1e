"""Measures with intervals: the bootstrap, pairs and rankings, agreement, calibration, paired tests."""
