"""Score with `pluralbench_local`."""

from pathlib import Path

from pluralbench_local import load
from pluralbench_local import score as score_groups
from pluralbench_rewards import Group, Mode

from scoring.protocol import Conversations, Outcome, Score, Settings


def fast(settings: Settings) -> Score:
    """Score with a classifier in fast mode: the tokens of a prompt are computed once."""
    return _scorer(settings, "fast")


def exact(settings: Settings) -> Score:
    """Score with a classifier in exact mode: each conversation alone."""
    return _scorer(settings, "exact")


def implicit(settings: Settings) -> Score:
    """Score with a policy and its reference in fast mode."""
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
        items = [
            Group(str(number), [{"role": "user", "content": group.prompt}], group.responses)
            for number, group in enumerate(groups)
        ]
        scored = score_groups(model, items, mode=mode)
        assert scored.work is not None  # noqa: S101 - computed in this process
        return Outcome(scored.scores, scored.work.computed_tokens)

    return score
