"""SynthesizeMe, prompted: a persona and demonstrations for a judge, found from the pairs that a person decided before.

The steps are those of SynthesizeMe (appendix B of the paper of Personalized RewardBench; defaults of its authors'
code): a model predicts with reasons which answer the person chose, and the reasons of right predictions are kept; a
persona is written from these; and of some sets of demonstrations that one is taken by which a judge, told of the
persona, is most often right about pairs that were set apart. The prompts are our own. Departures: a demonstration shows
a pair without reasons, and a person without earlier pairs, or of whom no prediction was right, is described by their
posts.
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
from pluralbench_rewards.judge import SECTION, Comparison, Judge, ReplySchema
from pluralbench_rewards.personas import WORDINGS, persona_context, prompt_text

CHOICE_SYSTEM = """\
You find out what one person values in answers. You see what they asked and two answers, the first and the second; one \
of the two is the one they preferred. Look at how they ask, what they seem to know already and what they would do with \
an answer, and say in at most 80 words which of the two this very person would prefer and why. What most people would \
prefer does not count, and neither does the order of the answers.
Reply in JSON with your words as "reasoning" and then, as "preference", either "First" or "Second"."""
PERSONA_SYSTEM = """\
You describe a person for somebody who will choose between answers on their behalf. You see what the person asked and, \
for each question, why they preferred one answer to another. Say what holds across the cases: what they are interested \
in, what they know, and how they like to be answered (length, depth, tone, form). Write 2 to 5 sentences that start \
with "I", in the person's own voice; claim nothing that the cases do not show, and quote none of them.
Reply in JSON with a list of these sentences as "persona"."""
POSTS_SYSTEM = """\
You describe a person for somebody who will choose between answers on their behalf. You see what the person wrote \
before. Say what it shows of them: what they are interested in, what they know, and how they would like to be \
answered. Write 2 to 5 sentences that start with "I", in the person's own voice; claim nothing that the texts do not \
show, and quote none of them.
Reply in JSON with a list of these sentences as "persona"."""
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
"""What a persona was written from: reasons behind choices of the person, or their posts alone."""


def prompts_digest() -> str:
    """SHA-256 of the prompts above, and of how a judge is told of a persona."""
    return digest(dict(PROMPTS))


class SynthesisConfig(FrozenModel):
    """Search for personas and demonstrations. Defaults: SynthesizeMe's code."""

    num_candidates: int = Field(10, ge=1, description="Demonstration sets to try; the first one is empty.")
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
    """What was found for a person.

    persona: sentences, empty where none could be written (`reason` says why). source: what it was written from.
    kept, predicted: how many predictions about earlier pairs were right, and how many were asked for. accuracy: of a
    judge with these demonstrations, over `validated` pairs; None where no pair was set apart. tried: sets of
    demonstrations. call: the key of the call that the persona is from.
    """

    id: str
    persona: tuple[str, ...]
    source: Origin | None
    demonstrations: tuple[EarlierPair, ...] = ()
    kept: int = 0
    predicted: int = 0
    accuracy: float | None = None
    validated: int = 0
    tried: int = 0
    call: str | None = None
    reason: str = ""


@dataclass
class _Case:
    """A person on the way: their pairs in two parts, the reasons that were kept, and the best set so far."""

    id: str
    person: Person
    learned: Sequence[EarlierPair]
    apart: Sequence[EarlierPair]
    reasons: list[tuple[EarlierPair, str]]
    persona: tuple[str, ...] = ()
    call: str | None = None
    reason: str = ""
    best: tuple[EarlierPair, ...] = ()
    right: int = -1
    tried: int = 0


def synthesize(people: Sequence[Person], judge: Judge, options: SynthesisConfig) -> list[Synthesized]:
    """A persona and demonstrations for each person, by their earlier pairs or else by their posts.

    judge: who predicts, writes and judges. All is asked through its ledger, so an interrupted synthesis goes on where
    it was; its seed, with a person's id, is that of the order of answers and of the sets of demonstrations.

    Raises a `CallsError` that says how many answers are recorded.
    """
    cases = [_case(person, str(number), options) for number, person in enumerate(people)]
    with working_ledger(judge.ledger) as ledger:
        judge = replace(judge, ledger=ledger)
        _bootstrap(cases, judge)
        _describe(cases, judge, options)
        _demonstrate(cases, judge, options)
    return [_result(case) for case in cases]


def split_in_order(pairs: Sequence[EarlierPair], share: float) -> tuple[Sequence[EarlierPair], Sequence[EarlierPair]]:
    """The older pairs, which are this share of all but at least one, and the later ones."""
    first = max(1, int(len(pairs) * share))
    return pairs[:first], pairs[first:]


def candidate_sets(number: int, options: SynthesisConfig, seed: int, name: str) -> list[tuple[int, ...]]:
    """Different sets of the places of so many pairs, in order: the empty set, then sets drawn by the seed and name."""
    draw = rng_for(seed, "demonstrations", name)
    sets: list[tuple[int, ...]] = [()]
    most = min(options.max_demonstrations, number)
    for _ in range(10 * options.num_candidates if most else 0):
        if len(sets) == options.num_candidates:
            break
        drawn = tuple(sorted(draw.sample(range(number), draw.randint(1, most))))
        sets += [drawn] if drawn not in sets else []
    return sets


def _case(person: Person, number: str, options: SynthesisConfig) -> _Case:
    learned, apart = split_in_order(person.earlier, options.train_fraction)
    return _Case(person.id or number, person, learned, apart, [])


def _bootstrap(cases: Sequence[_Case], judge: Judge) -> None:
    """Keep the reasons of right predictions."""
    asked = [(case, place, pair) for case in cases for place, pair in enumerate(case.learned)]
    turned = [rng_for(judge.seed, "first or second", case.id, place).random() < 0.5 for case, place, _ in asked]
    items = [(*item, swapped) for item, swapped in zip(asked, turned, strict=True)]

    def request(item: tuple[_Case, int, EarlierPair, bool], attempt: int) -> Request:
        case, place, pair, swapped = item
        first, second = (pair.rejected, pair.chosen) if swapped else (pair.chosen, pair.rejected)
        shown = {"question": prompt_text(pair.prompt), "first_answer": first, "second_answer": second}
        return judge.request(CHOICE, CHOICE_SYSTEM, shown, f"choice {place + 1} of {case.id}", attempt)

    found = judge.ask(items, request, lambda _, reply: _parse_choice(reply), "predictions")
    for (case, _, pair, swapped), settled in zip(items, found, strict=True):
        if settled.value is not None and (settled.value[1] == SECOND) == swapped:
            case.reasons.append((pair, settled.value[0]))


def _describe(cases: Sequence[_Case], judge: Judge, options: SynthesisConfig) -> None:
    """Write a persona from the reasons, or where there are none from the posts."""
    told = [case for case in cases if case.reasons or case.person.profile]

    def request(case: _Case, attempt: int) -> Request:
        system, shown = (PERSONA_SYSTEM, _reasons(case)) if case.reasons else (POSTS_SYSTEM, _posts(case, options))
        return judge.request(PERSONA, system, shown, f"persona of {case.id}", attempt)

    found: list[ParsedReply[tuple[str, ...]]] = judge.ask(
        told, request, lambda _, reply: _parse_persona(reply), "personas"
    )
    for case, settled in zip(told, found, strict=True):
        case.persona, case.call, case.reason = settled.value or (), settled.answer.key, settled.reason
    for case in cases:
        if not (case.reasons or case.person.profile):
            case.reason = "neither an earlier pair whose prediction was right nor a post"


def _demonstrate(cases: Sequence[_Case], judge: Judge, options: SynthesisConfig) -> None:
    """Take the first of the best sets by the pairs set apart; without such pairs nothing decides for any."""
    sets = {case.id: candidate_sets(len(case.learned), options, judge.seed, case.id) for case in cases if case.persona}
    for number in range(options.num_candidates):
        open_ = [case for case in cases if number < len(sets.get(case.id, ())) and not _is_settled(case, options)]
        questions = [(case, place, pair) for case in open_ for place, pair in enumerate(case.apart)]
        shown = {case.id: [case.learned[place] for place in sets[case.id][number]] for case in open_}
        turned = [rng_for(judge.seed, "validation", case.id, place).random() < 0.5 for case, place, _ in questions]
        comparisons = [
            _comparison(case, place, pair, shown[case.id], swapped=swapped)
            for (case, place, pair), swapped in zip(questions, turned, strict=True)
        ]
        verdicts = judge.compare(comparisons) if comparisons else []
        right = dict.fromkeys((case.id for case in open_), 0)
        for (case, _, _), swapped, settled in zip(questions, turned, verdicts, strict=True):
            right[case.id] += settled.value == ("B" if swapped else "A")
        for case in open_:
            case.tried += 1
            if right[case.id] > case.right:
                case.best, case.right = tuple(shown[case.id]), right[case.id]


def _is_settled(case: _Case, options: SynthesisConfig) -> bool:
    return case.tried > 0 and (not case.apart or case.right / len(case.apart) >= options.target_accuracy)


def _comparison(
    case: _Case, place: int, pair: EarlierPair, shown: Sequence[EarlierPair], *, swapped: bool
) -> Comparison:
    first, second = (pair.rejected, pair.chosen) if swapped else (pair.chosen, pair.rejected)
    name = f"pair {len(case.learned) + place + 1} of {case.id}"
    return Comparison(name, pair.prompt, first, second, persona_context(case.persona, shown))


def _result(case: _Case) -> Synthesized:
    validated = len(case.apart) if case.tried else 0
    return Synthesized(
        id=case.id,
        persona=case.persona,
        source=None if not case.persona else "choices" if case.reasons else "posts",
        demonstrations=case.best,
        kept=len(case.reasons),
        predicted=len(case.learned),
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


def _object(reply: str) -> dict[str, Any]:
    """The JSON object in a reply, which may be fenced or have words before it. Raises `InvalidAnswer`."""
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
    said = _object(reply)
    reasoning, preference = said.get("reasoning"), said.get("preference")
    if not isinstance(reasoning, str) or not _says_something(reasoning):
        raise InvalidAnswer("no reasoning")
    if preference not in {FIRST, SECOND}:
        raise InvalidAnswer("no preference")
    return reasoning.strip(), str(preference)


def _parse_persona(reply: str) -> tuple[str, ...]:
    persona = _object(reply).get("persona")
    sentences = [persona] if isinstance(persona, str) else persona
    if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
        raise InvalidAnswer("no persona")
    if not (told := tuple(sentence.strip() for sentence in sentences if _says_something(sentence))):
        raise InvalidAnswer("an empty persona")
    return told


def _says_something(sentence: str) -> bool:
    """Whether it is more than dots, or a word that a model left standing alone."""
    return len(re.findall(r"\w+", sentence)) > 1 or bool(re.search(r"[^\W\d_]{4}", sentence))
