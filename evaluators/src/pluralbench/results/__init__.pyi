from .runs import Downstream, Personalized, Plans, Run, Synthesis
from .summary import results

__all__ = ["Downstream", "Personalized", "Plans", "Run", "Synthesis", "results"]
