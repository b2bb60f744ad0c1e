"""Evaluation results of runs on a model card and in a model's evaluation file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from huggingface_hub import EvalResult, EvalResultEntry
from huggingface_hub.repocard_data import eval_results_to_model_index
from pluralbench_release.commits import (
    Head,
    Proposal,
    address,
    commit,
    commit_with_retry,
    open_remote,
    propose,
    text_at,
)
from pluralbench_release.markdown import escape_markdown
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import check_output, one_line, open_file, write_text
from yaml import YAMLError

from pluralbench.data.rules import rule_of
from pluralbench.errors import RunError
from pluralbench.publishing.evaluation_file import EVALUATION_FILE, evaluation_entries, with_entries
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Estimate

CARD = "README.md"
LEVEL = 0.95
TITLE = "Add evaluation results of PluralBench"
INDEX = "model-index"
FRONT_MATTER = re.compile(r"(\s*---[ \t]*\r?\n)(.*?)(^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
COMMENTS = re.compile(r"(?:\r?\n[ \t]*(?:#[^\n]*)?)*\Z")
REST_OF_LINE = re.compile(r"\A[ \t]*(?:#[^\n]*)?(?:\n|\Z)")


def write_model_card(runs: Sequence[Run], model: str, source: str | None = None) -> list[str]:
    """Add the results of runs to a model: to its card, and those on data of the Hub to its evaluation file.

    Results of the same benchmark, config and settings are replaced. Everything else of both files stays.

    Args:
        runs: Runs of one model.
        model: Directory whose `README.md` and `.eval_results/pluralbench.yaml` are written, or a model on the Hub
            (ORG/NAME), which gets one commit.
        source: Address where others can read the runs, for the evaluation file. Default: none.

    Returns:
        Paths of the written files, or the address of the commit.

    Raises:
        RunError: If there are no runs or runs of several models, a file cannot be read, or `model` is neither a
            directory nor ORG/NAME.
        pluralbench_release.ReleaseError: If the Hub refuses the commit.
    """
    _check_one_model(runs, model)
    results = [result for run in runs for result in eval_results(run)]
    entries = _entries(runs, source)
    folder = Path(model)
    if folder.is_dir():
        path, file = folder / CARD, folder / EVALUATION_FILE
        card = with_results(_text(path), results, folder.resolve().name, str(path))
        evaluation = with_entries(_text(file), entries, str(file)) if entries else None
        write_text(path, card)
        if evaluation is not None:
            file.parent.mkdir(exist_ok=True)
            write_text(file, evaluation)
        return [str(path), *([str(file)] if entries else [])]
    if not HUB_REPOSITORY.fullmatch(model):
        raise RunError(f"{model} is neither a model directory nor a model on the Hub (ORG/NAME).")
    remote = open_remote(model, kind="model")

    def send(head: Head) -> str:
        card = with_results(
            text_at(remote, head.commit, CARD), results, model.partition("/")[2], f"The card of {model}"
        )
        files = {CARD: card.encode()}
        if entries:
            before = text_at(remote, head.commit, EVALUATION_FILE)
            files[EVALUATION_FILE] = with_entries(before, entries, f"{EVALUATION_FILE} of {model}").encode()
        return commit(remote, head.commit, files, title=TITLE)

    return [address(remote, commit_with_retry(send, remote))]


def propose_results(runs: Sequence[Run], model: str, source: str | None = None) -> Proposal:
    """Open a pull request that adds the results of runs to the evaluation file of a model on the Hub.

    An open one of this account is updated.

    Args:
        runs: Runs of one model, on datasets of the Hub.
        model: The model (ORG/NAME), to which any account may open a pull request.
        source: Address where others can read the runs. Default: none.

    Raises:
        RunError: If there are no runs, runs of several models, or runs on other data only, or the model's file cannot
            be read.
        pluralbench_release.ReleaseError: If the model does not exist, or the Hub refuses the pull request.
    """
    _check_one_model(runs, model)
    entries = _entries(runs, source)
    if not entries:
        raise RunError(
            "None of the runs has a number on a dataset of the Hub, and the Hub shows no others; score the published "
            "dataset (ORG/NAME)."
        )
    where = f"{EVALUATION_FILE} of {model}"
    remote = open_remote(model, kind="model")
    return propose(remote, EVALUATION_FILE, lambda before: with_entries(before, entries, where), title=TITLE)


def _check_one_model(runs: Sequence[Run], model: str) -> None:
    names = sorted({run.name for run in runs})
    if len(names) != 1:
        models = f"the runs are of {', '.join(names)}" if names else "there is no run"
        raise RunError(f"A model card takes runs of one model, but {models}; pass only the runs of {model}.")


def _entries(runs: Sequence[Run], source: str | None) -> list[EvalResultEntry]:
    return [entry for run in runs for entry in evaluation_entries(eval_results(run), run.provenance.finished, source)]


def _text(path: Path) -> str | None:
    """Read a file that is to be replaced; None if there is none."""
    check_output(path)
    try:
        with open_file(path) as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise RunError(f"{path} is not UTF-8; save it as UTF-8.") from None


def eval_results(run: Run) -> list[EvalResult]:
    """Return the overall number of a run and the accuracy of its configs, from 0 to 1, as evaluation results.

    `metric_args` has the interval, its level and the number of decisions, for which the format has no field. The
    dataset is the one on the Hub with its commit, or else the benchmark's name. Missing numbers are left out.
    """
    config = run.config
    on_hub = config.data.revision is not None
    judging = {name: config.judge_setting(name) for name in ("setting", "variables")}
    options = {"profile": config.prompt.profile, **judging}
    settings = {name: value for name, value in options.items() if value is not None and value != "none"}
    judged = run.judged is not None
    places: list[tuple[str, str | None, Estimate]] = [("overall", None, run.headline)]
    metric = rule_of(config.benchmark.description).metric
    places += [(metric, name, run.estimate(metric, config=name)) for name in run.configs if not run.unreadable]
    return [
        EvalResult(
            task_type="text-generation" if judged else "text-classification",
            task_name="Judging which answer is better" if judged else "Reward modeling",
            dataset_type=config.data.location if on_hub else config.benchmark.name,
            dataset_name=config.benchmark.title,
            dataset_config=name,
            dataset_split=config.data.split,
            dataset_revision=config.data.revision,
            metric_type=rule_of(config.benchmark.description).metric,
            metric_name=", ".join([metric.capitalize(), *(f"{option} {value}" for option, value in settings.items())]),
            metric_value=round(estimate.value, 6),
            metric_args={
                "low": estimate.low,
                "high": estimate.high,
                "level": LEVEL,
                "n": estimate.n,
                **({} if name else {"items": run.items_counted, "of_items": run.items_total}),
                "rule": config.benchmark.rule,
            },
        )
        for metric, name, estimate in places
        if estimate.value is not None
    ]


def with_results(card: str | None, results: Sequence[EvalResult], name: str, where: str) -> str:
    """Return the text of a model card with these results; its other keys, results and text stay as they are written.

    Raises:
        RunError: If the card's YAML cannot be read, or cannot be changed without a loss.
    """
    text = f"# {escape_markdown(name)}\n" if card is None else card.removeprefix("\ufeff")
    block = FRONT_MATTER.match(text)
    if block is None and text.lstrip().startswith("---"):
        raise RunError(f"{where} begins with --- but its YAML has no end; put a line of --- behind it, by itself.")
    begin, written, end = block.groups() if block else ("---\n", "", "---\n")
    newline = "\r\n" if begin.endswith("\r\n") else "\n"
    try:
        changed = _with_index(written, results, name, newline)
    except (ValueError, TypeError, AttributeError, LookupError, YAMLError, RecursionError) as error:
        raise RunError(f"{where} cannot be read ({one_line(error, 200)}); fix its YAML.") from None
    return begin + changed + end + (text[block.end() :] if block else text)


def _with_index(written: str, results: Sequence[EvalResult], name: str, newline: str) -> str:
    """Return the YAML of a card with results; only its `model-index` is written anew."""

    def dumped(value: object) -> str:
        return str(yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=1000, line_break=newline))

    data = yaml.safe_load(written) or {}
    if not isinstance(data, dict):
        raise TypeError("it has no keys")
    wanted = data | {INDEX: _index(data.get(INDEX) or [], results, name)}
    root: Any = yaml.compose(written, yaml.SafeLoader)
    before, after = written.rstrip() and written.rstrip() + newline, ""
    for key, value in root.value if data else []:
        if key.value == INDEX:
            # To the parser, a value lasts until the next key: comments between the two stay.
            value_end = key.start_mark.index + len(
                COMMENTS.sub("", written[key.start_mark.index : value.end_mark.index])
            )
            before, after = written[: key.start_mark.index], REST_OF_LINE.sub("", written[value_end:], count=1)
    changed = dumped(wanted) if data and root.flow_style else before + dumped({INDEX: wanted[INDEX]}) + after
    if dumped(yaml.safe_load(changed)) != dumped(wanted):
        raise ValueError(f"other keys depend on how `{INDEX}` is written")
    return changed


def _index(models: list[Any], results: Sequence[EvalResult], name: str) -> list[Any]:
    """Return a card's `model-index` with results; what is not replaced stays, with keys that nothing here knows."""
    [own] = eval_results_to_model_index(name, list(results))
    if not models:
        return [own]
    places = [place for place, model in enumerate(models) if model.get("name") == name] or [*range(len(models))]
    if len(places) > 1:
        names = ", ".join(str(model.get("name")) for model in models)
        raise ValueError(f"its `{INDEX}` has {len(models)} models ({names}), none or several of them named {name}")
    new = [key for result in own["results"] for key in _keys(result)]
    kept = []
    for result in models[places[0]].get("results") or []:
        metrics = result.get("metrics") or []
        left = [metric for metric, key in zip(metrics, _keys(result), strict=True) if key not in new]
        if left == metrics:
            kept.append(result)
        elif left:
            kept.append(result | {"metrics": left})
    changed = models[places[0]] | {"results": [*kept, *own["results"]]}
    return [*models[: places[0]], changed, *models[places[0] + 1 :]]


def _keys(result: dict[str, Any]) -> list[tuple[object, ...]]:
    """Identify the metrics of a result without their values and the commit of their dataset."""
    dataset, task = result.get("dataset") or {}, result.get("task") or {}
    place = *(dataset.get(name) for name in ("type", "config", "split")), task.get("type")
    return [(*place, metric.get("type"), metric.get("name")) for metric in result.get("metrics") or []]
