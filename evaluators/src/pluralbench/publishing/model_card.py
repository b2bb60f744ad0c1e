"""Evaluation results of runs on a model card."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData
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
