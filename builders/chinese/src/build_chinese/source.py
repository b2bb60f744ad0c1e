"""Load prompts, responses and annotations from files or from the embedded sample."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluralbench_release import Source
from pluralbench_release.errors import SourceError
from pluralbench_runs import FrozenModel, RecipeError, check_recipe, digest, parse_toml
from pluralbench_tables import read_jsonl, read_text
from pydantic import Field

from build_chinese.rankings import Row, RowError, check_prompt, parse_id, prompt_id, read_rankings
from build_chinese.recipe import SAMPLE, AnnotatedTable, PromptsTable, UnlabeledTable

JUDGE_PROMPTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("judge_prompts.toml").read_text(encoding="utf-8")
)


class SubCategory(FrozenModel):
    """A sub-category."""

    name: str = Field(min_length=1)
    english: str = ""


class Category(FrozenModel):
    """A main category. `criteria`: a key of the `criteria` in judge_prompts.toml, or their text in Chinese."""

    name: str = Field(min_length=1)
    english: str = ""
    description: str = ""
    criteria: str = Field(min_length=1)
    sub: list[SubCategory] = Field(default_factory=list)


class _File(FrozenModel):
    category: list[Category] = Field(min_length=1)


@dataclass(frozen=True)
class Taxonomy:
    """The main categories of a set of prompts by name, and their file, for errors."""

    path: Path
    categories: dict[str, Category]

    def criteria(self, main: str) -> str:
        """Return the judge's criteria for a main category. Raises `SourceError` if it does not exist."""
        criteria = self.get(main).criteria
        return str(JUDGE_PROMPTS["criteria"].get(criteria, criteria))

    def get(self, main: str) -> Category:
        """Return a main category. Raises `SourceError` if it does not exist."""
        if main not in self.categories:
            raise SourceError(f"{self.path} has no category {main!r}; it has {', '.join(self.categories)}.")
        return self.categories[main]

    def check(self, prompt: str, category: list[str]) -> None:
        """Raise `SourceError` if a prompt's [main, sub] is not in the taxonomy. The sub-category is optional."""
        subs = [entry.name for entry in self.get(category[0]).sub]
        if len(category) > 1 and category[1] not in subs:
            raise SourceError(
                f"The prompt {prompt} has the category {' / '.join(category)}, but {category[0]} in {self.path} has no "
                f"sub-category {category[1]!r}; it has {', '.join(subs) or 'none'}."
            )


def read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy, a TOML file with a `[[category]]` for each main category. Raises `SourceError`."""
    try:
        values = parse_toml(read_text(path, SourceError))
    except ValueError as error:
        raise SourceError(f"{path} is not valid TOML: {error}.") from None
    try:
        categories = check_recipe(_File, values, str(path)).category
    except RecipeError as error:
        raise SourceError(str(error).replace("Recipe ", "The taxonomy ", 1)) from None
    for category in categories:
        if (
            category.criteria.isascii()
            and category.criteria.isidentifier()
            and category.criteria not in JUDGE_PROMPTS["criteria"]
        ):
            raise SourceError(
                f"{path}: the criteria {category.criteria!r} of {category.name} do not exist; use one of "
                f"{', '.join(JUDGE_PROMPTS['criteria'])}, or write your own in Chinese."
            )
    by_name = {category.name: category for category in categories}
    if len(by_name) < len(categories):
        raise SourceError(f"{path} has two categories of one name; remove or rename one.")
    return Taxonomy(path, by_name)


FOLDER = Path(__file__).parent / "sample"
SCREENED = FOLDER / "screened.jsonl"


@dataclass(frozen=True)
class Loaded:
    """Rows, each with an `id`, and their origin."""

    rows: list[Row]
    source: Source


def sample_or_path(location: str, name: str) -> Path:
    """Return the path of a recipe's file; `name` is the file's name in the sample."""
    return FOLDER / name if location == SAMPLE else Path(location)


def taxonomy_of(location: str) -> Taxonomy:
    """Read the taxonomy of a recipe. Raises `SourceError`."""
    return read_taxonomy(sample_or_path(location, "taxonomy.toml"))


def prompts_of(table: PromptsTable, taxonomy: Taxonomy) -> list[Row]:
    """Read the prompts of a recipe, with the responses of its file if it has one.

    Raises:
        SourceError: A file or a field is missing, an id or an input is repeated, or a category is not in the taxonomy.
    """
    path = sample_or_path(table.location, "prompts.jsonl")
    rows: list[Row] = []
    for number, line in enumerate(read_jsonl(path, SourceError), start=1):
        try:
            checked = check_prompt({"id": None, "category": None} | line)
        except RowError as error:
            raise SourceError(f"{path}, row {number:,}: {error}.") from None
        row = {name: checked[name] for name in ("id", "input", "category")}
        taxonomy.check(row["id"], row["category"])
        rows.append(row | {"config": str(line.get("config") or "open"), "responses": []})
    _check_ids(rows, path)
    location = table.responses or (SAMPLE if table.location == SAMPLE else None)
    if location is not None:
        _add_responses(rows, [sample_or_path(location, "responses.jsonl"), *[SCREENED] * (location == SAMPLE)])
    return rows


def annotated_rows(table: AnnotatedTable) -> Loaded:
    """Read the annotated prompts of a file. Raises `SourceError`."""
    rows = _read_prompts(Path(table.location))
    for row in rows:
        row["config"] = str(row.get("config") or "preference")
    return Loaded(rows, source_of(rows, table))


def unlabeled_rows(table: UnlabeledTable, taxonomy: Taxonomy) -> Loaded:
    """Read the prompts that a judge votes on. Raises `SourceError`."""
    rows = _read_prompts(sample_or_path(table.location, "unlabeled.jsonl"), annotated=False, limit=table.limit)
    for row in rows:
        taxonomy.check(row["id"], row["category"])
    return Loaded(rows, source_of(rows, table))


def source_of(rows: Sequence[Row], table: AnnotatedTable | UnlabeledTable) -> Source:
    """Describe the rows' origin for the release."""
    sample = table.location == SAMPLE
    name = table.name or ("PluralBench sample" if sample else Path(table.location).name)
    return Source(
        name=name,
        location=table.location,
        digest=digest(list(rows)),
        rows=len(rows),
        license="apache-2.0" if sample else table.license or "unknown",
        attribution="Written for PluralBench." if sample else table.attribution or f"The authors of {name}.",
    )


def _read_prompts(path: Path, *, annotated: bool = True, limit: int | None = None) -> list[Row]:
    """Read the first prompts of a file, each with a unique id and a category."""
    rows = [
        row | {"id": row.get("id") or prompt_id(row["input"])}
        for row in read_rankings(path, annotated=annotated)[:limit]
    ]
    _check_ids(rows, path)
    for row in rows:
        if not row.get("category"):
            raise SourceError(f"{path}: the prompt {row['id']} has no `category`.")
    return rows


def _check_ids(rows: Sequence[Row], path: Path) -> None:
    ids: set[str] = set()
    by_input: dict[str, str] = {}
    for row in rows:
        if row["id"] in ids:
            raise SourceError(f"{path} has the id {row['id']} more than once; keep one of them.")
        ids.add(row["id"])
        first = by_input.setdefault(row["input"], row["id"])  # later steps merge prompts by their input
        if first != row["id"]:
            raise SourceError(f"{path}: the prompts {first} and {row['id']} have the same input; keep one of them.")


def _add_responses(rows: Sequence[Row], paths: Sequence[Path]) -> None:
    by_id = {row["id"]: row for row in rows}
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for number, line in enumerate(read_jsonl(path, SourceError), start=1):
            try:
                prompt, name = parse_id(line.get("prompt")), parse_id(line.get("id"))
            except RowError as error:
                raise SourceError(f"{path}, row {number:,}: {error}.") from None
            content = line.get("content")
            if not name or not isinstance(content, str):
                raise SourceError(f"{path}, row {number:,}: a response needs a `prompt`, an `id` and a `content`.")
            if prompt not in by_id:
                raise SourceError(f"{path}, row {number:,}: the prompt {prompt!r} of response {name} does not exist.")
            if (prompt, name) in seen:
                raise SourceError(f"{path}, row {number:,}: the response {name} of the prompt {prompt} is repeated.")
            seen.add((prompt, name))
            by_id[prompt]["responses"].append({"id": name, "content": content, "model": str(line.get("model") or "")})
