"""Check the directories of `best-of-n`, `optimize` and `personalize`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from pluralbench_calls import Backend, CallsError, Ledger, Limits, Replay
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import Group, ModelRecord, Scored
from pluralbench_rewards.judge import Judge
from pluralbench_runs import UserError

from pluralbench.data.texts import first_ids
from pluralbench.downstream.candidates import Policy, history_of, policy_messages, user_turns
from pluralbench.downstream.curves import curve_numbers, level_numbers
from pluralbench.downstream.outcomes import OutcomeJudge, aspect_titles
from pluralbench.downstream.records import (
    build_outcome_table,
    outcome_record,
    read_outcome_table,
    rewarded_record,
    rollout_outcome_table,
    sampling_record,
)
from pluralbench.downstream.rollout import Rollout, RolloutSetup, rollout
from pluralbench.errors import DataError
from pluralbench.leaderboard.consistency import check_metrics
from pluralbench.leaderboard.findings import UNREAD, CheckResult, Finding, error_finding, is_refused, warning_finding
from pluralbench.leaderboard.records import check_benchmark_record, check_data_record
from pluralbench.leaderboard.reproduction import (
    DIFFERENT_PROMPTS,
    OtherPrompts,
    RunData,
    RunInputs,
    check_prompts,
    run_data,
)
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.leaderboard.unusual import check_selection, check_settings, check_software
from pluralbench.metrics.personalize import method_numbers
from pluralbench.results.downstream import START, BestOfNRunConfig
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.runs import LEDGER_FILE, RUN_FILE, Downstream, Personalized

REMARK_CHECKS = (check_selection, check_settings, check_software)

NO_CONNECTION = ConnectionConfig(base_url="http://localhost")
"""Endpoint of a judge whose replies are recorded; nothing is sent to it."""

Rewards = Mapping[tuple[str, str], Sequence[float | None]]
"""Recorded rewards of a conversation's candidates, by id of its group and digest of its messages."""


@dataclass(frozen=True)
class RecordedRewards:
    """A reward model whose scores are those of a run."""

    model: ModelRecord
    rewards: Rewards

    def record(self) -> ModelRecord:
        """Return the recorded model."""
        return self.model

    def score(self, groups: Sequence[Group], **_: Any) -> Scored:
        """Look up the rewards. Raises `DataError` if a candidate has none."""
        scores = []
        for group in groups:
            values = self.rewards.get((group.id, history_of(policy_messages(group))), ())
            if len(values) != len(group.responses):
                raise DataError(f"rewards.parquet does not have the rewards of all candidates of id {group.id}.")
            scores.append([float("nan") if value is None else value for value in values])
        return Scored(scores)


def check_downstream(
    run: Downstream, files: RunInputs | None = None, rescoring: Rescoring | None = None
) -> CheckResult:
    """Check a run of `best-of-n` or `optimize`.

    A run of `best-of-n` is made again from its data, the recorded calls of policy and judge, and the recorded rewards,
    by the function that made it. Of `optimize` only the numbers are computed again: its requests name the weights of
    two policies, of which the run has one.

    Args:
        run: Run to check.
        files: Location of the data, and the files of plans or personas. Default: the location that the run records.
        rescoring: Not done for these runs; a remark says so. Default: not asked for.

    Returns:
        The state of the check and the findings, as for a run of a benchmark.
    """
    remarks = [remark for check in REMARK_CHECKS for remark in check(run)]
    findings = [*check_benchmark_record(run)]
    try:
        if isinstance(run.config, BestOfNRunConfig):
            findings += _check_best_of_n(run, files or RunInputs())
        else:
            findings += [*_check_levels(run), _only_numbers(run)]
    except UserError as error:
        findings.append(_file_error(error))
    return _result(run, [*findings, *remarks], rescoring)


def _check_best_of_n(run: Downstream, files: RunInputs) -> list[Finding]:
    findings: list[Finding] = []
    try:
        source = run_data(run, files)
        findings += check_data_record(run, source, moved=files.data is not None)
        check_prompts(run.config, source)
    except UserError as error:
        return [*findings, *_check_curves(run), _unread(error)]
    if is_refused(findings):
        return findings
    try:
        return [*findings, *_check_rollout(run, source)]
    except OtherPrompts as error:
        return [*findings, *_check_curves(run), _unread(error)]


def _unread(error: UserError) -> Finding:
    return warning_finding(UNREAD, f"It was not checked against its data. {error}")


def check_personalized(run: Personalized, rescoring: Rescoring | None = None) -> CheckResult:
    """Check that the numbers of a run of `personalize` follow from its decisions, and these from their margins.

    Args:
        run: Run to check.
        rescoring: Not done for these runs; a remark says so. Default: not asked for.
    """
    findings = []
    items = run.items
    wrong = items.filter((pl.col("margin") > 0).fill_null(value=False) != pl.col("correct"))
    if wrong.height:
        ids = first_ids(wrong["item"].unique(maintain_order=True).to_list())
        findings.append(error_finding("items", f"{wrong.height:,} decisions contradict their margins (ids {ids})."))
    by_config = {name: record.by_config for name, record in run.result.sets.items()}
    if {*items["set"].unique()} != by_config.keys():
        findings.append(error_finding("record", f"{RUN_FILE} records other sets than items.parquet has."))
    else:
        findings += check_metrics(run, metrics_frame(method_numbers(items, by_config)))
    return _result(run, [*findings, _only_numbers(run), *check_software(run)], rescoring)


def _result(run: Downstream | Personalized, findings: Sequence[Finding], rescoring: Rescoring | None) -> CheckResult:
    """Return the state that follows from the findings, with a remark if items were to be scored again."""
    asked = (
        [] if rescoring is None else [warning_finding("rescored", f"No item of a run of {run.verb} is scored again.")]
    )
    if is_refused(findings):
        unread = [finding for finding in findings if finding.about != UNREAD]
        return CheckResult("refused", sorted([*unread, *asked], key=lambda finding: finding.level))
    unread = [finding for finding in findings if finding.about == UNREAD]
    return CheckResult("consistent" if unread else "checked", [*findings, *asked])


def _only_numbers(run: Downstream | Personalized) -> Finding:
    text = f"Only the numbers of a run of {run.verb} are computed again; its data and its models are not read."
    return warning_finding(UNREAD, text)


def _file_error(error: UserError) -> Finding:
    """Return the finding of a check for which files are damaged or calls are missing."""
    if isinstance(error, CallsError):
        return error_finding("replies", f"{LEDGER_FILE} lacks calls that the run needs. {error}")
    return error_finding("files", str(error))


def _check_levels(run: Downstream) -> Iterator[Finding]:
    numbers: Any = ()
    if run.result.outcome is not None:
        turns = run.result.sampling.turns
        start = (run.frame(f"candidates_{START}"), run.frame("rewards"), run.frame("selected"))
        before = build_outcome_table(*start, run.frame(f"outcomes_{START}"), [], turns)
        after = (run.frame("candidates"), run.frame("rewards"), run.frame("selected"), run.frame("outcomes"))
        numbers = level_numbers(before, build_outcome_table(*after, [], turns), by_config=_by_config(run))
    yield from check_metrics(run, metrics_frame(numbers), "outcomes.parquet")


def _check_curves(run: Downstream) -> Iterator[Finding]:
    numbers = curve_numbers(read_outcome_table(run), run.config.sampling.sizes, by_config=_by_config(run))
    yield from check_metrics(run, metrics_frame(numbers), "its frames")


def _by_config(run: Downstream) -> bool:
    return run.config.benchmark.description.overall != "items"


def _check_rollout(run: Downstream, source: RunData) -> Iterator[Finding]:
    """Make the run again from its calls and rewards, and compare frames, numbers and counts."""
    config, loaded = run.config, source.loaded
    assert loaded is not None and isinstance(config, BestOfNRunConfig)  # noqa: S101, PT018 - checked by the caller
    groups, items = loaded.groups(), loaded.frame
    ids = dict(zip(items.select("config", "id").iter_rows(), (group.id for group in groups), strict=True))
    if config.rewards.keys() != run.result.rewards.keys():
        yield error_finding("record", f"{RUN_FILE} records other reward models in its result than in its config.")
        return
    models = {
        name: RecordedRewards(run.result.rewards[name].model, _rewards(run, name, ids)) for name in config.rewards
    }
    judge = _recorded_judge(run)
    aspects = aspect_titles(items) if judge is not None and config.outcome.measure == "rubric" else {}
    with TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        ledger.add_from(run.path / LEDGER_FILE)
        setup = RolloutSetup(
            Policy(config.policy, Replay(), Limits(), run.result.policy),
            models,
            config.scoring,
            config.sampling,
            judge,
            ledger,
            Path(folder),
            config.seed,
        )
        again = rollout(setup, items, groups, aspects)
        yield from _check_frames(run, again)
        turns = max(len(user_turns(group)) for group in groups)
        records: dict[str, tuple[Any, Any]] = {
            "sampling": (run.result.sampling, sampling_record(setup, again.candidates, turns)),
            "outcome": (run.result.outcome, outcome_record(setup, again.outcomes)),
        }
        for name, own in again.rewarded.items():
            recorded, made = run.result.rewards[name], rewarded_record(again, name, own)
            records[f"rewards.{name}"] = (
                recorded,
                recorded.model_copy(update={"missing": made.missing, "identical": made.identical}),
            )
        unused = len(ledger) - len(ledger.used)
    for name, (recorded, made) in records.items():
        if recorded != made:
            yield error_finding("record", f"{RUN_FILE} records another `{name}` than follows from its calls.")
    if unused:
        yield error_finding("replies", f"{LEDGER_FILE} has {unused:,} calls that the run does not need.")
    table = rollout_outcome_table(again, config.sampling.n, turns)
    numbers = metrics_frame(curve_numbers(table, config.sampling.sizes, by_config=_by_config(run)))
    yield from check_metrics(run, numbers, "its calls and rewards")


def _recorded_judge(run: Downstream) -> OutcomeJudge | None:
    outcome, chat = run.config.outcome, run.config.judge
    if outcome.judge is None:
        return None
    backend: Backend = Replay()
    own = None if chat is None else Judge(chat, NO_CONNECTION, Path(), attempts=outcome.attempts, backend=backend)
    judge = OutcomeJudge(outcome, own)
    if judge.prompts_digest != run.config.prompts_digest:
        raise OtherPrompts(DIFFERENT_PROMPTS)
    return judge


def _rewards(run: Downstream, model: str, ids: Mapping[tuple[Any, ...], str]) -> Rewards:
    rows = run.frame("rewards").filter(model=model).sort("sample", maintain_order=True)
    grouped = rows.group_by("config", "id", "history", maintain_order=True).agg("reward")
    return {(ids.get((config, item), ""), history): values for config, item, history, values in grouped.iter_rows()}


def _check_frames(run: Downstream, again: Rollout) -> Iterator[Finding]:
    """Compare each frame as a whole, row by row."""
    frames = {"candidates": again.candidates, "rewards": again.rewards, "selected": again.selected}
    for name, made in (frames | ({} if again.outcomes is None else {"outcomes": again.outcomes})).items():
        recorded = run.frame(name)
        if recorded.height != made.height or {*recorded.columns} != {*made.columns}:
            yield error_finding("items", f"{name}.parquet has other rows or columns than its calls and rewards give.")
            continue
        pairs = zip(made.rows(), recorded.select(made.columns).rows(), made["id"], strict=True)
        wrong = [item for one, other, item in pairs if one != other]
        if wrong:
            yield error_finding(
                "items",
                f"{name}.parquet has {len(wrong):,} rows that its calls and rewards do not give (ids "
                f"{first_ids([*dict.fromkeys(wrong)])}).",
            )
