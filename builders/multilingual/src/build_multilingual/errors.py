"""Errors of translators."""

from pluralbench_release.errors import BuildError


class UnsupportedLanguage(BuildError):
    """Language that the translator does not support."""


class TranslatorError(BuildError):
    """Translator that is unknown, not installed, or cannot work with these settings."""
