"""Results on the Hub: runs as a dataset, and numbers on a model's card."""

from pluralbench.publishing.model_card import write_model_card
from pluralbench.publishing.results import Pushed, fetch_results, push_results

__all__ = ["Pushed", "fetch_results", "push_results", "write_model_card"]
