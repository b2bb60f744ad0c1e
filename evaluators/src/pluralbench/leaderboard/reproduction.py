"""A run made again from its data and what its model said, by the functions that made it.

Scores are taken from the run's items and replies from its ledger, so nothing is scored or asked. Rows, clusters,
subsets, ranks, right answers, outcomes, the calls behind each verdict, metrics and references then follow from the data
alone, and have to be those that the run's files hold.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import polars as pl
from pluralbench_calls import Backend, CallsError, Ledger, Replay
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import Scored
from pluralbench_rewards.judge import Judge, prompts_digest
from pluralbench_runs import FrozenModel, UserError, digest

from pluralbench.config import DataConfig, PromptConfig
from pluralbench.data.items import Items
from pluralbench.data.persona_items import PersonaItemSet, SampledItems
from pluralbench.data.persona_prompts import persona_digest
from pluralbench.data.personas import read_personas
from pluralbench.data.prompts import UserContext, read_plans
from pluralbench.data.texts import first_ids
from pluralbench.errors import DataError
from pluralbench.evaluation.judge import JudgeContexts, compute_judge_metrics, judge_items
from pluralbench.evaluation.loading import LoadedBenchmark
from pluralbench.evaluation.personas import compute_persona_metrics, draw_run_items, make_persona_judge
from pluralbench.evaluation.personas import judge_persona_items as judge_persona_items_again
from pluralbench.leaderboard.findings import Finding, error_finding
from pluralbench.results.decisions import decide, score_items
from pluralbench.results.evaluations import EvaluationRunConfig, JudgeRunConfig, PersonaJudgeRunConfig
from pluralbench.results.examples import data_location, reload_items
from pluralbench.results.runs import ITEMS_FILE, LEDGER_FILE, RUN_FILE, Run

OTHER_PROMPTS = "The judge was asked by other prompts than those of this version of pluralbench."
COMMAND = "pluralbench check RUN --data PLACE"


class RunInputs(NamedTuple):
    """What a run is made again from, and does not keep itself.

    data: where its data is now, if it is not where the run found it. plans, personas: the files that its prompts tell
    from, where they do.
    """

    data: str | None = None
    plans: Path | None = None
    personas: Path | None = None


class RunData(NamedTuple):
    """A run's data, read again. place: where. loaded: with what prompts tell; None for the persona judge.

    drawn: of the persona judge's items those that the run is of; None for other verbs.
    """

    place: str
    read: Items | PersonaItemSet
    loaded: LoadedBenchmark | None
    drawn: SampledItems | None

    @property
    def items(self) -> pl.DataFrame:
        """The items that the run has to be of, in their order."""
        return self.read.frame if self.drawn is None else self.drawn.frame


DataCache = dict[str, Items | PersonaItemSet | UserError]
"""Data as it was read last, or why it was not, for runs that were made from the same one after another."""


def _read(run: Run, data: str | None, last: DataCache) -> Items | PersonaItemSet:
    """The items of a run's data; see `reload_items`. Raises a `UserError` for data that cannot be read."""
    asked = run.config.data.model_dump(mode="json", include={"configs", "split", "limit", "on_empty", "reference"})
    described = run.config.benchmark.description.model_dump(mode="json")
    key = digest([data_location(run, data), data, run.verb, asked, described])
    if key not in last:
        last.clear()
        try:
            last[key] = reload_items(run, data, COMMAND)
        except UserError as error:
            last[key] = error
    found = last[key]
    if isinstance(found, UserError):
        raise found
    return found


def run_data(run: Run, files: RunInputs, last: DataCache | None = None) -> RunData:
    """The data of a run, with what its prompts tell. Raises a `UserError` for what cannot be read."""
    read = _read(run, files.data, {} if last is None else last)
    place, config = data_location(run, files.data), run.config
    if isinstance(read, PersonaItemSet) or isinstance(config, PersonaJudgeRunConfig):
        assert isinstance(read, PersonaItemSet) and isinstance(config, PersonaJudgeRunConfig)  # noqa: S101, PT018 - of one verb
        return RunData(place, read, None, draw_run_items(config, read))
    prompt = PromptConfig.model_validate(config.prompt.model_dump(include={"profile", "profile_size"}))
    asked = DataConfig(configs=config.data.configs, split=config.data.split, limit=config.data.limit)
    plans = read_plans(files.plans) if files.plans is not None and prompt.profile == "plan" else {}
    of_file = files.personas if config.prompt.personas_digest is not None else None
    personas = {} if of_file is None else read_personas(of_file)
    told = UserContext(prompt, plans, personas, read.history)
    loaded = LoadedBenchmark(config.benchmark.name, config.benchmark.description, read, asked, told, None, read.frame)
    return RunData(place, read, loaded, None)


def check_rows(run: Run, source: RunData) -> list[Finding]:
    """Whether the run is of all items of its data, and of no other, and its record says of the data what it is."""
    found: list[Finding] = []
    key = ["config", "id", "digest"]
    ours, theirs = run.items.select(key).unique(maintain_order=True), source.items.select(key)
    for one, other, said in (
        (ours, theirs, f"{source.place} does not have the texts of {{}}."),
        (theirs, ours, f"{ITEMS_FILE} lacks {{}} that {source.place} has."),
    ):
        ids = one.join(other, on=key, how="anti", maintain_order="left")["id"].to_list()
        if ids:
            found.append(error_finding("data", said.format(f"{len(ids):,} items (ids {first_ids(ids)})")))
    data = run.config.data
    told: dict[str, Any] = {"digest": source.read.digest}
    if isinstance(source.read, Items):
        told |= {name: source.read.source[name] for name in ("rows", "empty", "on_empty", "clusters", "history")}
    else:
        told["rows"] = dict(source.read.frame["config"].value_counts().iter_rows())
    plain = {name: value.model_dump() if isinstance(value, FrozenModel) else value for name, value in told.items()}
    again = data.model_validate(data.model_dump() | plain)
    found += [
        error_finding("data", f"{RUN_FILE} says {name} of the data, and {source.place} has another.")
        for name in told
        if getattr(again, name) != getattr(data, name)
    ]
    return found


def reproduce_run(run: Run, source: RunData) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Items and metrics of the run made again; its rows are those of the data (see `check_rows`).

    Raises `CallsError` for a call that the ledger lacks, `DataError` for prompts that cannot be made again.
    """
    if run.judged is not None:
        with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
            ledger.add_from(run.path / LEDGER_FILE)
            items = judge_from_ledger(run, source, ledger, Replay())
            if isinstance(run.config, PersonaJudgeRunConfig):
                return items, compute_persona_metrics(run.config, items, source.items)
            assert source.loaded is not None  # noqa: S101 - only the persona judge has none
            return items, compute_judge_metrics(source.loaded, items, ledger.frame())
    assert source.loaded is not None  # noqa: S101 - only the persona judge has none
    loaded = source.loaded
    scored = recorded_scores(run, loaded.frame)
    decisions = decide(loaded.frame, scored.scores, scored.cut)
    return score_items(loaded.benchmark, loaded.frame, scored, decisions), loaded.compute_metrics(decisions)


def check_prompts(config: EvaluationRunConfig, source: RunData) -> LoadedBenchmark:
    """The items with what the run's prompts tell, which have to be those that are made now. Raises `DataError`."""
    loaded = source.loaded
    assert loaded is not None  # noqa: S101 - only the persona judge has none
    again, kept = loaded.prompt_record(), config.prompt
    if again.wordings_digest != kept.wordings_digest:
        raise DataError("Its prompts have other words than those of this version of pluralbench.")
    if again != kept:
        raise DataError(
            "Its prompts tell what a file of plans or personas says, which the run does not keep: give that file "
            "(`plans`, `personas`)."
        )
    return loaded


def judge_from_ledger(
    run: Run,
    source: RunData,
    ledger: Ledger,
    backend: Backend,
    *,
    places: Sequence[int] | None = None,
    connection: ConnectionConfig | None = None,
) -> pl.DataFrame:
    """What a judge says of the items at some places, or of all. Raises `CallsError`, `DataError`."""
    config = run.config
    if isinstance(config, PersonaJudgeRunConfig):
        if config.prompts_digest != persona_digest():
            raise DataError(OTHER_PROMPTS)
        frame, wanted = source.items, None if places is None else set(places)
        mine = [wanted is None or place in wanted for place in range(frame.height)]
        reached = connection or config.connection
        persona_judge = make_persona_judge(config.model, reached, ledger, config.judging, config.seed, backend)
        return judge_persona_items_again(persona_judge, config.judging, frame, mine)
    assert isinstance(config, JudgeRunConfig)  # noqa: S101 - `score` has no ledger
    if config.prompts_digest != prompts_digest():
        raise DataError(OTHER_PROMPTS)
    loaded = check_prompts(config, source)
    if places is not None:
        loaded = loaded._replace(frame=loaded.frame[list(places)])
    judging = config.judging
    the_judge = Judge(
        config.model,
        connection or config.connection,
        ledger,
        judging.attempts,
        judging.chosen_format,
        judging.criterion,
        judging.verdict_parsing,
        answered_by=backend,
    )
    return judge_items(the_judge, loaded, JudgeContexts.for_items(loaded, judging), judging, config.seed).frame


def recorded_scores(run: Run, items: pl.DataFrame) -> Scored:
    """The scores that a run's items hold, by the items of its data. Raises `DataError` for a response without one."""
    rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in run.items.iter_rows(named=True):
        rows[row["config"], row["id"]].append(row)
    scored = Scored([])
    for place, (config, item, names) in enumerate(items.select("config", "id", "response_ids").iter_rows()):
        own = rows[config, item]
        first = own[0]
        if "response" in first:
            by_name = {row["response"]: (row["score"], row["tokens"]) for row in own}
            if by_name.keys() != set(names) or len(own) != len(names):
                raise DataError(f"{ITEMS_FILE} does not have the responses of id {item} once each.")
            values, tokens = zip(*(by_name[name] for name in names), strict=True)
        else:
            values, tokens = zip(*((first[f"score_{side}"], first[f"tokens_{side}"]) for side in names), strict=True)
        dropped = first["reason"]
        if dropped is not None:
            scored.dropped[place] = dropped
        scored.scores.append([] if dropped is not None else [math.nan if value is None else value for value in values])
        scored.tokens.append([] if None in tokens else list(tokens))
        scored.cut.append(first["tokens_cut"] or 0)
    return scored


def row_key(items: pl.DataFrame) -> list[str]:
    """The columns that name a row of a run's items."""
    judged = ("chosen", "rejected") if "verdict_chosen_first" in items.columns else ()
    return [name for name in ("config", "id", "response", *judged) if name in items.columns]


def check_items_again(run: Run, again: pl.DataFrame, place: str) -> list[Finding]:
    """Whether each row of the run's items is what its data gives."""
    key = row_key(again)
    ours = run.items.with_columns(pl.col(name).cast(again.schema[name]) for name in key)
    both = again.join(ours, on=key, how="left", nulls_equal=True, suffix="_kept", maintain_order="left")
    found = []
    if ours.height != again.height or ours.join(again, on=key, how="anti", nulls_equal=True).height:
        found.append(
            error_finding(
                "items", f"{ITEMS_FILE} has other rows than {place} gives: {ours.height:,}, not {again.height:,}."
            )
        )
    for name in again.columns:
        if name in key:
            continue
        made, kept = both[name].to_list(), both[f"{name}_kept"].to_list()
        ids = [item for item, a, b in zip(both["id"], made, kept, strict=True) if a != b and not (_nan(a) and _nan(b))]
        if ids:
            found.append(
                error_finding(
                    "items",
                    f"{ITEMS_FILE} has in {len(ids):,} rows another `{name}` than {place} gives "
                    f"(ids {first_ids(ids)}).",
                )
            )
    return found


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def check_reproduced(run: Run, source: RunData) -> tuple[list[Finding], pl.DataFrame | None]:
    """Whether the run's rows are what its data, its scores and its recorded replies give; with the metrics of these."""
    found = check_rows(run, source)
    if found:
        return found, None
    try:
        items, metrics = reproduce_run(run, source)
    except CallsError as error:
        return [error_finding("replies", f"{LEDGER_FILE} does not hold what {source.place} asks. {error}")], None
    return check_items_again(run, items, source.place), metrics
