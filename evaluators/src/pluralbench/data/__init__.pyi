from .benchmarks import Benchmark, Columns
from .items import Items

__all__ = ["Benchmark", "Columns", "Items"]
