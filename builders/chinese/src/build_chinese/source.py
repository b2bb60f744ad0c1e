"""Where prompts, responses and annotations come from: files, or the sample in this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pluralbench_release import Source
from pluralbench_release.errors import SourceError
from pluralbench_runs import digest
from pluralbench_tables import read_jsonl

from build_chinese.rankings import Fault, Row, named, prompt_id, read_rankings
from build_chinese.recipe import SAMPLE, AnnotatedTable, PromptsTable, UnlabeledTable
from build_chinese.taxonomy import Taxonomy, read_taxonomy

FOLDER = Path(__file__).parent / "sample"
SCREENED = FOLDER / "screened.jsonl"


@dataclass(frozen=True)
class Loaded:
    """Rows with an `id` each, and where they came from."""

    rows: list[Row]
    source: Source


def place(location: str, name: str) -> Path:
    """A file that a recipe names: in the sample, or where it says."""
    return FOLDER / name if location == SAMPLE else Path(location)


def taxonomy_of(location: str) -> Taxonomy:
    """The taxonomy of a recipe. Raises `SourceError`."""
    return read_taxonomy(place(location, "taxonomy.toml"))


def prompts_of(table: PromptsTable, taxonomy: Taxonomy) -> list[Row]:
    """The prompts of a recipe, with the responses of its file or none yet.

    Raises `SourceError` for what is missing, an id that is there twice, and a category that the taxonomy does not know.
    """
    path = place(table.location, "prompts.jsonl")
    rows: list[Row] = []
    for number, given in enumerate(read_jsonl(path, SourceError), start=1):
        text = given.get("input", given.get("prompt"))
        if not isinstance(text, str) or not text.strip():
            raise SourceError(f"{path}, row {number:,}: it has no `input`.")
        category = given.get("category")
        names = [category] if isinstance(category, str) else category or []
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise SourceError(f"{path}, row {number:,}: its `category` is empty; name a main category of the taxonomy.")
        row: Row = {"id": _named(given, "id", path, number) or prompt_id(text), "input": text, "category": list(names)}
        taxonomy.check(row["id"], row["category"])
        rows.append(row | {"config": str(given.get("config") or "open"), "responses": []})
    _check_ids(rows, path)
    location = table.responses or (SAMPLE if table.location == SAMPLE else None)
    if location is not None:
        _add_responses(rows, [place(location, "responses.jsonl"), *[SCREENED] * (location == SAMPLE)])
    return rows


def annotated_rows(table: AnnotatedTable) -> Loaded:
    """The annotated prompts of a file. Raises `SourceError`."""
    rows = _rankings(Path(table.location))
    for row in rows:
        row["config"] = str(row.get("config") or "preference")
    return Loaded(rows, source_of(rows, table))


def unlabeled_rows(table: UnlabeledTable, taxonomy: Taxonomy) -> Loaded:
    """The prompts that a judge votes on, those with two responses or more. Raises `SourceError`."""
    rows = _rankings(place(table.location, "unlabeled.jsonl"), annotated=False, limit=table.limit)
    for row in rows:
        taxonomy.check(row["id"], row["category"])
    return Loaded(rows, source_of(rows, table))


def source_of(rows: Sequence[Row], table: AnnotatedTable | UnlabeledTable) -> Source:
    """What a release says of the rows' origin."""
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


def _rankings(path: Path, *, annotated: bool = True, limit: int | None = None) -> list[Row]:
    """The first prompts of a file, each with an id of its own and a category. Raises `SourceError`."""
    given = read_rankings(path, annotated=annotated)[:limit]
    rows = [row | {"id": row.get("id") or prompt_id(row["input"])} for row in given]
    _check_ids(rows, path)
    for row in rows:
        if not row.get("category"):
            raise SourceError(f"{path}: the prompt {row['id']} has no `category`.")
    return rows


def _named(row: Row, key: str, path: Path, number: int) -> str:
    try:
        return named(row.get(key))
    except Fault as fault:
        raise SourceError(f"{path}, row {number:,}: {fault}.") from None


def _check_ids(rows: Sequence[Row], path: Path) -> None:
    seen: set[str] = set()
    for row in rows:
        if row["id"] in seen:
            raise SourceError(f"{path} has the id {row['id']} more than once.")
        seen.add(row["id"])


def _add_responses(rows: Sequence[Row], paths: Sequence[Path]) -> None:
    by_id = {row["id"]: row for row in rows}
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for number, given in enumerate(read_jsonl(path, SourceError), start=1):
            prompt, name = (_named(given, key, path, number) for key in ("prompt", "id"))
            content = given.get("content")
            if not name or not isinstance(content, str):
                raise SourceError(f"{path}, row {number:,}: a response needs a `prompt`, an `id` and a `content`.")
            if prompt not in by_id:
                raise SourceError(f"{path}, row {number:,}: there is no prompt {prompt!r} for the response {name}.")
            if (prompt, name) in seen:
                raise SourceError(f"{path}, row {number:,}: the response {name} of the prompt {prompt} is there twice.")
            seen.add((prompt, name))
            by_id[prompt]["responses"].append({"id": name, "content": content, "model": str(given.get("model") or "")})
