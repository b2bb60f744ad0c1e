"""Language models as judges that compare two responses or rate one, with recorded calls."""

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

TEMPERATURE_STEP = 0.2  # added at each retry, because the same request at 0 would get the same reply

# Fixed words begin here, which spelling rules leave alone.
PAIR_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and two answers, Response A and Response B.
{criterion}{language}
The order of the answers means nothing, and neither does their length: more is not better than what was asked for.
{how}"""
# Fixed words end here.

# Fixed words begin here, which spelling rules leave alone.
RATING_SYSTEM = """\
You are a fair and attentive judge of answers. You see what somebody asked and one answer.
{criterion}{language}
Length alone earns nothing.
{how}"""
# Fixed words end here.

Criterion = Literal["quality", "person"]
"""The criterion of a judge. "quality": the user context decides if there is any, else the quality of the answer.
"person": what this user most likely expects, even without user context, like the judge in the paper of Personalized
RewardBench."""

# Fixed words begin here, which spelling rules leave alone.
PAIR_CRITERIA: dict[str, Json] = {
    "quality": "Decide which of the two serves this person better. If something is said about the person or about what "
    "they expect, that decides; otherwise weigh how helpful, relevant, correct and complete the answers are.",
    "person": "Decide which of the two comes closer to what this very person most likely expected when they asked. Go "
    "by all that is said about the person and about what they expect. Where nothing is said, infer from how they ask "
    "what they want to know and what matters to them. What most people would prefer does not count.",
}
# Fixed words end here.
# Fixed words begin here, which spelling rules leave alone.
RATING_CRITERIA: dict[str, Json] = {
    "quality": "Rate how well the answer serves this person, from 1 (not at all) to 10 (it could not be better). If "
    "something is said about the person or about what they expect, that decides; otherwise weigh how helpful, "
    "relevant, correct and complete the answer is.",
    "person": "Rate how close the answer comes to what this very person most likely expected when they asked, from 1 "
    "(not at all) to 10 (it could not be closer). Go by all that is said about the person and about what they expect. "
    "Where nothing is said, infer from how they ask what they want to know and what matters to them. What most people "
    "would prefer does not count.",
}
# Fixed words end here.
LANGUAGE = (
    " It is stated in which language the question is and in which the answer should be. To be in another language "
    "makes an answer worse, but it is one point among others: the language says nothing else about the person, and "
    "answers in the right language differ by all the rest."
)

Reply = Literal["reasoned", "brief", "structured"]
"""The form of a judge's reply: reasons and then the verdict, only the verdict, or JSON by a schema that the server
enforces, which small models need."""

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
    """Compute the SHA-256 of the prompts."""
    return digest(dict(PROMPTS))


@dataclass(frozen=True)
class Comparison:
    """Two responses to one prompt, in the order in which the judge reads them.

    Attributes:
        id: Id of the item.
        prompt: Messages, the last one by the user.
        first: Response A.
        second: Response B.
        context: User context.
        language: A sentence with the language of the question and the expected language of the answer.
    """

    id: str
    prompt: Sequence[Message]
    first: str
    second: str
    context: str = ""
    language: str = ""


class ReplySchema(NamedTuple):
    """The schema of a structured reply: its name, and the JSON schema of each property."""

    name: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Judge:
    """A language model as a judge. `score` rates responses one by one; `compare` decides between two.

    No file or connection is opened before the first call.

    Attributes:
        model: The model.
        connection: The connection to its endpoint.
        ledger: SQLite file of recorded calls, or an open ledger.
        attempts: Maximum number of requests per item until a reply can be parsed.
        reply: Form of the replies (see `Reply`).
        criterion: Criterion of the judge (see `Criterion`).
        rule: Rule for parsing replies (see `pluralbench_calls.verdicts`).
        seed: Seed in the requests, if the model is `seeded`.
        temperature_step: Increase of the temperature at each retry.
        backend: Backend that answers instead of the connection, such as `Replay`.

    Raises:
        CallsError: The connection does not fit the model.
    """

    model: ChatModel
    connection: ConnectionConfig
    ledger: Path | Ledger
    attempts: int = 4
    reply: Reply = "reasoned"
    criterion: Criterion = "quality"
    rule: Rule = "lenient"
    seed: int = 0
    temperature_step: float = TEMPERATURE_STEP
    backend: Backend | None = None
    kind = "generative"

    def __post_init__(self) -> None:
        try:
            check_connection(self.model, self.connection)
        except ValueError as error:
            raise CallsError(f"The judge {self.model.model} is not usable: {error}.") from None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.model

    @cached_property
    def _backend(self) -> Backend:  # one for all calls: it remembers which parameters the endpoint refuses
        return self.backend or chat_backend(self.model, self.connection)

    def compare(self, comparisons: Sequence[Comparison]) -> list[ParsedReply[Choice]]:
        """Decide which response is better, "A" or "B", in the order of the comparisons."""

        def request(item: Comparison, attempt: int) -> Request:
            system = PAIR_SYSTEM.format(
                criterion=PAIR_CRITERIA[self.criterion],
                language=LANGUAGE if item.language else "",
                how=PAIR_REPLY[self.reply],
            )
            responses = {"response_a": item.first, "response_b": item.second}
            sections = _prompt_sections(item.prompt, item.context, item.language) | responses
            return self.request(_schema_of("verdict"), system, sections, f"the verdict on {item.id}", attempt)

        return self.ask(comparisons, request, lambda _, reply: parse_choice(reply, self.rule), "verdicts")

    def rate(
        self, groups: Sequence[Group], contexts: Sequence[str] = (), languages: Sequence[str] = ()
    ) -> list[list[ParsedReply[float]]]:
        """Rate each response from 1 to 10.

        Args:
            groups: The groups.
            contexts: User context of each group. Default: none.
            languages: Language sentence of each group (see `Comparison`). Default: none.
        """
        empty = [""] * len(groups)
        items = [
            (group, number, context, language)
            for group, context, language in zip(groups, contexts or empty, languages or empty, strict=True)
            for number in range(len(group.responses))
        ]

        def request(item: tuple[Group, int, str, str], attempt: int) -> Request:
            group, number, context, language = item
            system = RATING_SYSTEM.format(
                criterion=RATING_CRITERIA[self.criterion],
                language=LANGUAGE if language else "",
                how=RATING_REPLY[self.reply],
            )
            sections = _prompt_sections(group.prompt, context, language) | {"response": group.responses[number]}
            label = f"the rating of response {number + 1} to {group.id}"
            return self.request(_schema_of("rating"), system, sections, label, attempt)

        ratings = self.ask(items, request, lambda _, reply: parse_rating(reply, self.rule), "ratings")
        remaining = iter(ratings)
        return [[next(remaining) for _ in group.responses] for group in groups]

    def record(self) -> ModelRecord:
        """Return the identity of the judge, for the record of a run."""
        return ModelRecord(name=self.name, kind=self.kind, provider=self.model.provider)

    def score(
        self,
        groups: Sequence[Group],
        *,
        cached: Mapping[int, list[float]] | None = None,
        on_scored: OnScored | None = None,
    ) -> Scored:
        """Rate every response with the text context of its group; see `RewardModel`.

        The score is not a number if no reply can be parsed.
        """
        contexts = ["\n".join(group.context) for group in groups]
        scored = scores_of(self.rate(groups, contexts))
        if on_scored is not None:
            for index, values in enumerate(scored.scores):
                on_scored(index, values)
        return scored

    def ask(
        self,
        items: Sequence[Item],
        request: Callable[[Item, int], Request],
        parse: Callable[[Item, str], Value],
        label: str,
    ) -> list[ParsedReply[Value]]:
        """Send requests to the model until `parse` accepts the replies; see `ask_until_valid`."""
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
        reply_schema: ReplySchema,
        system: str,
        sections: Mapping[str, str],
        label: str,
        attempt: int,
        *,
        structured: bool = False,
    ) -> Request:
        """Build a request from texts, each between tags with its name.

        Args:
            reply_schema: Schema of a structured reply.
            system: System prompt.
            sections: Texts by name. Tags inside a text are harmless, because texts are not formatted.
            label: Name of the request in messages.
            attempt: Number of the attempt, from 0.
            structured: Require a structured reply regardless of `Judge.reply`.
        """
        content = "\n\n".join(SECTION.format(name=name, text=text) for name, text in sections.items())
        messages = [{"role": "system", "content": system}, {"role": "user", "content": content}]
        return self.message_request(messages, reply_schema, label, attempt, structured=structured)

    def message_request(
        self,
        messages: Sequence[Message],
        reply_schema: ReplySchema,
        label: str,
        attempt: int,
        *,
        structured: bool = False,
    ) -> Request:
        """Build a request from messages; arguments as in `request`."""
        schema = {
            "type": "object",
            "properties": dict(reply_schema.properties),
            "required": [*reply_schema.properties],
            "additionalProperties": False,
        }
        return chat_request(
            self.model,
            messages,
            seed=self.seed,
            label=label,
            attempt=attempt,
            schema={"name": reply_schema.name, "schema": schema} if structured or self.reply == "structured" else None,
            temperature_step=self.temperature_step,
        )


def _schema_of(name: str) -> ReplySchema:
    return ReplySchema(name, {name: SCHEMAS[name]})


def _prompt_sections(prompt: Sequence[Message], context: str, language: str) -> dict[str, str]:
    """The sections before the responses."""
    sections = {"about_the_person": context, "language": language}
    question = "question" if len(prompt) == 1 else "conversation"
    return {name: text for name, text in sections.items() if text} | {question: prompt_text(prompt)}


def scores_of(ratings: Sequence[Sequence[ParsedReply[float]]]) -> Scored:
    """Convert ratings by group and response to scores; not a number if no reply can be parsed."""
    scores = [[math.nan if rating.value is None else rating.value for rating in group] for group in ratings]
    reasons = [rating.reason for group in ratings for rating in group if rating.reason]
    return Scored(scores, tokens_cut=[0] * len(scores), reasons=reasons)
