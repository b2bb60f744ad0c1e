"""Language models as judges: which of two responses is better, or how good one is. Each call is recorded."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pluralbench_calls import (
    Backend,
    CallsError,
    ChatModel,
    ConnectionConfig,
    Ledger,
    ParsedReply,
    Request,
    Rule,
    ask_until_valid,
    chat_backend,
    chat_request,
    check_connection,
    working_ledger,
)
from pluralbench_calls.verdicts import MAX_RATING, Choice, parse_choice, parse_rating
from pluralbench_runs import Json, digest

from pluralbench_rewards.contract import Group, Message, ModelRecord, OnScored, Scored
from pluralbench_rewards.personas import prompt_text

Item = TypeVar("Item")
Value = TypeVar("Value")

WARMER = 0.2  # added to the temperature at each further try: the same question at 0 would get the same reply

PAIR_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and two answers, Response A and Response B.
{criterion}{language}
The order of the answers means nothing, and neither does their length: more is not better than what was asked for.
{how}"""

RATING_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and one answer.
{criterion}{language}
Length alone earns nothing.
{how}"""

Criterion = Literal["quality", "person"]
"""What a judge goes by. "quality": what is said about the person decides, and where nothing is, the quality of the
answer. "person": what this very person most likely expects, also where nothing is said about them, which is what the
judge of Personalized RewardBench's paper decides by."""

PAIR_CRITERIA: dict[str, Json] = {
    "quality": "Decide which of the two serves this person better. If something is said about the person or about what "
    "they expect, that decides; otherwise weigh how helpful, relevant, correct and complete the answers are.",
    "person": "Decide which of the two comes closer to what this very person most likely expected when they asked. Go "
    "by all that is said about the person and about what they expect. Where nothing is said, infer from how they ask "
    "what they want to know and what matters to them. What most people would prefer does not count.",
}
RATING_CRITERIA: dict[str, Json] = {
    "quality": "Rate how well the answer serves this person, from 1 (not at all) to 10 (it could not be better). If "
    "something is said about the person or about what they expect, that decides; otherwise weigh how helpful, "
    "relevant, correct and complete the answer is.",
    "person": "Rate how close the answer comes to what this very person most likely expected when they asked, from 1 "
    "(not at all) to 10 (it could not be closer). Go by all that is said about the person and about what they expect. "
    "Where nothing is said, infer from how they ask what they want to know and what matters to them. What most people "
    "would prefer does not count.",
}
LANGUAGE = (
    " It is stated in which language the question is and in which the answer should be. To be in another language "
    "makes an answer worse, but it is one point among others: the language says nothing else about the person, and "
    "answers in the right language differ by all the rest."
)

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
    "rating": {"type": "integer", "minimum": 1, "maximum": MAX_RATING},
}

SECTION = "<{name}>\n{text}\n</{name}>"
PROMPTS: dict[str, Json] = {
    "pair": [PAIR_SYSTEM, PAIR_CRITERIA, PAIR_REPLY],
    "rating": [RATING_SYSTEM, RATING_CRITERIA, RATING_REPLY],
    "language": LANGUAGE,
    "schemas": SCHEMAS,
    "section": SECTION,
}


def prompts_digest() -> str:
    """SHA-256 of the prompts above."""
    return digest(dict(PROMPTS))


@dataclass(frozen=True)
class Comparison:
    """Two responses to one prompt, in the order in which the judge sees them.

    context: what else it is told about the person. language: a sentence that says in which language the question is and
    in which the answer should be.
    """

    id: str
    prompt: Sequence[Message]
    first: str
    second: str
    context: str = ""
    language: str = ""


class ReplySchema(NamedTuple):
    """What a structured reply has: the name of the whole, and the JSON schema of each part by its name."""

    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Judge:
    """A language model that judges. `score` rates each response by itself; `compare` decides between two.

    ledger: the SQLite file of its recorded calls, or one that is open. attempts: tries for a reply that can be parsed,
    each by `warmer` warmer than the one before. reply, criterion: see `Reply` and `Criterion`. rule: how replies are
    read, see `pluralbench_calls.verdicts`. seed: of what is sent where the model is `seeded`.
    answered_by: who answers in place of the connection, such as nobody (`Replay`).

    Nothing is opened or asked before it judges. Raises `CallsError` where the connection does not fit the model.
    """

    model: ChatModel
    connection: ConnectionConfig
    ledger: Path | Ledger
    attempts: int = 4
    reply: Reply = "reasoned"
    criterion: Criterion = "quality"
    rule: Rule = "lenient"
    seed: int = 0
    warmer: float = WARMER
    answered_by: Backend | None = None
    kind = "generative"

    def __post_init__(self) -> None:
        try:
            check_connection(self.model, self.connection)
        except ValueError as error:
            raise CallsError(f"The judge {self.model.model} cannot be asked: {error}.") from None

    @property
    def name(self) -> str:
        """What to call it in results."""
        return self.model.model

    @cached_property
    def _backend(self) -> Backend:  # one for all that it judges: it remembers what the endpoint refuses
        return self.answered_by or chat_backend(self.model, self.connection)

    def compare(self, comparisons: Sequence[Comparison]) -> list[ParsedReply[Choice]]:
        """Which response is better, "A" the first or "B" the second, in the order of the comparisons."""

        def request(item: Comparison, attempt: int) -> Request:
            system = PAIR_SYSTEM.format(
                criterion=PAIR_CRITERIA[self.criterion],
                language=LANGUAGE if item.language else "",
                how=PAIR_REPLY[self.reply],
            )
            shown = {"response_a": item.first, "response_b": item.second}
            shown = _told(item.prompt, item.context, item.language) | shown
            return self.request(_alone("verdict"), system, shown, f"the verdict on {item.id}", attempt)

        return self.ask(comparisons, request, lambda _, reply: parse_choice(reply, self.rule), "verdicts")

    def rate(
        self, groups: Sequence[Group], contexts: Sequence[str] = (), languages: Sequence[str] = ()
    ) -> list[list[ParsedReply[float]]]:
        """How good each response is, from 1 to 10. contexts, languages: as of a `Comparison`, a text a group."""
        nothing = [""] * len(groups)
        items = [
            (group, number, context, language)
            for group, context, language in zip(groups, contexts or nothing, languages or nothing, strict=True)
            for number in range(len(group.responses))
        ]

        def request(item: tuple[Group, int, str, str], attempt: int) -> Request:
            group, number, context, language = item
            system = RATING_SYSTEM.format(
                criterion=RATING_CRITERIA[self.criterion],
                language=LANGUAGE if language else "",
                how=RATING_REPLY[self.reply],
            )
            shown = _told(group.prompt, context, language) | {"response": group.responses[number]}
            label = f"the rating of response {number + 1} to {group.id}"
            return self.request(_alone("rating"), system, shown, label, attempt)

        ratings = self.ask(items, request, lambda _, reply: parse_rating(reply, self.rule), "ratings")
        settled = iter(ratings)
        return [[next(settled) for _ in group.responses] for group in groups]

    def record(self) -> ModelRecord:
        """What it is, for the provenance of a run."""
        return ModelRecord(name=self.name, kind=self.kind, provider=self.model.provider)

    def score(
        self,
        groups: Sequence[Group],
        *,
        known: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Rate every response, told of the person what a model that reads text is told; see `RewardModel`.

        Not a number where no reply could be read.
        """
        told = ["\n".join(group.context) for group in groups]
        scored = scores_of(self.rate(groups, told))
        if on_scored is not None:
            for place, values in enumerate(scored.scores):
                on_scored(place, values)
        return scored

    def ask(
        self,
        items: Sequence[Item],
        request: Callable[[Item, int], Request],
        parse: Callable[[Item, str], Value],
        label: str,
    ) -> list[ParsedReply[Value]]:
        """Ask its model anything, until `parse` takes the reply; see `ask_until_valid`."""
        with working_ledger(self.ledger) as ledger:
            return ask_until_valid(
                items,
                request,
                parse,
                ledger,
                self._backend,
                attempts=self.attempts,
                limits=self.connection.limits(),
                label=label,
            )

    def request(
        self,
        wanted: ReplySchema,
        system: str,
        shown: Mapping[str, str],
        label: str,
        attempt: int,
        *,
        structured: bool = False,
    ) -> Request:
        """A request with texts in marks of their names.

        wanted: what a structured reply has. structured: ask for one whatever `reply` says. A template does not see what
        is in a text, so texts that hold such marks themselves do no harm here.
        """
        asked = "\n\n".join(SECTION.format(name=name, text=text) for name, text in shown.items())
        messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
        return self.asked(messages, wanted, label, attempt, structured=structured)

    def asked(
        self,
        messages: Sequence[Message],
        wanted: ReplySchema,
        label: str,
        attempt: int,
        *,
        structured: bool = False,
    ) -> Request:
        """A request with these messages; see `request`."""
        schema = {
            "type": "object",
            "properties": dict(wanted.properties),
            "required": [*wanted.properties],
            "additionalProperties": False,
        }
        return chat_request(
            self.model,
            messages,
            seed=self.seed,
            label=label,
            attempt=attempt,
            schema={"name": wanted.name, "schema": schema} if structured or self.reply == "structured" else None,
            temperature_step=self.warmer,
        )


def _alone(name: str) -> ReplySchema:
    return ReplySchema(name, {name: SCHEMAS[name]})


def _told(prompt: Sequence[Message], context: str, language: str) -> dict[str, str]:
    """What is shown before the responses."""
    told = {"about_the_person": context, "language": language}
    question = "question" if len(prompt) == 1 else "conversation"
    return {name: text for name, text in told.items() if text} | {question: prompt_text(prompt)}


def scores_of(ratings: Sequence[Sequence[ParsedReply[float]]]) -> Scored:
    """Ratings by group and response as scores; not a number where no reply could be parsed."""
    scores = [[math.nan if rating.value is None else rating.value for rating in group] for group in ratings]
    reasons = [rating.reason for group in ratings for rating in group if rating.reason]
    return Scored(scores, cut=[0] * len(scores), reasons=reasons)
