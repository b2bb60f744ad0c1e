from .finding import load_results
from .runs import Downstream, Personalized, Plans, Run, Synthesis

__all__ = ["Downstream", "Personalized", "Plans", "Run", "Synthesis", "load_results"]
