"""`eval.yaml`, which tells the Hub what models are scored on, for the leaderboard of a dataset.

The format is that of the Hub's documentation (https://huggingface.co/docs/hub/eval-results).
"""

from collections.abc import Sequence
from pathlib import Path

import yaml
from pluralbench_runs import one_line

from pluralbench_release.content import ReleaseTable
from pluralbench_release.errors import ReleaseError
from pluralbench_release.files import read_text
from pluralbench_release.manifest import EVALUATION, Manifest

FRAMEWORK = "pluralbench"
"""Name of the evaluation framework, which the Hub has to know."""
OVERALL = "overall"
"""Task of the overall number; the other tasks are configs."""


def evaluation_text(name: str, description: str, scored: Sequence[ReleaseTable]) -> str:
    """Format `eval.yaml`: a task for the overall number, and one for each table that enters it."""
    splits = {table.split for table in scored}
    overall = {"id": OVERALL} | ({"split": splits.pop()} if len(splits) == 1 else {})
    tasks = [overall, *({"id": table.config, "config": table.config, "split": table.split} for table in scored)]
    about = {"name": name, "description": " ".join(description.split()), "evaluation_framework": FRAMEWORK}
    return yaml.safe_dump(about | {"tasks": tasks}, allow_unicode=True, sort_keys=False, width=1000)


def evaluation_problems(directory: Path, manifest: Manifest) -> list[str]:
    """Compare the tasks of `eval.yaml` with the tables of the manifest; a sentence if they differ."""
    tables = {(table.config, table.config, table.split) for table in manifest.tables}
    try:
        tasks = yaml.safe_load(read_text(directory / EVALUATION, EVALUATION))["tasks"]
        listed = [(task["id"], task.get("config"), task.get("split")) for task in tasks]
        wrong = [task[0] for task in listed if task[0] != OVERALL and task not in tables]
        wrong += [OVERALL] if [task[1] for task in listed if task[0] == OVERALL] != [None] else []
    except ReleaseError as error:
        return [str(error)]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return [f"{EVALUATION} cannot be read ({one_line(repr(error), 120)})."]
    return [f"The tasks of {EVALUATION} and the manifest differ in {', '.join(map(str, wrong))}."] if wrong else []
