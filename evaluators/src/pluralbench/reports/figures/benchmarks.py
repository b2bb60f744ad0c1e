"""Figures of one benchmark: parts, categories, calibration, position bias of judges, and user context."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pluralbench_schemas import LANGUAGES

from pluralbench.data.metric_key import MetricKey
from pluralbench.data.rules import rule_of
from pluralbench.metrics.calibration import scores_log_odds
from pluralbench.reports.figures.chart import (
    ACCURACY,
    BASELINES,
    CHANCE,
    Chart,
    Mark,
    Panel,
    Point,
    bins_of,
    by_mean,
    marks_of,
    mean,
    names,
    number,
    point,
    which,
)
from pluralbench.reports.figures.fonts import language_label, part_labels
from pluralbench.reports.figures.series import RunSeries, series_of_judges
from pluralbench.reports.profile_modes import NONE
from pluralbench.reports.sheets import Sheet
from pluralbench.reports.votes import PANEL, vote_sizes
from pluralbench.results.runs import Run

SIDE_BY_SIDE = 3  # models at most in one row for each part; more have a panel for each part
DOTS, ROWS, ACROSS = 105, 60, 6  # dots and rows of the forest plot at most, and its panels in a row
MODES, MODELS = 5, 4  # panels of user context at most, and panels of calibration in a row
LABELS = {NONE: "none", "raw": "posts"}
SUFFIXES = {10**9: "G", 10**6: "M", 10**3: "k", 1: ""}
MEAN = "Mean of categories"
BY_CATEGORY = {"accuracy": "Accuracy", "exact_match": "Exact match"}
OVERALL = MetricKey("overall")
Part = tuple[str, MetricKey]


def forest(models: Sequence[RunSeries]) -> Chart:
    """Make a row of the overall number and of each part, or with many models a panel of each."""
    every = [part for part in _parts(models) if mean(_at(one.run, part[1]) for one in models) is not None]
    few, config = len(models) <= SIDE_BY_SIDE, models[0].run.config
    parts = every[: min(ROWS, DOTS // len(models)) if few else ACROSS * max(1, ROWS // (len(models) + 3))]
    note = f"Overall: {config.benchmark.rule}."
    if len(every) > len(parts):
        note += f" {len(every) - len(parts)} more parts do not fit; see the CSV report."
    if len({(one.run.config.data.digest, one.run.size) for one in models}) > 1:
        note += " The runs are on different data."
    rule = rule_of(config.benchmark.description)
    label = ACCURACY if {rule.metric, *rule.pooled} == {"accuracy"} else "Percent"
    panels = [Panel([mark for part in parts for mark in _marks(models, *part)], label, least=10)]
    if not few:
        panels = [Panel(_marks(models, "", key), label, name.split("  ")[0], least=10) for name, key in parts]
    return Chart(f"Overall and parts (%), {which(models)}", panels, note, 1 if few else ACROSS)


def _marks(models: Sequence[RunSeries], row: str, key: MetricKey) -> list[Mark]:
    """The models' numbers and the baselines on the same items, in one row or in a row for each model."""
    marks = []
    for one in models:
        at = row or one.label
        for name, series in BASELINES.items():
            marks.append(Mark(at, Point(_at(one.run, key._replace(baseline=name)).value), series, "tick"))
        marks.append(Mark(at, _at(one.run, key), one))
    return marks


def _at(run: Run, key: MetricKey) -> Point:
    return point(run.at(key))


def _parts(models: Sequence[RunSeries]) -> list[Part]:
    """The overall number and its parts; of a benchmark without configs and sections its subsets, the largest first."""
    runs = [one.run for one in models]
    configs = list(dict.fromkeys(name for run in runs for name in run.configs))
    excluded = list(dict.fromkeys(name for run in runs for name in run.excluded_configs))
    labels = {name: label.replace("_", " ") for name, label in labels_of(runs).items()}
    labels |= {name: language_label(name) for name in labels if name in LANGUAGES}
    if rule_of(runs[0].config.benchmark.description).pooled:
        parts = [(title, MetricKey(metric)) for metric, title in BY_CATEGORY.items()]
        for metric, title in BY_CATEGORY.items():
            parts += [(f"{title}, {labels[name]}", MetricKey(metric, name)) for name in configs]
        return [("Overall", OVERALL), *parts]
    of = configs[0] if len(configs) == 1 else None
    parts = [(labels[name], MetricKey("accuracy", of, section=name)) for name in names(models, "section")]
    parts += [(labels[name], MetricKey("accuracy", name)) for name in excluded]
    metric = rule_of(runs[0].config.benchmark.description).metric
    if of is None:
        marks = marks_of(models, {name: {"config": name} for name in configs}, metric)
        ordered = by_mean(marks) if runs[0].config.benchmark.description.reference is not None else marks
        parts += [(labels[name], MetricKey(metric, name)) for name in dict.fromkeys(str(one.at) for one in ordered)]
    return [("Overall", OVERALL), *(parts or _subsets(runs, labels))]


def _subsets(runs: Sequence[Run], labels: Mapping[str, str]) -> list[Part]:
    sizes = {
        key: run.at(key._replace(metric="items")).value or 0
        for run in runs
        for config in run.configs
        for key in run.keys("accuracy", "subset", config=config)
    }
    return [(labels[key.subset or ""], key) for key in sorted(sizes, key=lambda key: -sizes[key])]


def labels_of(runs: Sequence[Run]) -> dict[str, str]:
    """Return the label of each part of a benchmark, the same in every figure of these runs."""
    own = [name for run in runs for name in run.configs] + [name for run in runs for name in run.excluded_configs]
    inner = ("section", "category", "subset")
    return part_labels([*own, *(name for dimension in inner for run in runs for name in run.names(dimension))])


def categories(models: Sequence[RunSeries], config: str) -> Chart:
    """Make a row of each category, with panels for accuracy and exact match (CHEEMS, Figure 4)."""
    labels = labels_of([one.run for one in models])
    every = {labels[name]: {"config": config, "category": name} for name in names(models, "category", config=config)}
    order = [str(mark.at) for mark in by_mean(marks_of(models, every, "accuracy"))]
    rows = {MEAN: {"config": config, "category": None}} | {row: every[row] for row in order}
    panels = []
    for metric, title in BY_CATEGORY.items():
        dots = marks_of(models, rows, metric)
        bars = [mark._replace(point=Point(mark.point.value), kind="bar") for mark in dots]
        coins = marks_of(models, {row: {**of, "baseline": "coin"} for row, of in rows.items()}, metric)
        coins = [mark._replace(series=CHANCE, kind="tick") for mark in coins]
        panels.append(Panel([*bars, *dots, *coins], "Percent", title))
    note = f"{MEAN}: unweighted. Exact match: all pairs of a prompt are correct."
    return Chart(f"Accuracy and exact match (%) by category, {labels[config]}, {which(models)}", panels, note, 2)


def is_soft(run: Run) -> bool:
    """Return whether a run is of a judge whose verdicts have probabilities."""
    return bool(run.config.judge_setting("logprobs"))


def calibration(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each model with log-odds, as scores or of verdicts: accuracy by predicted probability."""
    scored = [one for one in models if one.run.names("bin", "bin_accuracy")]
    shown = [one for one in scored if is_soft(one.run) or scores_log_odds(one.run.result.model)]
    panels = []
    for one in shown:
        marks = bins_of(one, "bin_accuracy", "bin_probability", 50)
        title = f"{one.label}, ECE {one.run.estimate('ece').value:.3f}"
        panels.append(Panel(marks, "Correct pairs (%)", title, "Sigmoid of the difference (%)", joined=True))
    note = (
        "Pairs in five equal bins of score difference: sigmoid of the mean difference, and correct pairs. "
        "ECE: expected calibration error. Dashed: perfect calibration."
    )
    note += " Differences of judges are the log-odds of their probabilities." * any(is_soft(one.run) for one in shown)
    others = {
        "there are no scores": [one.label for one in models if one not in scored],
        "the scores are not log-odds": [one.label for one in scored if one not in shown],
    }
    note += "".join(f" No panel, since {why}: {', '.join(own)}." for why, own in others.items() if own)
    return Chart(f"Calibration, {which(shown)}", panels, note, MODELS)


def position(models: Sequence[RunSeries]) -> Chart:
    """Make a row of each pairwise judge: how often it prefers what it sees first (CHEEMS, figure 15)."""
    marks = [Mark(one.label, number(one.run, "share_of_first"), one) for one in models]
    marks = [mark for mark in marks if mark.point.value is not None]
    judges = [mark.series for mark in marks if isinstance(mark.series, RunSeries)]
    panel = Panel(marks, "Verdicts for the answer shown first (%)", lines={50: "--"})
    return Chart(f"Position bias, {which(judges)}", [panel], "Valid verdicts only. Dashed: no preference.")


def votes(models: Sequence[RunSeries]) -> Chart:
    """Make a panel of each run in which several replies vote: accuracy by samples, with the tokens they cost."""
    shown = [one for one in models if len(vote_sizes(one.run)) > 1]
    panels = []
    for one in shown:
        judges = dict.fromkeys(key.judge for key in one.run.keys("accuracy_of_votes", "k"))
        alone = series_of_judges(
            {judge: None for judge in judges if judge is not None}, [other.name for other in models]
        )
        marks = []
        for series in (replace(one, label=PANEL if alone else one.label), *alone):
            own: dict[str, Any] = {} if isinstance(series, RunSeries) else {"judge": series.name}
            for k in vote_sizes(one.run):
                at = f"{k}\n{_tokens(one.run.estimate('tokens_of_votes', k=k).value or 0)}"
                marks.append(Mark(at, number(one.run, "accuracy_of_votes", k=k, **own), series))
        panels.append(Panel(marks, ACCURACY, one.label, "Samples of each judge, and tokens", upright=True, joined=True))
    note = "Mean over subsets of the samples of a run. Even numbers of replies tie more often, and ties are not right."
    return Chart(f"Accuracy by number of samples that vote, {which(shown)}", panels, note, MODELS)


def _tokens(count: float) -> str:
    size = next((size for size in (10**9, 10**6, 10**3) if count >= size), 1)
    return f"{count / size:.3g}{SUFFIXES[size]}"


def profile_modes(sheet: Sheet, families: Mapping[str, str]) -> Chart:
    """Make a bar of each family of models and mode of user context (Personalized RewardBench, Figure 2)."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for own in sheet.modes:
        name, modes = own[0].run.name, [one.mode for one in own]
        family = next((family for family, pattern in families.items() if matches(name, pattern)), Path(name).name)
        for one in own:
            # A model may have plans of several planners, distinguished by the runs' directories.
            mode = f"{one.mode} ({one.run.path.name})" if modes.count(one.mode) > 1 else one.mode
            groups.setdefault((family, LABELS.get(mode, mode)), []).append(one.run)
    series = {one.name: one for one in series_of_judges(dict.fromkeys(mode for _, mode in groups))}
    panels = []
    for key in [OVERALL, *(column.key for column in sheet.columns if column.part)][:MODES]:
        marks = []
        for (family, mode), runs in groups.items():
            points = [_at(run, key) for run in runs]
            shown = points if len(points) == 1 else [Point(one.value) for one in points]
            coin = Point(mean(_at(run, key._replace(baseline="coin")) for run in runs))
            marks += [Mark(family, Point(mean(points)), series[mode], "bar"), Mark(family, coin, CHANCE, "tick")]
            marks += [Mark(family, one, series[mode]) for one in shown]
        panels.append(Panel(marks, title=(key.section or key.config or "Overall").replace("_", " ")))
    several = any(len(runs) > 1 for runs in groups.values())
    note = f"Overall: {sheet.runs[0].config.benchmark.rule}."
    note += " Bars: family means. Dots: the models of a family." if several else ""
    return Chart(f"{sheet.title}: user context", panels, note, MODES)


def matches(name: str, pattern: str) -> bool:
    """Return whether a model's name matches the pattern of a family."""
    return fnmatchcase(name, pattern) or fnmatchcase(Path(name).name, pattern)
