"""Why a build of M-RewardBench cannot be made."""

from pluralbench_runs import UserError


class BuildError(UserError):
    """Root of this package's errors."""


class SourceError(BuildError):
    """A source that is missing, damaged or not of the shape it should have."""


class UnsupportedLanguage(BuildError):
    """A language that nobody here knows, or that the translator does not."""


class TranslatorError(BuildError):
    """A translator that is not there, or that cannot work as asked."""


class NothingLeft(BuildError):
    """No row was left."""
