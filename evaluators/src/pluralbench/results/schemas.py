"""The JSON Schemas of a run's files, for readers in other languages: those in the folder `schema`.

They are made from the models. `python -m pluralbench.results.schemas` in a checkout writes them again after a change; a
change that an earlier reader would not understand needs another `schema_version`, and with it another file.
"""

import json
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel

from pluralbench.results.downstream import DOWNSTREAM_SCHEMA, DownstreamRecord
from pluralbench.results.metrics_frame import METRICS_SCHEMA, MetricsFile
from pluralbench.results.personalize import PERSONALIZE_SCHEMA, PersonalizeRecord
from pluralbench.results.plans import PLANS_SCHEMA, PlansRecord
from pluralbench.results.record import RUN_SCHEMA, RunRecord

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS: dict[str, tuple[type[BaseModel], str]] = {
    "run-1.json": (RunRecord, RUN_SCHEMA),
    "downstream-1.json": (DownstreamRecord, DOWNSTREAM_SCHEMA),
    "personalize-1.json": (PersonalizeRecord, PERSONALIZE_SCHEMA),
    "plans-1.json": (PlansRecord, PLANS_SCHEMA),
    "metrics-1.json": (MetricsFile, METRICS_SCHEMA),
}


def made_schema(file: str) -> str:
    """The text of a schema, made from its model."""
    model, name = SCHEMAS[file]
    schema = {"$schema": DIALECT, "$id": name} | model.model_json_schema(mode="serialization")
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def read_schema(file: str) -> str:
    """The text of a schema as it lies in this package."""
    return files("pluralbench.results").joinpath("schema", file).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name in SCHEMAS:
        (Path(__file__).parent / "schema" / name).write_text(made_schema(name), encoding="utf-8")
