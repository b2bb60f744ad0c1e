"""The dataset card: `README.md`, with YAML generated from the files and the recipe, and BibTeX entries."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl
from pluralbench_runs import one_line, plural, public_location
from yaml import YAMLError

from pluralbench_release.content import ReleaseTable
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import read_text
from pluralbench_release.licenses import license_yaml
from pluralbench_release.manifest import CARD, Entry, Manifest, Source, TableEntry
from pluralbench_release.markdown import escape_markdown, markdown_code

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
        source_datasets=_source_datasets(manifest.sources),
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
        latex=_escape_latex,
        software=installed("pluralbench-release"),
        project=PROJECT,
    ).content
    (directory / CARD).write_text(content.rstrip() + "\n", encoding="utf-8")


def _source_datasets(sources: Sequence[Source]) -> list[str]:
    """The datasets on the Hub that rows came from; `original` stands for sources elsewhere."""
    return sorted({source.location if source.revision else "original" for source in sources})


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


def _escape_latex(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text)
