"""The parts of `score.py`: made models and conversations, the strategies, their processes, the report."""
