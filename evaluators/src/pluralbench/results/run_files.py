"""Write and read the files of a run directory: `run.json`, `metrics.json`, and frames as Parquet files."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

import polars as pl
from pluralbench_runs import FrozenModel, Output, digest, file_digest
from pluralbench_tables import read_json
from pydantic import ConfigDict, Discriminator, Field, TypeAdapter, ValidationError, create_model

from pluralbench.errors import RunError
from pluralbench.metrics.frame import check_metrics, metrics_text
from pluralbench.results.kinds import RUN_KINDS, check_frame
from pluralbench.results.record import ProvenanceRecord, RunConfig, RunResult, provenance

SCHEMA_VERSION: Literal[2] = 2
RUN_SCHEMA: Literal["urn:pluralbench:run:2"] = "urn:pluralbench:run:2"
ITEMS_FILE, METRICS_FILE, RUN_FILE = "items.parquet", "metrics.json", "run.json"
UNFINISHED = ".work"
LEDGER_FILE = "ledger.parquet"


File = TypeVar("File", bound=FrozenModel)


class RunFile(FrozenModel):
    """Contents of `run.json`. `$schema` names its JSON Schema, `schema_version` the version."""

    # Read and written by JSON names: `$schema` is not a valid attribute name.
    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_schema: Literal["urn:pluralbench:run:2"] = Field(RUN_SCHEMA, alias="$schema")
    schema_version: Literal[2] = SCHEMA_VERSION
    verb: str
    config: Any
    result: Any
    provenance: ProvenanceRecord


def _file(verb: str, config: Any, result: Any) -> Any:
    kind: Any = Literal[verb]
    return create_model(f"Run of {verb}", __base__=RunFile, verb=kind, config=config, result=result)


FILES: Mapping[str, Any] = {verb: _file(verb, kind.config, kind.result) for verb, kind in RUN_KINDS.items()}
_EVERY: Any = Annotated[Union[*FILES.values()], Discriminator("verb")]
ANY_FILE: TypeAdapter[RunFile] = TypeAdapter(_EVERY, config=ConfigDict(defer_build=True))


def read_file(path: Path, model: TypeAdapter[File], version: int) -> File:
    """Read a JSON file with a pydantic model.

    Raises:
        RunError: The file has another version or is not valid.
    """
    values = read_json(path, RunError)
    actual = values.get("schema_version") if isinstance(values, dict) else None
    if actual != version:
        problem = "has no schema_version" if actual is None else f"has schema_version {actual}"
        raise RunError(f"{path} {problem}, but this version of pluralbench reads {version}; repeat the run.")
    try:
        return model.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field_path = ".".join(map(str, first["loc"]))
        problem = first["msg"].removeprefix("Value error, ")
        raise RunError(f"{path} is not a valid file of a run: `{field_path}`: {problem}.") from None


def write_run(
    output: Output,
    config: RunConfig,
    result: RunResult,
    metrics: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    *,
    texts: Mapping[str, str] | None = None,
    folders: Sequence[str] = (),
) -> None:
    """Write a run's files, and publish its directory atomically.

    A judge's ledger is moved from the working directory if it exists.

    Raises:
        RunError: A frame or the metrics are not valid.
    """
    file = FILES[config.verb](verb=config.verb, config=config, result=result, provenance=provenance())
    checked = {f"{name}.parquet": check_frame(name, frame, config, f"The {name}") for name, frame in frames.items()}
    written = {METRICS_FILE: metrics_text(check_metrics(metrics)), RUN_FILE: file.model_dump_json(indent=2)}
    own_texts = RUN_KINDS[config.verb].texts(config, frames.__getitem__)
    staged = output.staging()
    for name, frame in checked.items():
        frame.write_parquet(staged / name)
    for name, text in (written | own_texts | dict(texts or {})).items():
        (staged / name).write_text(text if text.endswith("\n") or not text else f"{text}\n", encoding="utf-8")
    if (output.work / LEDGER_FILE).exists():
        (output.work / LEDGER_FILE).rename(staged / LEDGER_FILE)
    for name in folders:
        link_folder(output.work / name, staged / name)
    output.publish(staged)


def files_digest(path: Path) -> str:
    """Return the SHA-256 over names and bytes of the files in a run's directory."""
    return digest({file.name: file_digest(file) for file in sorted(path.iterdir()) if file.is_file()})


def link_folder(source: Path, target: Path) -> None:
    """Hard-link a directory's files to another directory, or copy them if the file system has no links.

    Files are not moved, so that they survive for the next run if this process is killed during `Output.publish`.
    """
    shutil.copytree(source, target, copy_function=_link_or_copy)


def _link_or_copy(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
