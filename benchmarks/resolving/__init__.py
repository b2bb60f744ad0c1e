"""What `resolve.py` makes, and the processes that it times."""
