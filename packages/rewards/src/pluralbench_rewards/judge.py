"""Language models as judges: which of two responses is better, or how good one is. Each call is recorded."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pluralbench_calls import Backend, Limits, Request, Settled, ask_until_valid, working_ledger
from pluralbench_calls.verdicts import HIGHEST, Choice, parse_choice, parse_rating
from pluralbench_runs import Json, digest

from pluralbench_rewards.contract import Group, Message, OnScored, Scored

Item = TypeVar("Item")
Value = TypeVar("Value")

WARMER = 0.2  # added to the temperature at each further try: the same question at 0 would get the same reply

PAIR_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and two answers, Response A and Response B.
Decide which of the two serves this person better. If something is said about the person or about what they expect, that
decides; otherwise weigh how helpful, relevant, correct and complete the answers are.
The order of the answers means nothing, and neither does their length: more is not better than what was asked for.
{how}"""

RATING_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and one answer.
Rate how well the answer serves this person, from 1 (not at all) to 10 (it could not be better). If something is said
about the person or about what they expect, that decides; otherwise weigh how helpful, relevant, correct and complete
the answer is. Length alone earns nothing.
{how}"""

Reply = Literal["reasoned", "brief", "structured"]
"""How a judge replies: with reasons and then the verdict, with the verdict alone, or in JSON by a schema that the
server enforces, which small models need."""

PAIR_REPLY: dict[str, Json] = {
    "reasoned": "Give your reasons in at most 100 words. Then write, as the last line and alone in it, [[A]] or [[B]].",
    "brief": "Give no reasons. Write nothing else than [[A]] or [[B]].",
    "structured": 'Give no reasons. Reply in JSON: {"verdict": "A"} or {"verdict": "B"}.',
}
RATING_REPLY: dict[str, Json] = {
    "reasoned": "Give your reasons in at most 100 words. Then write, as the last line and alone in it, the rating as "
    "[[1]] to [[10]].",
    "brief": "Give no reasons. Write nothing else than the rating as [[1]] to [[10]].",
    "structured": 'Give no reasons. Reply in JSON with the rating as a number, such as {"rating": 1}.',
}
SCHEMAS: dict[str, dict[str, Json]] = {
    "verdict": {"type": "string", "enum": ["A", "B"]},
    "rating": {"type": "integer", "minimum": 1, "maximum": HIGHEST},
}

SECTION = "<{name}>\n{text}\n</{name}>"
PROMPTS: dict[str, Json] = {
    "pair": [PAIR_SYSTEM, PAIR_REPLY],
    "rating": [RATING_SYSTEM, RATING_REPLY],
    "schemas": SCHEMAS,
    "section": SECTION,
}


@dataclass(frozen=True)
class Comparison:
    """Two responses to one prompt, in the order in which the judge sees them. context: what else it is told."""

    id: str
    prompt: Sequence[Message]
    first: str
    second: str
    context: str = ""


@dataclass(frozen=True)
class Judge:
    """A language model that judges. `score` rates each response by itself; `compare` decides between two.

    ledger: the SQLite file of its recorded calls. attempts: tries for a reply that can be parsed. reply: see
    `Reply`.
    """

    name: str
    provider: str
    backend: Backend
    ledger: Path
    temperature: float = 0.0
    top_p: float | None = None
    max_tokens: int = 512
    attempts: int = 4
    limits: Limits = field(default_factory=Limits)
    reply: Reply = "reasoned"
    kind = "generative"

    @property
    def template_digest(self) -> str:
        """SHA-256 of the prompts."""
        return digest(dict(PROMPTS))

    def compare(self, comparisons: Sequence[Comparison]) -> list[Settled[Choice]]:
        """Which response is better, "A" the first or "B" the second, in the order of the comparisons."""

        def request(item: Comparison, attempt: int) -> Request:
            shown = {"response_a": item.first, "response_b": item.second}
            system = PAIR_SYSTEM.format(how=PAIR_REPLY[self.reply])
            label = f"the verdict on {item.id}"
            return self._request("verdict", system, item.prompt, item.context, shown, label, attempt)

        return self._ask(comparisons, request, parse_choice, "verdicts")

    def rate(self, groups: Sequence[Group], contexts: Sequence[str] = ()) -> list[list[Settled[float]]]:
        """How good each response is, from 1 to 10. contexts: what else the judge is told, a text a group."""
        told = contexts or [""] * len(groups)
        items = [
            (group, number, context)
            for group, context in zip(groups, told, strict=True)
            for number in range(len(group.responses))
        ]

        def request(item: tuple[Group, int, str], attempt: int) -> Request:
            group, number, context = item
            label = f"the rating of response {number + 1} to {group.id}"
            shown = {"response": group.responses[number]}
            system = RATING_SYSTEM.format(how=RATING_REPLY[self.reply])
            return self._request("rating", system, group.prompt, context, shown, label, attempt)

        settled = iter(self._ask(items, request, parse_rating, "ratings"))
        return [[next(settled) for _ in group.responses] for group in groups]

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Rate every response; not a number where no reply could be parsed."""
        scored = scores_of(self.rate(groups))
        if on_scored is not None:
            for place, values in enumerate(scored.scores):
                on_scored(place, values)
        return scored

    def _ask(
        self,
        items: Sequence[Item],
        request: Callable[[Item, int], Request],
        parse: Callable[[str], Value],
        label: str,
    ) -> list[Settled[Value]]:
        with working_ledger(self.ledger) as ledger:
            return ask_until_valid(
                items,
                request,
                lambda _, reply: parse(reply),
                ledger,
                self.backend,
                attempts=self.attempts,
                limits=self.limits,
                label=label,
            )

    def _request(
        self,
        wanted: str,
        system: str,
        prompt: Sequence[Message],
        context: str,
        shown: dict[str, str],
        label: str,
        attempt: int,
    ) -> Request:
        # A template does not see what is in a text, so texts that hold such marks themselves do no harm here.
        asked = (
            prompt[0]["content"] if len(prompt) == 1 else "\n\n".join(f"{m['role']}: {m['content']}" for m in prompt)
        )
        told = {"about_the_person": context} if context else {}
        sections = {**told, "question" if len(prompt) == 1 else "conversation": asked, **shown}
        user = "\n\n".join(SECTION.format(name=name, text=text) for name, text in sections.items())
        messages: list[Json] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        body: dict[str, Json] = {
            "messages": messages,
            "temperature": round(self.temperature + WARMER * attempt, 3),
            "max_tokens": self.max_tokens,
        }
        if self.top_p is not None:
            body["top_p"] = self.top_p
        if self.reply == "structured":
            schema: dict[str, Json] = {
                "type": "object",
                "properties": {wanted: SCHEMAS[wanted]},
                "required": [wanted],
                "additionalProperties": False,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": wanted, "schema": schema}}
        return Request("chat", self.provider, self.name, body, sample=attempt, label=f"{label}, attempt {attempt + 1}")


def scores_of(ratings: Sequence[Sequence[Settled[float]]]) -> Scored:
    """Ratings by group and response as scores; not a number where no reply could be parsed."""
    scores = [[math.nan if rating.value is None else rating.value for rating in group] for group in ratings]
    return Scored(scores, cut=[0] * len(scores))
