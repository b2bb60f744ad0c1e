"""What to cite for a release, as BibTeX, and where a published release is."""

import re
from importlib.metadata import version as installed

from pluralbench_release.manifest import Manifest

PROJECT = "https://github.com/pluralbench/pluralbench"
SPECIAL = re.compile(r"([&%$#_{}])")
EXAMPLE = re.compile(r'(load_dataset\()"[^"\n]*"')
VERSION = re.compile(r"^Version \S+(?=, [\d,]+ rows?, built by )", re.MULTILINE)
NOTE = re.compile(r"(?<=  note = \{Version )[^}\n]*(?=\})")
MADE_WITH = re.compile(r"(  howpublished = \{)(?:\\url\{[^}\n]*\}, )?")


def release_entry(manifest: Manifest, title: str) -> str:
    """The entry of a release itself."""
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
    """The entry of PluralBench."""
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
    """A card whose example and whose BibTeX entry name the Hub repository (ORG/NAME) that the release lies in.

    It says `version` where it said of which version the release is.

    A card that was edited and has no such places any more stays as it is.
    """
    card = NOTE.sub(version, VERSION.sub(f"Version {version}", card, count=1), count=1)
    card = EXAMPLE.sub(lambda found: f'{found[1]}"{repository}"', card, count=1)
    address = rf"\url{{https://huggingface.co/datasets/{repository}}}, "
    return MADE_WITH.sub(lambda found: found[1] + address, card, count=1)


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)
