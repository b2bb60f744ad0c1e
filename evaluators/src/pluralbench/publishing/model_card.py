"""Evaluation results of runs on a model card."""

import re
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results
from pluralbench_release.commits import Head, address, commit, commit_with_retry, open_remote, text_at
from pluralbench_release.markdown import escape_markdown
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import check_output, one_line, open_file, write_text
from yaml import YAMLError

from pluralbench.errors import RunError
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Estimate

CARD = "README.md"
INDEX = "model-index"  # the key of the YAML with the results
LINE_BREAK = re.compile(r"\r\n|\r|\n")
FRONT_MATTER = re.compile(
    rf"(\s*---[ \t]*(?:{LINE_BREAK.pattern}))((?:.*?(?:{LINE_BREAK.pattern}))??)(---[ \t]*(?:{LINE_BREAK.pattern}|\Z))",
    re.DOTALL,
)
LEVEL = 0.95


def write_model_card(runs: Sequence[Run], model: str) -> str:
    """Add the results of runs to the card of a model.

    Results of the same benchmark, config and settings are replaced. Everything else on the card stays.

    Args:
        runs: Runs of one model.
        model: Directory whose `README.md` is written, or a model on the Hub (ORG/NAME), which gets one commit.

    Returns:
        Path or address of the card.

    Raises:
        RunError: If there are no runs or runs of several models, the card cannot be read, or `model` is neither a
            directory nor ORG/NAME.
        pluralbench_release.ReleaseError: If the Hub refuses the commit.
    """
    names = sorted({run.name for run in runs})
    if len(names) != 1:
        models = f"the runs are of {', '.join(names)}" if names else "there is no run"
        raise RunError(f"A model card takes runs of one model, but {models}; pass only the runs of {model}.")
    results = [result for run in runs for result in eval_results(run)]
    folder = Path(model)
    if folder.is_dir():
        path = folder / CARD
        check_output(path)
        try:
            with open_file(path) as file:
                before: str | None = file.read().decode()
        except FileNotFoundError:
            before = None
        except UnicodeDecodeError:
            raise RunError(f"{path} is not UTF-8; save it as UTF-8.") from None
        write_text(path, with_results(before, results, folder.resolve().name, str(path)))
        return str(path)
    if not HUB_REPOSITORY.fullmatch(model):
        raise RunError(f"{model} is neither a model directory nor a model on the Hub (ORG/NAME).")
    remote = open_remote(model, kind="model")

    def send(head: Head) -> str:
        before = text_at(remote, head.commit, CARD)
        card = with_results(before, results, model.partition("/")[2], f"The card of {model}")
        return commit(remote, head.commit, {CARD: card.encode()}, title="Add evaluation results of PluralBench")

    return address(remote, commit_with_retry(send, remote))


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
    places += [("accuracy", name, run.estimate("accuracy", config=name)) for name in run.configs if not run.unreadable]
    return [
        EvalResult(
            task_type="text-generation" if judged else "text-classification",
            task_name="Judging which answer is better" if judged else "Reward modeling",
            dataset_type=config.data.location if on_hub else config.benchmark.name,
            dataset_name=config.benchmark.title,
            dataset_config=name,
            dataset_split=config.data.split,
            dataset_revision=config.data.revision,
            metric_type="accuracy",
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
    """Return the text of a model card with these results.

    Only the key `model-index` of the YAML is written anew, with its other results. Everything else stays as it is,
    comments, order and line breaks too. A byte order mark is removed, since the Hub's client reads no YAML after it.

    Args:
        card: Text of the card; None for a model without one.
        results: Results to add or replace.
        name: Name of the model, for a card without one.
        where: Name of the card in errors.

    Raises:
        RunError: If the card's YAML cannot be read, or cannot be changed in this way.
    """
    text = f"# {escape_markdown(name)}\n" if card is None else card.removeprefix("\ufeff")
    match = FRONT_MATTER.match(text)
    line_break = next(iter(LINE_BREAK.findall(text)), "\n")
    start, front, end = match.groups() if match else (f"---{line_break}", "", f"---{line_break}")
    try:
        metadata = yaml.safe_load(front) or {}
        if not isinstance(metadata, dict):
            raise TypeError("it is not a mapping")  # noqa: TRY301 - as of the other errors
        index = _merge(metadata.get(INDEX) or [], results, name)
        new = yaml.safe_dump({INDEX: index}, sort_keys=False, allow_unicode=True, line_break=line_break)
        first, last = _place(front)
        changed = front[:first] + new + front[last:]
    except (ValueError, TypeError, YAMLError, RecursionError) as error:
        raise RunError(f"{where} cannot be read ({one_line(error, 200)}); fix its YAML.") from None
    if not _has_gained(changed, metadata, index):
        raise RunError(
            f"The results cannot be added to the YAML of {where}; write it with one `key: value` per line, and "
            f"`{INDEX}` once and without anchors."
        )
    return start + changed + end + text[match.end() if match else 0 :]


def _merge(index: list[dict[str, Any]], results: Sequence[EvalResult], name: str) -> list[dict[str, Any]]:
    """Return a `model-index` with these results: in the place of the same ones, with the others as they are."""
    try:
        model_index_to_eval_results(index or [{"name": name, "results": []}])
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its `{INDEX}` is not that of the Hub: {type(error).__name__} {error}") from None
    new = {_key(result) for result in results}
    kept = [{**model, "results": [*_others(model["results"], new)]} for model in index] or [
        {"name": name, "results": []}
    ]
    target = next((model for model in kept if model["name"] == name), kept[0])
    target["results"] += eval_results_to_model_index(name, [*results])[0]["results"]
    return kept


def _others(results: Sequence[dict[str, Any]], new: Set[tuple[object, ...]]) -> Iterator[dict[str, Any]]:
    for result in results:
        task, dataset = result["task"], result["dataset"]
        data = (dataset["type"], dataset.get("config"), dataset.get("split"), task["type"])
        metrics = [metric for metric in result["metrics"] if (*data, metric["type"], metric.get("name")) not in new]
        if metrics:
            yield {**result, "metrics": metrics}


def _place(front: str) -> tuple[int, int]:
    """Return where the lines of `model-index` begin and end in a YAML mapping; both are its end if it has none."""
    levels: list[bool] = []  # whether each open collection is in brackets
    names = 0  # keys and values of the outermost mapping
    start = stop = -1
    for event in yaml.parse(front):
        if isinstance(event, yaml.CollectionEndEvent):
            # The end of a collection without brackets is where the next one begins, after comments.
            stop = _offset(event.end_mark) if levels.pop() else stop
        elif isinstance(event, yaml.NodeEvent):
            if len(levels) == 1:
                if start >= 0 and names % 2 == 0:
                    break
                if names % 2 == 0 and getattr(event, "value", None) == INDEX:
                    start = _offset(event.start_mark)
                names += 1
            if isinstance(event, yaml.CollectionStartEvent):
                levels.append(bool(event.flow_style))
            else:
                stop = _offset(event.end_mark)
    if start < 0:
        return len(front), len(front)
    while stop < len(front) and front[stop - 1] not in "\r\n":
        stop += 1
    return start, stop + (front[stop - 1 : stop + 1] == "\r\n")


def _offset(mark: Any) -> int:
    """Return the place of a mark in the text; the type of yaml allows none, which `parse` never gives."""
    return int(mark.index)


def _has_gained(front: str, before: dict[object, object], index: list[dict[str, Any]]) -> bool:
    """Whether a YAML has the keys that it had, and this `model-index`."""
    try:
        metadata = yaml.safe_load(front)
    except YAMLError:
        return False
    keys = [*before] if INDEX in before else [*before, INDEX]
    # As text, in which a value that is repeated by a thousand aliases stands once.
    return [*metadata] == keys and yaml.safe_dump(metadata[INDEX]) == yaml.safe_dump(index)


def _key(result: EvalResult) -> tuple[object, ...]:
    """Identify a result without its value and the commit of its dataset."""
    return (
        result.dataset_type,
        result.dataset_config,
        result.dataset_split,
        result.task_type,
        result.metric_type,
        result.metric_name,
    )
