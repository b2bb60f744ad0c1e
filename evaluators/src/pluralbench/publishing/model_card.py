"""Evaluation results of runs on a model card and in a model's evaluation file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData
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

from pluralbench.errors import RunError
from pluralbench.publishing.evaluation_file import EVALUATION_FILE, evaluation_entries, with_entries
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Estimate

CARD = "README.md"
LEVEL = 0.95
TITLE = "Add evaluation results of PluralBench"


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
    metric = config.benchmark.description.config_metric
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
            metric_type=config.benchmark.description.config_metric,
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
    """Return the text of a model card with these results; its other keys, results and text stay.

    Args:
        card: Text of the card; None for a model without one.
        results: Results to add, or to put in the place of the same ones.
        name: Name of the model, for a card without results.
        where: Name of the card in errors.

    Raises:
        RunError: If the card's YAML cannot be read.
    """
    text = f"# {escape_markdown(name)}\n" if card is None else card.removeprefix("\ufeff")
    try:
        changed = ModelCard(text if text.lstrip().startswith("---") else f"---\n{{}}\n---\n{text}")
        data, new = cast("ModelCardData", changed.data), {_key(result) for result in results}
        data.eval_results = [*(one for one in data.eval_results or [] if _key(one) not in new), *results]
        data.model_name = data.model_name or name
    except (ValueError, TypeError, YAMLError, RecursionError) as error:
        raise RunError(f"{where} cannot be read ({one_line(error, 200)}); fix its YAML.") from None
    return str(changed)


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
