"""Language models as judges that compare responses, rate them or pick the best of a list, with recorded calls."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pluralbench_calls import ParsedReply, Request, Rule, chat_request
from pluralbench_calls.retry import InvalidAnswer
from pluralbench_calls.verdicts import Verdict, parse_choice, parse_pick, parse_rating
from pluralbench_runs import Json

from pluralbench_rewards.chat_client import ChatClient
from pluralbench_rewards.contract import Cached, Group, Message, ModelRecord, OnScored, Scored
from pluralbench_rewards.judge_prompts import (
    LANGUAGE,
    LIST_CRITERIA,
    LIST_REPLY,
    LIST_SYSTEM,
    PAIR_CRITERIA,
    PAIR_REPLY,
    PAIR_SYSTEM,
    RATING_CRITERIA,
    RATING_REPLY,
    RATING_SYSTEM,
    SECTION,
    Criterion,
    Reply,
    ReplySchema,
    pick_schema,
    prompt_text,
    schema_of,
)
from pluralbench_rewards.prompts.asking import ask_prompt
from pluralbench_rewards.prompts.prompt import JudgePrompt, Question
from pluralbench_rewards.prompts.reading import Reading, read_list, read_pair, read_score

PROMPT_REPLIES = "choose the prompt that belongs to this model"
JSON_REPLIES = ', or let the server enforce it with `reply_format="structured"`'


@dataclass(frozen=True)
class Judge(ChatClient):
    """A language model as a judge. `score` rates responses one by one; `compare` decides between two, and
    `pick` among a list.

    Attributes:
        rule: Rule for parsing replies (see `pluralbench_calls.verdicts`).
        prompt: Prompt from a file, in place of ours; `reply`, `criterion` and `rule` then have no effect.
        rubric_writer: Second model, which writes the rubrics of the prompt.
    """

    reply: Reply = "reasoned"
    criterion: Criterion = "quality"
    rule: Rule = "lenient"
    prompt: JudgePrompt | None = None
    rubric_writer: ChatClient | None = None
    kind = "generative"

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.model

    def compare(self, questions: Sequence[Question], *, samples: int = 1) -> list[ParsedReply[Verdict]]:
        """Decide which of two responses is better, "A" or "B"; a prompt may allow a tie, "C". `samples`: see `ask`."""
        if self.prompt is not None:
            return ask_prompt(self, self.prompt, questions, _verdict, "verdicts", samples, self.rubric_writer)

        def request(question: Question, attempt: int) -> Request:
            system = self._system(PAIR_SYSTEM, PAIR_CRITERIA, PAIR_REPLY, question)
            sections = _sections(question, ("response_a", "response_b"))
            return self.request(schema_of("verdict"), system, sections, f"the verdict on {question.id}", attempt)

        return self.ask(questions, request, lambda _, reply: parse_choice(reply, self.rule), "verdicts", samples)

    def pair_scores(self, reply: ParsedReply[Verdict]) -> tuple[float, float] | None:
        """Return the scores that a reply to `compare` gives both responses; None if the prompt asks for none."""
        prompt = self.prompt
        if prompt is None or prompt.verdict.scale is None or reply.value is None:
            return None
        with suppress(InvalidAnswer):  # scores that only the values of a prompt's variables make readable
            return read_pair(prompt.verdict, reply.answer.text, prompt.prefill).scores
        return None

    def rate(self, questions: Sequence[Question], *, samples: int = 1) -> list[list[ParsedReply[float]]]:
        """Rate each response of each question by itself, from 1 to 10 or on the scale of the prompt."""
        single = [
            (replace(question, responses=(text,)), number)
            for question in questions
            for number, text in enumerate(question.responses, 1)
        ]
        if self.prompt is not None:
            shown = [question for question, _ in single]
            ratings = ask_prompt(self, self.prompt, shown, _score, "ratings", samples, self.rubric_writer)
        else:

            def request(item: tuple[Question, int], attempt: int) -> Request:
                question, number = item
                system = self._system(RATING_SYSTEM, RATING_CRITERIA, RATING_REPLY, question)
                sections = _sections(question, ("response",))
                label = f"the rating of response {number} to {question.id}"
                return self.request(schema_of("rating"), system, sections, label, attempt)

            ratings = self.ask(single, request, lambda _, reply: parse_rating(reply, self.rule), "ratings", samples)
        remaining = iter(ratings)
        return [[next(remaining) for _ in question.responses] for _ in range(samples) for question in questions]

    def pick(self, questions: Sequence[Question], *, samples: int = 1) -> list[ParsedReply[int]]:
        """Return the number of the best response of each question, from 1, in one call per question."""

        def request(question: Question, attempt: int) -> Request:
            system = self._system(LIST_SYSTEM, LIST_CRITERIA, LIST_REPLY, question)
            count = len(question.responses)
            sections = _sections(question, [f"response_{number}" for number in range(1, count + 1)])
            return self.request(pick_schema(count), system, sections, f"the pick for {question.id}", attempt)

        def parse(question: Question, reply: str) -> int:
            return parse_pick(reply, len(question.responses), self.rule)

        return self.ask(questions, request, parse, "picks", samples)

    def score_lists(self, questions: Sequence[Question], *, samples: int = 1) -> list[ParsedReply[list[float]]]:
        """Score all responses of each question in one call per question.

        Without a prompt that asks for scores, the picked response has 1, the others have 0.
        """
        if self.prompt is not None:
            return ask_prompt(self, self.prompt, questions, _scores, "lists", samples, self.rubric_writer)
        picks = self.pick(questions, samples=samples)
        counts = [len(question.responses) for question in questions] * samples
        return [
            ParsedReply(
                None if pick.value is None else [float(place == pick.value) for place in range(1, count + 1)],
                pick.answer,
                pick.reason,
                pick.calls,
            )
            for pick, count in zip(picks, counts, strict=True)
        ]

    def _system(
        self, system: str, criteria: Mapping[str, Json], replies: Mapping[str, Json], question: Question
    ) -> str:
        count, how = len(question.responses), str(replies[self.reply])
        return system.format(
            criterion=criteria[self.criterion],
            language=LANGUAGE if question.language else "",
            how=how.format(count=count) if replies is LIST_REPLY else how,
            count=count,
        )

    def record(self) -> ModelRecord:
        """Return the identity of the judge."""
        return ModelRecord(name=self.name, kind=self.kind, provider=self.model.provider)

    def score(self, groups: Sequence[Group], *, cached: Cached = None, on_scored: OnScored = None) -> Scored:
        """Rate every response with the text context of its group; see `RewardModel`.

        The score is not a number if no reply can be parsed.
        """
        questions = [Question(group.id, group.prompt, group.responses, "\n".join(group.context)) for group in groups]
        scored = scores_of(self.rate(questions))
        if on_scored is not None:
            on_scored(dict(enumerate(scored.scores)))
        return scored

    def _fix(self) -> str:
        if self.prompt is not None:
            return PROMPT_REPLIES
        return super()._fix() + ("" if self.reply == "structured" or not self.model.structured_output else JSON_REPLIES)

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
        """Build a request from texts by name, between tags; tags inside a text are harmless.

        A `structured` reply does not depend on `Judge.reply`. See `chat_request` for `attempt`.
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


def _verdict(reading: Reading, _: Question, reply: str, begun: str) -> Verdict:
    return read_pair(reading, reply, begun).verdict


def _score(reading: Reading, _: Question, reply: str, begun: str) -> float:
    return read_score(reading, reply, begun)


def _scores(reading: Reading, question: Question, reply: str, begun: str) -> list[float]:
    return read_list(reading, reply, len(question.responses), begun)


def _sections(question: Question, names: Sequence[str]) -> dict[str, str]:
    before = {"about_the_person": question.context, "language": question.language}
    asked = "question" if len(question.prompt) == 1 else "conversation"
    return (
        {name: text for name, text in before.items() if text}
        | {asked: prompt_text(question.prompt)}
        | dict(zip(names, question.responses, strict=True))
    )


def scores_of(ratings: Sequence[Sequence[ParsedReply[float]]]) -> Scored:
    """Convert ratings by group and response to scores; not a number if no reply can be parsed."""
    scores = [[math.nan if rating.value is None else rating.value for rating in group] for group in ratings]
    reasons = [rating.reason for group in ratings for rating in group if rating.reason]
    return Scored(scores, tokens_cut=[0] * len(scores), reasons=reasons)
