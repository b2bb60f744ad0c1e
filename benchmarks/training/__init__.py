"""The parts of `train.py`: rankings, a random base model, the strategies and their processes."""
