"""JSON Schemas of a run's files, for readers in other languages, generated from the models that write them.

`python -m pluralbench.results.schemas FOLDER` writes them. An incompatible change needs a new `schema_version`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pluralbench_runs import write_text
from pydantic import TypeAdapter

from pluralbench.metrics.frame import METRICS_SCHEMA, MetricsFile
from pluralbench.results.run_files import ANY_FILE, RUN_SCHEMA

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, str]:
    """Return the text of each schema by file name."""
    models: dict[str, tuple[TypeAdapter[Any], str]] = {
        "run.schema.json": (ANY_FILE, RUN_SCHEMA),
        "metrics.schema.json": (TypeAdapter(MetricsFile), METRICS_SCHEMA),
    }
    return {
        file: json.dumps({"$schema": DIALECT, "$id": name} | model.json_schema(mode="serialization"), indent=1) + "\n"
        for file, (model, name) in models.items()
    }


if __name__ == "__main__":
    for file, text in json_schemas().items():
        write_text(Path(sys.argv[1], file), text)
