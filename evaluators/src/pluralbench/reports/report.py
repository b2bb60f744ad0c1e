"""`report`: what runs found, as a table for the terminal, Markdown, JSON or CSV."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pluralbench_release import markdown_table
from rich.table import Table as Grid

from pluralbench.errors import EvaluationError
from pluralbench.metrics.languages import MEAN
from pluralbench.results.runs import Run

Format = Literal["table", "markdown", "json", "csv"]
OVERALL = "overall"
LANGUAGES = "languages"
MEAN_OF_CONFIGS = "mean of configs"
# Of 23 languages, four sections each are more than a page; CSV and JSON have them.
SECTION_OF_A_LANGUAGE = r"^[a-z]{3}_[A-Z][a-z]{3}: "
COUNTS = ("n", "ties", "invalid", "dropped", "equal", "truncated")


def report_frame(runs: Sequence[Run]) -> pl.DataFrame:
    """A row for each run and each of its configs, and one for the whole, best run first within a benchmark.

    accuracy, low, high: shares from 0 to 1, with the bounds of the interval; null where they are missing. For
    benchmarks in many languages, `languages: SECTION` is a section's mean over languages; drop, drop_low, drop_high:
    accuracy less that in English on the same ids; kappa: label consistency with English. For rankings by category,
    `CONFIG: CATEGORY` is a category and `mean of configs` is over them; exact, exact_low, exact_high: exact match over
    `prompts`; error, error_low, error_high: expected calibration error. A config has the mean over its categories.
    Of a run of the persona judge, a config is a task, `profile` the persona variables and `setting` what was asked for.
    """
    rows = [row for run in sorted(runs, key=_order) for row in _rows(run)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _order(run: Run) -> tuple[str, str, float]:
    accuracy = run.metrics["overall"]["accuracy"]
    # Settings of the persona judge ask different questions, so their accuracies are no ranking.
    setting = run.run["prompt"].get("setting") or ""
    return run.run["benchmark"]["name"], setting, -1.0 if accuracy is None else -accuracy


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    base = {
        "run": str(run.path),
        "model": run.name,
        "kind": run.run["model"]["kind"],
        "benchmark": run.run["benchmark"]["name"],
        "profile": run.run["prompt"]["profile"],
        "setting": run.run["prompt"].get("setting"),
    }
    overall = run.metrics["overall"]
    calibration = run.metrics.get("calibration", {})
    error = _error(calibration.get("overall"))
    yield base | {"config": OVERALL} | _estimate(overall) | _counts(run.metrics["pooled"]) | error
    means = run.metrics.get("rankings")
    if means and len(run.metrics["configs"]) > 1:
        yield base | {"config": MEAN_OF_CONFIGS} | _estimate(means["accuracy"]) | _exact(means["exact_match"])
    languages = run.metrics.get("languages", {})
    for section, values in languages.get("sections", {}).items():
        drop = _drop(languages["drop"].get(section))
        yield base | {"config": f"{LANGUAGES}: {section}"} | _estimate(values) | drop
    for config, cell in run.metrics["configs"].items():
        told = _across(languages.get("by_language", {}).get(config))
        if "by_category" in cell:
            told = _exact(cell["exact_match_by_category"]) | {"prompts": cell["exact_match"]["prompts"]}
            told |= _error(calibration.get("configs", {}).get(config))
        value = cell.get("by_category", cell.get("mean_of_sections", cell))
        yield base | {"config": config} | _estimate(value) | _counts(cell) | told
        if "by_category" in cell:
            for category, own in cell.get("subsets", {}).items():
                exact = _exact(own["exact_match"]) | {"prompts": own["exact_match"]["prompts"]}
                yield base | {"config": f"{config}: {category}"} | _estimate(own) | _counts(own) | exact
        for section, values in cell.get("sections", {}).items():
            yield base | {"config": f"{config}: {section}"} | _estimate(values)


def _estimate(cell: dict[str, Any]) -> dict[str, Any]:
    low, high = cell["interval"] or (None, None)
    return {"accuracy": cell["accuracy"], "low": low, "high": high}


def _exact(cell: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(("exact", "exact_low", "exact_high"), _estimate(cell).values(), strict=True))


def _error(cell: dict[str, Any] | None) -> dict[str, Any]:
    if cell is None:
        return {}
    low, high = cell["interval"] or (None, None)
    return {"error": cell["error"], "error_low": low, "error_high": high}


def _across(cell: dict[str, Any] | None) -> dict[str, Any]:
    """A language's drop from English and its consistency with it, where there is English."""
    if cell is None:
        return {}
    kappa = cell["consistency"]["kappa"] if cell["consistency"] else None
    return _drop(cell["drop"].get(MEAN)) | {"kappa": kappa}


def _drop(cell: dict[str, Any] | None) -> dict[str, Any]:
    if cell is None:
        return {}
    low, high = cell["interval"] or (None, None)
    return {"drop": cell["difference"], "drop_low": low, "drop_high": high}


def _counts(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: cell[name] for name in COUNTS}


def notes(runs: Sequence[Run]) -> list[str]:
    """What a reader of the table has to know, a sentence each."""
    said = [f"Overall: {run.metrics['overall']['rule']} ({run.path})." for run in runs]
    said.append(
        "Accuracy counts ties and invalid ones as wrong; brackets are "
        f"{runs[0].metrics['confidence']:.0%} intervals from a bootstrap over prompts or users."
    )
    said += [note for run in runs for note in _language_notes(run)]
    said += [note for run in runs for note in _ranking_notes(run)]
    said += [note for run in runs for note in _persona_notes(run)]
    for run in runs:
        bias = run.metrics.get("position")
        if bias and bias["share_of_first"] is not None:
            said.append(
                f"{run.path}: the judge chose the first response in {bias['share_of_first']:.0%} of its valid verdicts."
            )
        if bias and bias["asked_in_both_orders"]:
            said.append(
                f"{run.path}: {bias['changed_with_the_order']:,} of {bias['asked_in_both_orders']:,} pairs of valid "
                "verdicts changed with the order."
            )
        scoring = run.run.get("scoring")
        if scoring and scoring["unpackable"]:
            said.append(f"{run.path}: scored in padded batches, since {scoring['unpackable']}.")
        if scoring and scoring["decisions_within_tolerance"]:
            said.append(
                f"{run.path}: {scoring['decisions_within_tolerance']:,} decisions have a margin within the tolerance "
                f"({scoring['tolerance']:.2g}), where rounding decides."
            )
        for what in ("invalid", "truncated", "dropped"):
            ids = run.metrics["pooled"]["ids"].get(what)
            if ids:
                said.append(f"{run.path}: {what}: ids {', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}.")
    return said


def _language_notes(run: Run) -> list[str]:
    languages = run.metrics.get("languages")
    if not languages:
        return []
    said = []
    drop, agreement = languages["drop"].get(MEAN), languages["consistency"]
    if drop and drop["difference"] is not None:
        low, high = drop["interval"]
        said.append(
            f"{run.path}: on the same ids, {100 * drop['difference']:+.1f} points "
            f"[{100 * low:+.1f}, {100 * high:+.1f}] against English, as a mean over languages."
        )
    if agreement:
        spread = "" if agreement["sd"] is None else f" (standard deviation {agreement['sd']:.3f})"
        said.append(
            f"{run.path}: its labels agree with its own in English with a mean kappa of "
            f"{agreement['mean']:.3f}{spread} over {agreement['languages']} languages."
        )
    if languages["reference"] is None:
        said.append(f"{run.path}: no items in English, so no drop and no consistency; give them with --english.")
    return said


def _ranking_notes(run: Run) -> list[str]:
    if "rankings" not in run.metrics:
        return []
    strict = run.run["benchmark"]["description"]["strict"]
    said = [
        f"{run.path}: within a category accuracy is over pairs and exact match over prompts; a config has the "
        "unweighted means of its categories."
    ]
    equal = run.metrics["pooled"]["equal"]
    if equal:
        done = "are left out" if strict else "count as exact matches"
        said.append(f"{run.path}: prompts whose responses all share one rank: {equal:,}; they {done}.")
    if not strict:
        said.append(f"{run.path}: legacy rules: a tie of scores does not break an exact match.")
    calibration = run.metrics.get("calibration")
    if calibration:
        parts = {"overall": calibration["overall"]} | calibration["configs"]
        errors = ", ".join(f"{name} {_with_interval(_error(cell), 1, '.3f') or '–'}" for name, cell in parts.items())
        said.append(
            f"{run.path}: expected calibration error of the sigmoid of score differences, in five equal bins, the "
            f"largest difference {calibration['largest']}: {errors}."
        )
    return said


def _persona_notes(run: Run) -> list[str]:
    setting = run.run["prompt"].get("setting")
    if setting is None:
        return []
    judging = run.run["judging"]
    said = [f"{run.path}: setting {setting}, persona variables {run.run['prompt']['profile']}."]
    if judging["ties_left_out"]:
        ties = ", ".join(f"{task} {count:,}" for task, count in judging["ties_left_out"].items())
        said.append(f"{run.path}: items whose truth is a tie are left out in this setting: {ties}.")
    if judging["tasks_left_out"]:
        tasks = ", ".join(f"{task} ({why})" for task, why in judging["tasks_left_out"].items())
        said.append(f"{run.path}: tasks that cannot be asked about so are left out: {tasks}.")
    bare = judging["without_persona"]
    if bare["items"]:
        ids = f"{', '.join(bare['ids'][:5])}{', …' if bare['items'] > 5 else ''}"
        said.append(
            f"{run.path}: items that tell nothing of their person in these variables, judged as with none: "
            f"{bare['items']:,} (ids {ids})."
        )
    reasons = "; ".join(f"{reason} {count:,}" for reason, count in judging["invalid_reasons"].items())
    return said + ([f"{run.path}: why verdicts are invalid: {reasons}."] if reasons else [])


def shown(frame: pl.DataFrame) -> pl.DataFrame:
    """The table as people read it: per cent with intervals, columns that say nothing left out."""
    frame = frame.filter(~pl.col("config").str.contains(SECTION_OF_A_LANGUAGE))
    names = (
        frame.select("run", "model")
        .unique()
        .with_columns(pl.col("model").map_elements(lambda n: Path(n).name, return_dtype=pl.String))
    )
    text = frame.select(
        *["run"] * names["model"].is_duplicated().any(),
        pl.col("model").map_elements(lambda name: Path(name).name, return_dtype=pl.String),
        *[name for name in ("benchmark", "setting", "profile") if frame[name].n_unique() > 1],
        "config",
        _interval_column("accuracy", "", 100, ".1f").fill_null("–").alias("accuracy"),
        *_further_columns(frame),
        *[pl.col(name).map_elements(lambda n: f"{n:,}", return_dtype=pl.String).fill_null("") for name in COUNTS],
    )
    return text.drop([name for name in ("equal", "dropped", "truncated") if set(text[name]) <= {"0", ""}])


def _further_columns(frame: pl.DataFrame) -> list[pl.Expr]:
    """What only some benchmarks have: exact match, drop from English, label consistency."""

    def has(name: str) -> bool:
        return name in frame.columns and frame[name].null_count() < frame.height

    columns = [
        _interval_column(name, f"{name}_", scale, form).fill_null("").alias(title)
        for name, title, scale, form in (
            ("exact", "exact match", 100, ".1f"),
            ("drop", "against English", 100, "+.1f"),
        )
        if has(name)
    ]
    if has("kappa"):
        kappa = pl.col("kappa").map_elements(lambda value: f"{value:.2f}", return_dtype=pl.String)
        columns.append(kappa.fill_null("").alias("kappa"))
    return columns


def _interval_column(name: str, bounds: str, scale: float, form: str) -> pl.Expr:
    cell = pl.struct(name, f"{bounds}low", f"{bounds}high")
    return cell.map_elements(lambda one: _with_interval(one, scale, form), return_dtype=pl.String)


def _with_interval(cell: dict[str, float | None], scale: float, form: str) -> str | None:
    """cell: a value and its bounds, in this order."""
    value, low, high = cell.values()
    if value is None:
        return None
    interval = "" if low is None or high is None else f" [{scale * low:{form}}, {scale * high:{form}}]"
    return f"{scale * value:{form}}{interval}"


def render(runs: Sequence[Run], form: Format) -> str | Grid:
    """The report of some runs. Raises `EvaluationError` for none."""
    if not runs:
        raise EvaluationError("There is no run to report; give one or more run directories.")
    frame = report_frame(runs)
    match form:
        case "json":
            return json.dumps(frame.to_dicts(), indent=2, ensure_ascii=False)
        case "csv":
            return frame.write_csv()
        case "markdown":
            lines = "\n".join(f"- {note}" for note in notes(runs))
            return f"{markdown_table(shown(frame))}\n\n{lines}"
        case "table":
            grid = Grid()
            for name in shown(frame).columns:
                grid.add_column(name, overflow="fold")
            for row in shown(frame).iter_rows():
                grid.add_row(*map(str, row))
            return grid
