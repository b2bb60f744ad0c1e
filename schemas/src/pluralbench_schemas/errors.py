"""Errors of tables."""


class TableError(ValueError):
    """A table violates its schema. The message names the file, row, id, column, value and rule of the first failure.

    Attributes:
        failures: Number of failures in all.
    """

    def __init__(self, message: str, failures: int = 1) -> None:
        super().__init__(message)
        self.failures = failures
