"""Scores by `pluralbench_local`."""

from pathlib import Path

from pluralbench_local import load
from pluralbench_local import score as score_groups
from pluralbench_rewards import Group, Mode

from scoring.protocol import Conversations, Outcome, Score, Settings


def fast(settings: Settings) -> Score:
    """A classifier in fast mode: a prompt's tokens are computed once for all its responses."""
    return _scorer(settings, "fast")


def exact(settings: Settings) -> Score:
    """A classifier in exact mode: scores as of one conversation at a time."""
    return _scorer(settings, "exact")


def implicit(settings: Settings) -> Score:
    """A policy and its reference in fast mode."""
    return _scorer(settings, "fast", implicit=True)


def _scorer(settings: Settings, mode: Mode, *, implicit: bool = False) -> Score:
    folder = Path(settings.folder)
    model = load(
        str(folder / ("policy" if implicit else "classifier")),
        kind="implicit" if implicit else "classifier",
        reference=str(folder / "reference") if implicit else None,
        device=settings.device,
        dtype=settings.dtype,
    )

    def score(groups: list[Conversations]) -> Outcome:
        asked = [
            Group(str(number), [{"role": "user", "content": group.prompt}], group.responses)
            for number, group in enumerate(groups)
        ]
        scored = score_groups(model, asked, mode=mode)
        assert scored.work is not None  # noqa: S101 - a server would do work unseen; this is in the process
        return Outcome(scored.scores, scored.work.computed_tokens)

    return score
