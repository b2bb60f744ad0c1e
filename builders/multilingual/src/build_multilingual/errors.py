"""Why texts cannot be translated."""

from pluralbench_release.errors import BuildError


class UnsupportedLanguage(BuildError):
    """A language that nobody here knows, or that the translator does not."""


class TranslatorError(BuildError):
    """A translator that is not there, or that cannot work as asked."""
