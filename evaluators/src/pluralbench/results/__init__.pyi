from .finding import results
from .runs import Downstream, Personalized, Plans, Run, Synthesis

__all__ = ["Downstream", "Personalized", "Plans", "Run", "Synthesis", "results"]
