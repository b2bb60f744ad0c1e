"""Numbers of runs on a model's card, as the Hub's evaluation results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from pluralbench_release.commits import Head, address, commit, commit_with_retry, open_remote, text_at
from pluralbench_release.tables import HUB_REPOSITORY
from pluralbench_runs import one_line, open_file, write_text
from yaml import YAMLError

from pluralbench.errors import RunError
from pluralbench.results.runs import Run

if TYPE_CHECKING:
    from pluralbench_measures.bootstrap import Estimate

CARD = "README.md"
LEVEL = 0.95


def write_model_card(runs: Sequence[Run], model: str) -> str:
    """Put the numbers of runs into the card of a model, and return where that is.

    model: a folder, whose `README.md` is written, or a model on the Hub (ORG/NAME), which gets one commit. Numbers of
    the same benchmark, config and settings are replaced; every other result and all text of the card stay.

    Raises `RunError` for no runs, for those of several models, for a card that cannot be read, and for a name that is
    neither; `pluralbench_release.ReleaseError` for what the Hub does not take.
    """
    names = sorted({run.name for run in runs})
    if len(names) != 1:
        told = "there are none" if not names else f"these are of {', '.join(names)}"
        raise RunError(f"A model's card takes the runs of one model, and {told}; give those of {model} alone.")
    results = [result for run in runs for result in eval_results(run)]
    folder = Path(model)
    if folder.is_dir():
        path = folder / CARD
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
        raise RunError(f"{model} is neither the folder of a model nor a model on the Hub, which is ORG/NAME.")
    remote = open_remote(model, kind="model")

    def send(head: Head) -> str:
        before = text_at(remote, head.commit, CARD)
        card = with_results(before, results, model.partition("/")[2], f"The card of {model}")
        return commit(remote, head.commit, {CARD: card.encode()}, title="Add evaluation results of PluralBench")

    return address(remote, commit_with_retry(send, remote))


def eval_results(run: Run) -> list[EvalResult]:
    """The overall number of a run and those of its configs, shares from 0 to 1; what is missing is left out.

    The interval, its level and how many decisions a number is over are in `metric_args`, since the format has no field
    for them. The dataset is the Hub's where the rows came from there, with its commit; else the benchmark's name.
    """
    config = run.config
    on_hub = config.data.revision is not None
    asked = {name: config.judge_setting(name) for name in ("setting", "variables")}
    told = {"profile": config.prompt.profile, **asked}
    settings = {name: value for name, value in told.items() if value is not None and value != "none"}
    judged = run.judged is not None
    places: list[tuple[str, str | None, Estimate]] = [("overall", None, run.headline)]
    places += [("accuracy", name, run.of(name)) for name in run.names("config", "config")]
    return [
        EvalResult(
            task_type="text-generation" if judged else "text-classification",
            task_name="Judging which answer is better" if judged else "Reward modelling",
            dataset_type=config.data.location if on_hub else config.benchmark.name,
            dataset_name=config.benchmark.title,
            dataset_config=name,
            dataset_split=config.data.split,
            dataset_revision=config.data.revision,
            metric_type="accuracy",
            metric_name=", ".join([metric.capitalize(), *(f"{what} {value}" for what, value in settings.items())]),
            metric_value=round(found.value, 6),
            metric_args={
                "low": found.low,
                "high": found.high,
                "level": LEVEL,
                "n": found.n,
                **({} if name else {"items": run.items_counted, "of_items": run.items_total}),
                "rule": config.benchmark.rule,
            },
        )
        for metric, name, found in places
        if found.value is not None
    ]


def with_results(card: str | None, results: Sequence[EvalResult], name: str, where: str) -> str:
    """The text of a model's card with these results; its other results, keys and its text stay.

    card: None for a model without one. name: the model's, for a card that has none. where: what errors call it.
    """
    try:
        made = ModelCard(card.removeprefix("\ufeff") if card is not None else f"---\n{{}}\n---\n\n# {name}\n")
    except (ValueError, TypeError, KeyError, AttributeError, YAMLError, RecursionError) as error:
        raise RunError(f"{where} cannot be read ({one_line(error, 200)}); mend its YAML.") from None
    data = cast("ModelCardData", made.data)
    new = {_what(result) for result in results}
    others = [result for result in data.eval_results or [] if _what(result) not in new]
    data.eval_results = [*others, *results]
    data.model_name = data.model_name or name
    return str(made)


def _what(result: EvalResult) -> tuple[object, ...]:
    """What a result is of, whatever its value and the commit of its dataset."""
    return (
        result.dataset_type,
        result.dataset_config,
        result.dataset_split,
        result.task_type,
        result.metric_type,
        result.metric_name,
    )
