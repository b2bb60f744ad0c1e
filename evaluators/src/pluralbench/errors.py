"""What can go wrong with an evaluation, in one sentence each."""

from pluralbench_runs import UserError

__all__ = ["BenchmarkError", "DataError", "EvaluationError", "RunError", "UserError"]


class EvaluationError(UserError):
    """A benchmark, its data, or a run that cannot be used.

    BenchmarkError   a benchmark that is not known or not described well
    DataError        data that is not of the benchmark's shape
    RunError         a run directory that cannot be read or compared
    """


class BenchmarkError(EvaluationError):
    """A benchmark that is not known or not described well."""


class DataError(EvaluationError):
    """Data that is not of the benchmark's shape."""


class ColumnMissing(DataError):
    """A table has no column of a needed name."""


class RunError(EvaluationError):
    """A run directory that cannot be read or compared."""
