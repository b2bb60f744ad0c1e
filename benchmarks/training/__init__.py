"""The parts of `train.py`: rankings, a made base model, the strategies, the process of each run."""
