"""Publish results on the Hub: runs as a dataset, and numbers on a model card."""

from pluralbench.publishing.model_card import propose_results, write_model_card
from pluralbench.publishing.results import PushResult, fetch_results, push_results

__all__ = ["PushResult", "fetch_results", "propose_results", "push_results", "write_model_card"]
