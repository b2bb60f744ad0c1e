"""Sentences about a persona synthesis."""

from collections.abc import Iterator

from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.reports.costs import cost_text
from pluralbench.results.runs import Synthesis

NAMED = 5


def synthesis_notes(synthesis: Synthesis) -> Iterator[str]:
    """Describe the personas, the accuracy of the demonstrations and the cost."""
    record = synthesis.result
    yield (
        f"{synthesis.path / PERSONAS_FILE}: {record.from_choices + record.from_posts:,} personas of {record.people:,} "
        f"users, {record.from_choices:,} from their choices and {record.from_posts:,} from their posts."
    )
    if record.without_persona:
        names = [f"{name} ({reason})" for name, reason in list(record.without_persona.items())[:NAMED]]
        more = ", …" if len(record.without_persona) > NAMED else ""
        yield f"Without a persona: {', '.join(names)}{more}."
    if record.predicted:
        yield f"{record.correct:,} of {record.predicted:,} predictions about earlier pairs were correct."
    if record.accuracy is not None:
        yield (
            f"With {record.demonstrations:,} demonstrations in total, the judge's accuracy on the held-out pairs was "
            f"{100 * record.accuracy:.1f}% (mean over users)."
        )
    yield f"Cost: {cost_text([record], [record.cost] if record.cost else [])}."
