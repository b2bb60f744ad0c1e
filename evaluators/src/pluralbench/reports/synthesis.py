"""What a synthesis of personas found, in sentences."""

from collections.abc import Iterator

from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.reports.costs import cost_text
from pluralbench.results.runs import Synthesis

NAMED = 5


def synthesis_notes(done: Synthesis) -> Iterator[str]:
    """How many personas there are and what they are from, how good the demonstrations are, and what all took."""
    record = done.result
    yield (
        f"{done.path / PERSONAS_FILE}: {record.from_choices + record.from_posts:,} personas of {record.people:,} "
        f"people, {record.from_choices:,} from their choices and {record.from_posts:,} from their posts."
    )
    if record.without_persona:
        named = [f"{name} ({reason})" for name, reason in list(record.without_persona.items())[:NAMED]]
        more = ", …" if len(record.without_persona) > NAMED else ""
        yield f"Without a persona: {', '.join(named)}{more}."
    if record.predicted:
        yield f"{record.correct:,} of {record.predicted:,} predictions about earlier pairs were right."
    if record.accuracy is not None:
        yield (
            f"With {record.demonstrations:,} demonstrations in all, a judge was right about "
            f"{100 * record.accuracy:.1f} % of the pairs set apart (a mean over people)."
        )
    tokens = record.prompt_tokens + record.completion_tokens
    yield f"Took {cost_text(record.calls, tokens, [record.cost] if record.cost else [])}."
