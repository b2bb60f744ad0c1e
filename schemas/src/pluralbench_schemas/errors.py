"""What is wrong with a table."""


class TableError(ValueError):
    """A table that breaks its schema. The message names file, row id, column, value and rule of the first failure.

    failures: how many failures there are in all.
    """

    def __init__(self, message: str, failures: int = 1) -> None:
        super().__init__(message)
        self.failures = failures
