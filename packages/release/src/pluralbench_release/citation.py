"""BibTeX entries of releases, and the names of published releases on their cards."""

import re
from importlib.metadata import version as installed

from pluralbench_release.manifest import Manifest

PROJECT = "https://github.com/pluralbench/pluralbench"
SPECIAL = re.compile(r"([&%$#_{}])")
EXAMPLE = re.compile(r'(load_dataset\()"(?:[^"\\\n]|\\.)*"')
VERSION = re.compile(r"^Version \S+(?=, [\d,]+ rows?, built by )", re.MULTILINE)
NOTE = re.compile(r"(?<=  note = \{Version )[^}\n]*(?=\})")
HOWPUBLISHED = re.compile(r"(  howpublished = \{)(?:\\url\{[^}\n]*\}, )?")


def release_entry(manifest: Manifest, title: str) -> str:
    """Format the BibTeX entry of a release."""
    builder = manifest.builder
    return "\n".join(
        (
            f"@misc{{{manifest.name},",
            f"  title = {{{_escaped(title)}}},",
            f"  howpublished = {{built with {builder.distribution} {builder.version}}},",
            f"  note = {{Version {manifest.version}}},",
            "}",
        )
    )


def software_entry() -> str:
    """Format the BibTeX entry of PluralBench."""
    return "\n".join(
        (
            "@software{pluralbench,",
            "  title = {PluralBench},",
            "  author = {{The PluralBench authors}},",
            f"  version = {{{installed('pluralbench-release')}}},",
            f"  url = {{{PROJECT}}},",
            "}",
        )
    )


def as_published(card: str, repository: str, version: str) -> str:
    """Set the repository (ORG/NAME) and the version in the example and the BibTeX entry of a card.

    Passages that were edited away stay away.
    """
    card = NOTE.sub(version, VERSION.sub(f"Version {version}", card, count=1), count=1)
    card = EXAMPLE.sub(lambda match: f'{match[1]}"{repository}"', card, count=1)
    address = rf"\url{{https://huggingface.co/datasets/{repository}}}, "
    return HOWPUBLISHED.sub(lambda match: match[1] + address, card, count=1)


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)
