"""Tables and notes of `personalize`: reward models with and without user context.

The first table has the layout of Personalized RewardBench, Table 6; the others have the differences with intervals.
"""

from collections.abc import Iterator, Sequence

from pluralbench_measures.bootstrap import CONFIDENCE
from pluralbench_runs import plural

from pluralbench.data.metric_key import MetricKey
from pluralbench.metrics.personalize import COMPARED
from pluralbench.reports.layout import first_words
from pluralbench.reports.tables import Column, Report, Row, Table, long_frame
from pluralbench.results.numbers import p_value, percent, points, with_interval
from pluralbench.results.personalize import KNOWN, NEW, SetRecord
from pluralbench.results.runs import Personalized

METHODS = {"bt": "Bradley-Terry", "gpo": "GPO", "vpl": "VPL", "pal": "PAL", "synthesizeme": "SynthesizeMe"}
CONDITIONS = {"without": "w/o", "posts": "posts", "with": "w/", "shuffled": "other's"}
CONTEXTS = {"raw": "posts of the user", "persona": "a summary of the user"}
ABOUT = {
    "posts": (
        "the model gets only posts of the user. Personalized RewardBench describes its Table 6 in two ways: "
        "w/ against w/o (appendix A.3) and w/ against posts (appendix B; there GPO gets no posts in either)."
    ),
    "without": "no user context, in training and evaluation.",
    "shuffled": "the models of w/, evaluated with the context of a random other user.",
}
COMPARISONS = {"posts": ", user summary against posts alone", "shuffled": ", own profile against another user's"}


def report_personalized(runs: Sequence[Personalized]) -> Report:
    """Report directories of `personalize`; JSON and CSV have the long frame of their numbers."""
    return Report(
        [table for run in runs for table in _tables(run)],
        list(dict.fromkeys(note for run in runs for note in _notes(run))),
        long_frame((run.path, run.metrics) for run in runs),
        definitions={term: text for run in runs for term, text in _definitions(run).items()},
    )


def _tables(run: Personalized) -> Iterator[Table]:
    """Make a table of each set and comparison, and one of the configs of a set that has several (Table 6's layout)."""
    conditions = run.result.conditions
    compared = [pair for pair in COMPARED if {*pair} <= {*conditions}]
    for name, described in run.result.sets.items():
        if described.by_config and len(described.configs) > 1:
            yield _by_config(run, name, described)
        if not compared:
            yield _table(run, name, described.title, [_level(condition) for condition in conditions])
    for first, second in compared:
        gain, p = (MetricKey(metric, condition=f"{second}-{first}") for metric in ("gain", "p_holm"))
        columns = [_level(first), _level(second), Column("gain", points, part=True, key=gain)]
        columns.append(Column("p", p_value, bounds=False, part=True, key=p))
        for name, described in run.result.sets.items():
            yield _table(run, name, described.title + COMPARISONS.get(first, ""), columns)


def _level(condition: str) -> Column:
    return Column(CONDITIONS[condition], part=True, key=MetricKey("accuracy", condition=condition))


def _by_config(run: Personalized, name: str, described: SetRecord) -> Table:
    places = {None: "Mean"} | dict(zip(described.configs, first_words(described.configs), strict=True))
    shown = [_level(one) for one in run.result.conditions if one != "shuffled"]
    columns = [
        one._replace(text=f"{places[config]}: {one.text}", bounds=False, key=one.key._replace(config=config))
        for config in (*described.configs, None)
        for one in shown
    ]
    return _table(run, name, f"{described.title}, by config", columns)


def _table(run: Personalized, name: str, title: str, columns: Sequence[Column]) -> Table:
    rows = [
        Row(METHODS[method], [run.at(column.key._replace(set=name, method=method)) for column in columns])
        for method in run.config.personalizing.methods
    ]
    return Table(title, "method", columns, rows)


SMALL = 0.05
GAINS = {
    ("without", "with"): "with user context than without",
    ("posts", "with"): "with a user summary than with posts alone",
    ("shuffled", "with"): "with the user's own context than with another user's",
}


def findings(run: Personalized) -> Iterator[str]:
    """State which methods gain from user context, with intervals, a sentence for each set and comparison."""
    methods = run.config.personalizing.methods
    for (first, second), what in GAINS.items():
        for name, described in run.result.sets.items():
            place = {"set": name, "condition": f"{second}-{first}"}
            gains = {method: run.estimate("gain", method=method, **place) for method in methods}
            gains = {method: gain for method, gain in gains.items() if gain.value is not None}
            if not gains:
                continue
            tests = {method: run.estimate("p_holm", method=method, **place).value for method in gains}
            better = [m for m, gain in gains.items() if (gain.value or 0) > 0 and (tests[m] or 0) < SMALL]
            shown = better or [max(gains, key=lambda method: gains[method].value or 0)]
            texts = ", ".join(f"{METHODS[method]} {with_interval(gains[method], points)}" for method in shown)
            number = f"{len(better)} of {len(gains)} methods" if better else "no method"
            are = "is" if len(better) < 2 else "are"
            adjusted = f" (p adjusted for {len(gains)} methods)" if len(gains) > 1 else ""
            then = ":" if better else "; the largest gain is"
            yield f"{described.title}: {number} {are} significantly better {what}{adjusted}{then} {texts} points."


def _notes(run: Personalized) -> Iterator[str]:
    config, result = run.config, run.result
    for name, described in result.sets.items():
        about = {
            NEW: "users without training data",
            KNOWN: "users with training data, on their latest pairs, which were held out",
        }.get(name, "users")
        yield f"{described.title}: {plural(described.items, 'item')} of {described.users:,} {about}."
    trained, number = result.trained_on, config.personalizing.seeds
    seeds = f", mean over {number} seeds" if number > 1 else ", one seed"
    yield (
        f"Accuracy in %{seeds}, with {CONFIDENCE:.0%} intervals over users; ties are wrong, chance is 50. "
        f"Trained on {plural(trained.items, 'item')} of {plural(trained.users, 'user')}."
    )
    yield from _condition_notes(run)
    if result.excluded:
        counts = ", ".join(f"{name} {count:,}" for name, count in result.excluded.items())
        yield f"Items excluded for all models (no user context, or too long): {counts}."
    yield from _seed_notes(run)
    if {"bt", "synthesizeme"} <= set(config.personalizing.methods):
        yield "Bradley-Terry and SynthesizeMe are one architecture: with the same context, their rows are one result."


def _definitions(run: Personalized) -> dict[str, str]:
    conditions, methods = run.result.conditions, len(run.config.personalizing.methods)
    defined = {CONDITIONS[condition]: text for condition, text in ABOUT.items() if condition in conditions}
    if len(conditions) > 1:
        adjusted = f", adjusted for the {methods} methods of a table (Holm)" if methods > 1 else ""
        defined["gain"] = f"second minus first, in points. p: two-sided, from the interval{adjusted}."
    return defined


def _condition_notes(run: Personalized) -> Iterator[str]:
    methods: dict[str, dict[str, None]] = {}
    for model in run.result.models:
        if model.condition == "with":
            methods.setdefault(CONTEXTS[model.user_context], {})[METHODS[model.method]] = None
    if methods:
        contexts = [f"{context} ({', '.join(names)})" for context, names in methods.items()]
        summary = ", plus a summary of the user" if run.config.personalizing.persona else ""
        yield f"w/: the model gets {'; '.join(contexts)}{summary}."
    names = dict.fromkeys(METHODS[model.method] for model in run.result.models if model.user_context == "persona")
    without = {one.title: one.items - one.personas for one in run.result.sets.values() if one.personas < one.items}
    if methods and names and without:
        counts = ", ".join(f"{count:,} of {title}" for title, count in without.items())
        yield f"Items whose user has no summary, so {', '.join(names)} got posts instead: {counts}."


def _seed_notes(run: Personalized) -> Iterator[str]:
    name, described = next(iter(run.result.sets.items()))
    parts = []
    for method in run.config.personalizing.methods:
        spreads = {
            CONDITIONS[condition]: run.estimate("seeds_sd", set=name, method=method, condition=condition).value
            for condition in run.result.conditions
        }
        texts = [f"{condition} {percent(value)}" for condition, value in spreads.items() if value is not None]
        parts += [f"{METHODS[method]} {', '.join(texts)}"] if texts else []
    if parts:
        yield f"Standard deviation over seeds, in points, {described.title.lower()}: {'; '.join(parts)}."
