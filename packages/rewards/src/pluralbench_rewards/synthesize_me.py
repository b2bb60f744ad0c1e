"""SynthesizeMe: a persona and demonstrations for a judge, from a user's earlier decided pairs.

The steps follow SynthesizeMe (appendix B of the paper of Personalized RewardBench; defaults of its authors' code). A
model predicts with reasons which answer the user chose, and the reasons of right predictions are kept. A persona is
written from these reasons. Among candidate sets of demonstrations, the one with the highest accuracy of a judge with
the persona on held-out pairs is selected. The prompts are our own. There are two differences: demonstrations have no
reasons, and a user without earlier pairs or right predictions is described from the posts.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pluralbench_calls import InvalidAnswer, ParsedReply, Request, strip_thinking, working_ledger
from pluralbench_calls.verdicts import FENCED
from pluralbench_runs import FrozenModel, Json, digest, rng_for
from pydantic import Field

from pluralbench_rewards.contract import EarlierPair, Person
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.judge_prompts import SECTION, WORDINGS, ReplySchema, persona_context, prompt_text
from pluralbench_rewards.prompts.prompt import Question

CHOICE_SYSTEM = """\
You find out what one person values in answers. You see what they asked and two answers, the first and the second; one \
of the two is the one they preferred. Look at how they ask, what they seem to know already and what they would do with \
an answer, and say in at most 80 words which of the two this very person would prefer and why. What most people would \
prefer does not count, and neither does the order of the answers.
Reply in JSON with your words as "reasoning" and then, as "preference", either "First" or "Second"."""
# Fixed words begin here, which spelling rules leave alone.
PERSONA_SYSTEM = """\
You describe a person for somebody who will choose between answers on their behalf. You see what the person asked and, \
for each question, why they preferred one answer to another. Say what holds across the cases: what they are interested \
in, what they know, and how they like to be answered (length, depth, tone, form). Write 2 to 5 sentences that start \
with "I", in the person's own voice; claim nothing that the cases do not show, and quote none of them.
Reply in JSON with a list of these sentences as "persona"."""
# Fixed words end here.
# Fixed words begin here, which spelling rules leave alone.
POSTS_SYSTEM = """\
You describe a person for somebody who will choose between answers on their behalf. You see what the person wrote \
before. Say what it shows of them: what they are interested in, what they know, and how they would like to be \
answered. Write 2 to 5 sentences that start with "I", in the person's own voice; claim nothing that the texts do not \
show, and quote none of them.
Reply in JSON with a list of these sentences as "persona"."""
# Fixed words end here.
SENTENCES = 5
FIRST, SECOND = "First", "Second"
SCHEMAS: dict[str, dict[str, Any]] = {
    "choice": {
        "reasoning": {"type": "string", "maxLength": 600},
        "preference": {"type": "string", "enum": [FIRST, SECOND]},
    },
    "persona": {
        "persona": {
            "type": "array",
            "items": {"type": "string", "maxLength": 200},
            "minItems": 1,
            "maxItems": SENTENCES,
        }
    },
}
CHOICE, PERSONA = (ReplySchema(name, properties) for name, properties in SCHEMAS.items())
PROMPTS: dict[str, Json] = {
    "choice": CHOICE_SYSTEM,
    "persona": PERSONA_SYSTEM,
    "posts": POSTS_SYSTEM,
    "schemas": SCHEMAS,
    "section": SECTION,
    "wordings": WORDINGS,
}
Origin = Literal["choices", "posts"]
"""The source of a persona: reasons of the user's choices, or only the posts."""


def prompts_digest() -> str:
    """Compute the SHA-256 of the prompts and of the text blocks for personas and demonstrations."""
    return digest(dict(PROMPTS))


class SynthesisConfig(FrozenModel):
    """Search for personas and demonstrations. Defaults: SynthesizeMe's code."""

    num_candidates: int = Field(10, ge=1, le=1_000, description="Demonstration sets to try; the first one is empty.")
    max_demonstrations: int = Field(4, ge=0, description="Maximum number of demonstrations per set.")
    train_fraction: float = Field(
        0.7,
        gt=0,
        le=1,
        description="Fraction of a user's earlier pairs, the oldest, to learn from; the others select the set.",
    )
    target_accuracy: float = Field(0.8, ge=0, le=1, description="Stop trying sets at this accuracy of the judge.")
    profile_size: int = Field(
        10, ge=1, description="Maximum number of posts for the persona of a user without usable earlier pairs."
    )


@dataclass(frozen=True)
class Synthesized:
    """The persona and the demonstrations of a user.

    Attributes:
        persona: Sentences; empty if none could be written, for the `reason`.
        correct: Number of right predictions about earlier pairs, of `predicted`.
        accuracy: Accuracy of the judge with these demonstrations on the `validated` held-out pairs; None without any.
        tried: Number of sets of demonstrations that were tried.
        call: Key of the call that wrote the persona.
    """

    id: str
    persona: tuple[str, ...]
    source: Origin | None
    demonstrations: tuple[EarlierPair, ...] = ()
    correct: int = 0
    predicted: int = 0
    accuracy: float | None = None
    validated: int = 0
    tried: int = 0
    call: str | None = None
    reason: str = ""


@dataclass
class _Case:
    id: str
    person: Person
    train: Sequence[EarlierPair]
    held_out: Sequence[EarlierPair]
    reasons: list[tuple[EarlierPair, str]]
    persona: tuple[str, ...] = ()
    call: str | None = None
    reason: str = ""
    best: tuple[EarlierPair, ...] = ()
    right: int = -1
    tried: int = 0


def synthesize(people: Sequence[Person], judge: Judge, options: SynthesisConfig) -> list[Synthesized]:
    """Synthesize a persona and demonstrations for each user, from earlier pairs or else from posts.

    The judge's seed, with the user's id, determines the order of answers and the sets of demonstrations.

    Raises:
        CallsError: A request fails; the message has the number of recorded answers.
    """
    cases = [_case(person, str(number), options) for number, person in enumerate(people)]
    with working_ledger(judge.ledger) as ledger:
        judge = replace(judge, ledger=ledger)
        _collect_reasons(cases, judge)
        _write_personas(cases, judge, options)
        _select_demonstrations(cases, judge, options)
    return [_result(case) for case in cases]


def split_in_order(pairs: Sequence[EarlierPair], share: float) -> tuple[Sequence[EarlierPair], Sequence[EarlierPair]]:
    """Split pairs into the oldest ones, a share of all but at least one, and the later ones."""
    first = max(1, int(len(pairs) * share))
    return pairs[:first], pairs[first:]


def candidate_sets(number: int, options: SynthesisConfig, seed: int, name: str) -> list[tuple[int, ...]]:
    """Draw distinct sets of indices of `number` pairs, starting with the empty set."""
    draw = rng_for(seed, "demonstrations", name)
    sets: list[tuple[int, ...]] = [()]
    most = min(options.max_demonstrations, number)
    for _ in range(10 * options.num_candidates if most else 0):
        if len(sets) == options.num_candidates:
            break
        candidate = tuple(sorted(draw.sample(range(number), draw.randint(1, most))))
        sets += [candidate] if candidate not in sets else []
    return sets


def _case(person: Person, number: str, options: SynthesisConfig) -> _Case:
    train, held_out = split_in_order(person.earlier, options.train_fraction)
    return _Case(person.id or number, person, train, held_out, [])


def _collect_reasons(cases: Sequence[_Case], judge: Judge) -> None:
    pairs = [(case, index, pair) for case in cases for index, pair in enumerate(case.train)]
    swaps = [rng_for(judge.seed, "first or second", case.id, index).random() < 0.5 for case, index, _ in pairs]
    items = [(*item, swapped) for item, swapped in zip(pairs, swaps, strict=True)]

    def request(item: tuple[_Case, int, EarlierPair, bool], attempt: int) -> Request:
        case, index, pair, swapped = item
        first, second = (pair.rejected, pair.chosen) if swapped else (pair.chosen, pair.rejected)
        sections = {"question": prompt_text(pair.prompt), "first_answer": first, "second_answer": second}
        return judge.request(CHOICE, CHOICE_SYSTEM, sections, f"choice {index + 1} of {case.id}", attempt)

    replies = judge.ask(items, request, lambda _, reply: _parse_choice(reply), "predictions")
    for (case, _, pair, swapped), reply in zip(items, replies, strict=True):
        if reply.value is not None and (reply.value[1] == SECOND) == swapped:
            case.reasons.append((pair, reply.value[0]))


def _write_personas(cases: Sequence[_Case], judge: Judge, options: SynthesisConfig) -> None:
    describable = [case for case in cases if case.reasons or case.person.profile]

    def request(case: _Case, attempt: int) -> Request:
        system, sections = (PERSONA_SYSTEM, _reasons(case)) if case.reasons else (POSTS_SYSTEM, _posts(case, options))
        return judge.request(PERSONA, system, sections, f"persona of {case.id}", attempt)

    replies: list[ParsedReply[tuple[str, ...]]] = judge.ask(
        describable, request, lambda _, reply: _parse_persona(reply), "personas"
    )
    for case, reply in zip(describable, replies, strict=True):
        case.persona, case.call, case.reason = reply.value or (), reply.answer.key, reply.reason
    for case in cases:
        if not (case.reasons or case.person.profile):
            case.reason = "neither an earlier pair whose prediction was right nor a post"


def _select_demonstrations(cases: Sequence[_Case], judge: Judge, options: SynthesisConfig) -> None:
    """Select the first set with the highest accuracy on the held-out pairs; without such pairs the empty set."""
    sets = {case.id: candidate_sets(len(case.train), options, judge.seed, case.id) for case in cases if case.persona}
    for number in range(options.num_candidates):
        active = [case for case in cases if number < len(sets.get(case.id, ())) and not _is_done(case, options)]
        questions = [(case, index, pair) for case in active for index, pair in enumerate(case.held_out)]
        candidates = {case.id: [case.train[index] for index in sets[case.id][number]] for case in active}
        swaps = [rng_for(judge.seed, "validation", case.id, index).random() < 0.5 for case, index, _ in questions]
        comparisons = [
            _comparison(case, index, pair, candidates[case.id], swapped=swapped)
            for (case, index, pair), swapped in zip(questions, swaps, strict=True)
        ]
        verdicts = judge.compare(comparisons) if comparisons else []
        right = dict.fromkeys((case.id for case in active), 0)
        for (case, _, _), swapped, verdict in zip(questions, swaps, verdicts, strict=True):
            right[case.id] += verdict.value == ("B" if swapped else "A")
        for case in active:
            case.tried += 1
            if right[case.id] > case.right:
                case.best, case.right = tuple(candidates[case.id]), right[case.id]


def _is_done(case: _Case, options: SynthesisConfig) -> bool:
    return case.tried > 0 and (not case.held_out or case.right / len(case.held_out) >= options.target_accuracy)


def _comparison(
    case: _Case, index: int, pair: EarlierPair, demonstrations: Sequence[EarlierPair], *, swapped: bool
) -> Question:
    responses = (pair.rejected, pair.chosen) if swapped else (pair.chosen, pair.rejected)
    name = f"pair {len(case.train) + index + 1} of {case.id}"
    return Question(name, pair.prompt, responses, persona_context(case.persona, demonstrations))


def _result(case: _Case) -> Synthesized:
    validated = len(case.held_out) if case.tried else 0
    return Synthesized(
        id=case.id,
        persona=case.persona,
        source=None if not case.persona else "choices" if case.reasons else "posts",
        demonstrations=case.best,
        correct=len(case.reasons),
        predicted=len(case.train),
        accuracy=case.right / validated if validated else None,
        validated=validated,
        tried=case.tried,
        call=case.call,
        reason=case.reason,
    )


def _reasons(case: _Case) -> dict[str, str]:
    return {
        f"case_{number}": f"They asked: {prompt_text(pair.prompt)}\nWhy they preferred one answer: {reason}"
        for number, (pair, reason) in enumerate(case.reasons, start=1)
    }


def _posts(case: _Case, options: SynthesisConfig) -> dict[str, str]:
    return {
        f"post_{number}": post["text"]
        for number, post in enumerate(case.person.profile[: options.profile_size], start=1)
    }


def _parse_object(reply: str) -> dict[str, Any]:
    """Parse the JSON object in a reply, which may be fenced or follow other text. Raises `InvalidAnswer`."""
    text = strip_thinking(reply).strip()
    fenced = FENCED.fullmatch(text)
    text = fenced[1] if fenced else text[max(text.find("{"), 0) :]
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        raise InvalidAnswer("no JSON") from None
    if not isinstance(value, dict):
        raise InvalidAnswer("no JSON object")
    return value


def _parse_choice(reply: str) -> tuple[str, str]:
    values = _parse_object(reply)
    reasoning, preference = values.get("reasoning"), values.get("preference")
    if not isinstance(reasoning, str) or not _has_content(reasoning):
        raise InvalidAnswer("no reasoning")
    if preference not in {FIRST, SECOND}:
        raise InvalidAnswer("no preference")
    return reasoning.strip(), str(preference)


def _parse_persona(reply: str) -> tuple[str, ...]:
    persona = _parse_object(reply).get("persona")
    sentences = [persona] if isinstance(persona, str) else persona
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InvalidAnswer("no persona")
    if not (usable := tuple(sentence.strip() for sentence in sentences if _has_content(sentence))):
        raise InvalidAnswer("an empty persona")
    return usable


def _has_content(sentence: str) -> bool:
    return len(re.findall(r"\w+", sentence)) > 1 or bool(re.search(r"[^\W\d_]{4}", sentence))
