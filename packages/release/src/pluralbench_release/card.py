"""The dataset card: `README.md`, with YAML generated from the files and the recipe, and BibTeX entries."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl
from pluralbench_runs import one_line, plural, public_location

from pluralbench_release.content import ReleaseTable
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import read_text
from pluralbench_release.manifest import CARD, Entry, Manifest, Source, TableEntry
from pluralbench_release.markdown import Part, escape_markdown, markdown_code, parts

if TYPE_CHECKING:
    from huggingface_hub import CardData

TEMPLATE = Path(__file__).with_name("card.md.jinja")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---", re.DOTALL)
SIZES = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
PROJECT = "https://github.com/pluralbench/pluralbench"
SPECIAL = re.compile(r"([&%$#_{}])")
EXAMPLE = re.compile(r'(load_dataset\()"(?:[^"\\\n]|\\.)*"')
VERSION = re.compile(r"^Version \S+(?=, [\d,]+ rows?(?: in \d+ tables)?, built by )", re.MULTILINE)
NOTE = re.compile(r"(?<=  note = \{Version )[^}\n]*(?=\})")
HOWPUBLISHED = re.compile(r"(  howpublished = \{)(?:\\url\{[^}\n]*\}, )?")

AnnotationsCreator = Literal["found", "crowdsourced", "expert-generated", "machine-generated", "no-annotation", "other"]
"""How labels came about: in the source, from people paid by the task, from experts, from a model; the Hub's words."""


class Section(Entry):
    """A part of the card in Markdown."""

    title: str
    body: str


class Card(Entry):
    """The builder's part of a dataset card; the rest comes from the files and the manifest.

    Attributes:
        pretty_name: Title of the card.
        summary: First paragraph.
        languages: BCP 47 codes.
        tasks: The Hub's task categories.
        tags: The Hub's tags.
        annotations_creators: Who decided which answer is better, in the Hub's words.
        columns: Meaning of each column, by name; the card lists those that a table has.
        sections: Further sections.
        citation: What to cite, in a sentence. Default: what applies to any data.
        papers: BibTeX entries of the papers. The entries of the release and of PluralBench are added.
    """

    pretty_name: str
    summary: str
    languages: list[str]
    tasks: list[str]
    tags: list[str]
    annotations_creators: tuple[AnnotationsCreator, ...]
    columns: dict[str, str]
    sections: list[Section]
    citation: str = "Cite the sources above and PluralBench, with the version and the content digests."
    papers: tuple[str, ...] = ()

    def of(self, origins: Set[str], own: str) -> Self:
        """Adapt the card to the origins of its data; only the data of the paper keep its title and citation."""
        if origins == {"paper"}:
            return self
        title = f"{self.pretty_name} (sample)" if origins == {"sample"} else own
        citation = type(self).model_fields["citation"].default
        return self.model_copy(update={"pretty_name": title, "citation": citation, "papers": ()})


def card_from(path: Path, tables: Mapping[str, pl.DataFrame | str], **values: Any) -> Card:
    """Read the builder's part of a card from a TOML file with the fields of `Card`.

    The summary and the bodies of its sections are Jinja templates of Markdown, with the functions `plural` and
    `public_location` and these `values`. `tables` are figures by title, sections after the first one of the file.
    """
    from jinja2 import Environment, StrictUndefined

    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - Markdown
    environment.globals |= {"plural": plural, "public_location": public_location, **values}

    def render(text: str) -> str:
        return re.sub("\n{3,}", "\n\n", environment.from_string(text).render()).strip()

    first, *others = [Section(title=part["title"], body=render(part["body"])) for part in texts.pop("sections")]
    figures = [
        Section(title=title, body=table if isinstance(table, str) else markdown_table(table))
        for title, table in tables.items()
    ]
    sections = [first, *figures, *others]
    return Card.model_validate(texts | {"summary": render(texts["summary"]), "sections": sections})


def card_configs(tables: list[TableEntry]) -> list[dict[str, Any]]:
    """Build the `configs:` of a card from the tables."""
    by_config: dict[str, list[TableEntry]] = {}
    for table in tables:
        by_config.setdefault(table.config, []).append(table)
    return [
        {"config_name": config, "data_files": [{"split": table.split, "path": table.path} for table in entries]}
        for config, entries in by_config.items()
    ]


def write_card(
    directory: Path, card: Card, manifest: Manifest, tables: Sequence[ReleaseTable], *, load_name: str
) -> None:
    """Write `README.md` for the tables of a release, whose example loads the dataset by `load_name`."""
    from huggingface_hub import DatasetCard, DatasetCardData

    rows = sum(table.rows for table in manifest.tables)
    data = DatasetCardData(
        pretty_name=card.pretty_name,
        **license_yaml(manifest.sources),
        language=card.languages,
        annotations_creators=list(card.annotations_creators),
        # "original" stands for sources that are not on the Hub.
        source_datasets=sorted({source.location if source.revision else "original" for source in manifest.sources}),
        task_categories=card.tasks,
        tags=card.tags,
        size_categories=next((name for limit, name in SIZES if rows < limit), "n>1M"),
        configs=card_configs(manifest.tables),
    )
    column_types = {name: _type_text(kind) for table in tables for name, kind in table.frame.schema.items()}
    content = DatasetCard.from_template(
        data,
        template_path=str(TEMPLATE),
        card=card,
        manifest=manifest,
        rows=rows,
        column_types=column_types,
        example=load_call(load_name, manifest.tables[0]),
        plural=plural,
        plain=escape_markdown,
        code=markdown_code,
        latex=partial(SPECIAL.sub, r"\\\1"),
        software=installed("pluralbench-release"),
        project=PROJECT,
    ).content
    (directory / CARD).write_text(content.rstrip() + "\n", encoding="utf-8")


def read_card(directory: Path) -> "CardData":
    """Read the YAML of a dataset card. Raises `ReleaseError` without a readable one."""
    try:
        text = read_text(directory / CARD, CARD)
    except FileNotFoundError:
        raise ReleaseError(f"{directory} has no card ({CARD}).") from None
    return parse_card_yaml(text)


def parse_card_yaml(text: str) -> "CardData":
    """Parse the YAML of an untrusted card.

    Raises:
        ReleaseError: The YAML is too long, merges mappings, or is not valid.
    """
    from huggingface_hub import DatasetCard
    from yaml import YAMLError

    try:
        return DatasetCard(text, ignore_metadata_errors=True).data
    except (ValueError, TypeError, AttributeError, RecursionError, YAMLError) as error:
        raise ReleaseError(f"The YAML of {CARD} cannot be read ({one_line(error, 120)}).") from None


def read_card_configs(directory: Path) -> dict[tuple[str, str], str]:
    """Read the files that a card names, by config and split. Raises as `read_card`."""
    try:
        rows = [
            (config["config_name"], file["split"], file["path"])
            for config in read_card(directory).get("configs") or []
            for file in config["data_files"]
        ]
    except (KeyError, TypeError) as error:
        raise ReleaseError(f"The `configs:` of {CARD} cannot be read ({one_line(repr(error), 120)}).") from None
    return {(str(config), str(split)): path for config, split, path in rows}


def _type_text(kind: pl.DataType) -> str:
    if isinstance(kind, pl.List):
        return f"list of {_type_text(kind.inner)}"  # type: ignore[arg-type] # never a class in a frame's schema
    if isinstance(kind, pl.Struct):
        return "{" + ", ".join(f"{field.name}: {_type_text(field.dtype)}" for field in kind.fields) + "}"  # type: ignore[arg-type]
    return str(kind).lower()


def load_call(location: str, table: TableEntry) -> str:
    """Format the Python call that loads a table of the release at a path, or at its ORG/NAME on the Hub."""
    path, config, split = (json.dumps(part, ensure_ascii=False) for part in (location, table.config, table.split))
    return f"load_dataset({path}, {config}, split={split})"


def markdown_table(frame: pl.DataFrame) -> str:
    """Format a small frame as a Markdown table, with numbers unchanged and texts escaped."""
    texts = pl.col(pl.String).map_elements(escape_markdown, pl.String)
    frame = frame.with_columns(texts).rename(escape_markdown)
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        fmt_str_lengths=1000,
    ):
        return str(frame)


def as_published(card: str, repository: str, version: str) -> str:
    """Set the repository and the version in the example and the BibTeX entry of a card, unless edited away."""
    card = NOTE.sub(version, VERSION.sub(f"Version {version}", card, count=1), count=1)
    card = EXAMPLE.sub(lambda match: f'{match[1]}"{repository}"', card, count=1)
    address = rf"\url{{https://huggingface.co/datasets/{repository}}}, "
    return HOWPUBLISHED.sub(lambda match: match[1] + address, card, count=1)


_IDENTIFIERS = """
apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m
afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5
cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0
cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0
cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl
lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib
pddl lgpl-lr deepfloyd-if-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 gemma unknown other
"""
HUB_LICENSES = frozenset(_IDENTIFIERS.split())
"""Identifiers that the Hub accepts as `license` (docs/hub/repositories-licenses.md of its documentation)."""
CREATIVE_COMMONS = re.compile(r"cc-(by(?:-[a-z]+)*)-([0-9.]+)")
OTHER = "other"


def license_yaml(sources: Iterable[Source]) -> dict[str, Any]:
    """Return the keys of a card's YAML that state the licenses of the sources.

    A license that the Hub does not know is `other`, with its name in `license_name`. `license_link` is the deed of a
    Creative Commons license, or the Hub's page of the source that states the license; it is absent for other files.
    """
    known: set[str] = set()
    others: dict[str, str | None] = {}
    for source in sources:
        for name in source.license.lower().split(", "):
            if name in HUB_LICENSES:
                known.add(name)
                continue
            link = f"https://huggingface.co/datasets/{source.location}" if source.revision else None
            if deed := CREATIVE_COMMONS.fullmatch(name):
                link = f"https://creativecommons.org/licenses/{deed[1]}/{deed[2]}/"
            others[re.sub(r"[^a-z0-9.+-]+", "-", name).strip("-")] = link
    values: dict[str, Any] = {"license": sorted(known | ({OTHER} if others else set()))}
    if len(values["license"]) == 1:
        [values["license"]] = values["license"]
    if others:
        values["license_name"] = "-and-".join(sorted(others))
        links = [others[name] for name in sorted(others) if others[name] is not None]
        values |= {"license_link": links[0]} if links else {}
    return values


def license_of(card: "CardData") -> str | None:
    """Return the license that a card states, several joined by ", "; of `other` its name, if it has one."""
    value = card.get("license")
    names = value if isinstance(value, list) else [] if value is None else [value]
    name = card.get("license_name")
    return ", ".join(str(name) if one == OTHER and name else str(one) for one in names) or None


BY_HAND = "<!-- Written by hand. What is below this line stays when this is published again. -->"
OWN_KEYS = (
    *("pretty_name", "license", "license_name", "license_link", "language", "task_categories", "tags"),
    *("size_categories", "annotations_creators", "source_datasets", "configs"),
)
"""The keys of the YAML that a release writes (`card.write_card`)."""


def merge_cards(card: str, current: str | None, published: str | None) -> str:
    """Merge the card of a release with the card on the Hub, keeping the text that was written there by hand.

    It is at the end of the card, below a line that says so (`BY_HAND`); everything above is generated from the release.
    These parts of the card on the Hub are kept: the text below that line; a section above it that is neither in the
    new card nor generated by the last published version; keys of the YAML that no release writes, and further `tags`.
    Handwritten sections of the release's own card are kept too, unless the Hub has a section with the same heading.

    Raises:
        ReleaseError: The YAML of a card cannot be read.
    """
    generated, own = _split_card(card)
    if current is None:
        return card
    above, below = _split_card(current)
    titles = {part.title for part in generated}
    titles |= {part.title for part in (_split_card(published)[0] if published else [])}
    handwritten = [part for part in above if part.title is not None and part.title not in titles] + below
    on_hub = {part.title for part in handwritten}
    handwritten = [part for part in own if part.title not in on_hub] + handwritten
    body = "".join(part.text for part in generated).rstrip() + "\n"
    texts = [part.text.strip() for part in handwritten if part.text.strip()]
    if texts:
        body += "\n" + BY_HAND + "\n\n" + "\n\n".join(texts) + "\n"
    return f"---\n{_metadata(card, current)}\n---\n{body}"


def _split_card(card: str) -> tuple[list[Part], list[Part]]:
    """The sections of a card without its YAML, above and below the line."""
    above, _, below = FRONT_MATTER.sub("", card, count=1).removeprefix("\n").partition(BY_HAND)
    return parts(above), [part for part in parts(below.strip()) if part.text]


def _metadata(card: str, current: str) -> "CardData":
    from huggingface_hub import CardData

    new, old = vars(parse_card_yaml(card)), vars(parse_card_yaml(current))
    own = {key: value for key, value in new.items() if key in OWN_KEYS}
    tags = [*_strings(new.get("tags")), *_strings(old.get("tags"))]
    others = {key: value for key, value in {**new, **old}.items() if key not in OWN_KEYS}
    return CardData(**own | ({"tags": [*dict.fromkeys(tags)]} if tags else {}), **others)


def _strings(value: object) -> Sequence[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
