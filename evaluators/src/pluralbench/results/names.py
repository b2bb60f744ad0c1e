"""Row names for runs: the model, and in brackets the settings that distinguish runs of one model."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from pluralbench.results.runs import Run


def applied_overflow(run: Run) -> str | None:
    """Return the overflow rule if it changed an item of the run; None if every rule would give the same run."""
    changed = run.scored is not None and run.scored.items_truncated + run.scored.items_dropped > 0
    return run.scoring.on_overflow if changed and run.scoring is not None else None


def threshold_text(run: Run) -> str | None:
    """Return the threshold of scores of steps, and whether it was tuned; None for other runs."""
    value, tuned = run.estimate("threshold").value, run.config.benchmark.description.tune_step_threshold
    return None if value is None else f"{value:.3g}{f' tuned on {tuned}' if tuned else ''}"


PROMPT_SETTINGS: dict[str, Callable[[Run], Any]] = {
    "profile": lambda run: run.config.prompt.profile,
    "variables": lambda run: run.config.judge_setting("variables"),
}
"""Settings that change a model's prompts. A name shows them whenever runs differ in them."""

OTHER_SETTINGS: dict[str, Callable[[Run], Any]] = {
    "setting {}": lambda run: run.config.judge_setting("setting"),
    "{} posts": lambda run: run.config.prompt.profile_size,
    "oracle {}": lambda run: run.config.judge_setting("oracle"),
    "answers in {}": lambda run: run.config.judge_setting("answer_language"),
    "prompt {}": lambda run: run.config.judge_setting("prompt"),
    "rubric {}": lambda run: run.config.judge_setting("rubric"),
    "rubric by {}": lambda run: run.config.judge_setting("rubric_model"),
    "criterion {}": lambda run: run.config.judge_setting("criterion"),
    "{}": lambda run: run.config.judge_setting("reply_format"),
    "orders {}": lambda run: run.config.judge_setting("orders"),
    "{} judge": lambda run: run.config.judge_setting("protocol"),
    "verdicts {}": lambda run: run.config.judge_setting("verdict_parsing"),
    "{} samples": lambda run: run.config.judge_setting("samples"),
    "vote by {}": lambda run: run.config.judge_setting("samples") and (run.config.judge_setting("vote") or "default"),
    "temperature {}": lambda run: run.config.judge_setting("temperature"),
    "label {}": lambda run: run.result.model.label,
    "read {}": lambda run: run.result.model.settings.get("read", "class"),
    "date {}": lambda run: run.result.model.settings.get("date"),
    "mode {}": lambda run: getattr(run.scoring, "mode", None),
    "{} if too long": applied_overflow,
    "seed {}": lambda run: getattr(run.config, "seed", None),
    "{} rules": lambda run: "its own" if run.config.benchmark.description.ties_break_exact_match else "legacy",
    "threshold {}": threshold_text,
    "data {}": lambda run: Path(run.config.data.location).name,
    "limit {} per config": lambda run: run.config.data.limit,
    "{} drawn items": lambda run: run.config.data.items,
    "drawn by seed {}": lambda run: run.config.data.items_seed,
}
"""Other settings that can distinguish runs of one model, by the format of their text in a name."""

MAX_DIFFERENCES = 2  # in a name; runs that differ in more are named by their directory


def differing_prompt_settings(runs: Sequence[Run]) -> list[str]:
    """Return the names of those `PROMPT_SETTINGS` in which the runs differ; `row_names` shows their values."""
    return [name for name, value_of in PROMPT_SETTINGS.items() if len({value_of(run) for run in runs}) > 1]


def short_names(names: Sequence[str]) -> list[str]:
    """Return the end of each path that distinguishes it from the others: its last part, with folders only if needed."""
    paths = {name: "/".join(["", *(part for part in Path(name).parts if part not in {"..", "/"})]) for name in names}
    short = {}
    for name, path in paths.items():
        ends = accumulate(reversed(path.split("/")[1:]), lambda end, part: f"{part}/{end}")
        others = [other for key, other in paths.items() if key != name]
        short[name] = next((end for end in ends if not any(other.endswith(f"/{end}") for other in others)), name)
    return [short[name] for name in names]


def unique_names(names: Sequence[str], details: Sequence[object]) -> list[str]:
    """Return names of which those that occur more than once have their detail in brackets."""
    pairs = zip(names, details, strict=True)
    return [f"{name} ({detail})" if names.count(name) > 1 else name for name, detail in pairs]


def row_names(runs: Sequence[Run]) -> list[str]:
    """Return each run's name in a table: its model, and in brackets what distinguishes it from the others."""
    names = short_names([run.name for run in runs])
    details = differences(runs, lambda _, value: value)
    return [f"{name} ({detail})" if detail else name for name, detail in zip(names, details, strict=True)]


def differences(runs: Sequence[Run], format_setting: Callable[[str, str], str] = "{} {}".format) -> list[str]:
    """Return for each run the settings that distinguish it from the others; empty where nothing does."""
    differing = differing_prompt_settings(runs)
    prompts = [tuple(format_setting(name, _text(PROMPT_SETTINGS[name](run))) for name in differing) for run in runs]
    keys = [(run.name, values) for run, values in zip(runs, prompts, strict=True)]
    texts = []
    for run, values, key in zip(runs, prompts, keys, strict=True):
        same = [other for other, other_key in zip(runs, keys, strict=True) if other_key == key]
        texts.append(", ".join([*values, *(_distinction(run, same) if len(same) > 1 else ())]))
    return texts


def _distinction(run: Run, same: Sequence[Run]) -> Iterator[str]:
    """The settings that distinguish runs of one model with the same prompts, or the directory if settings do not."""
    differ = {form: of for form, of in OTHER_SETTINGS.items() if len({of(other) for other in same}) > 1}
    distinct = len({tuple(of(other) for of in differ.values()) for other in same}) == len(same)
    if len(differ) <= MAX_DIFFERENCES and distinct:
        yield from (form.format(_text(of(run))) for form, of in differ.items())
    else:
        by_name = len({other.path.name for other in same}) == len(same)
        yield run.path.name if by_name else str(run.path)


def _text(value: Any) -> str:
    return "none" if value is None else {"True": "yes", "False": "no"}.get(str(value), str(value))
