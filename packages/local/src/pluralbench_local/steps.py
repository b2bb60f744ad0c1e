"""Render and tokenize answers whose steps are marked, and keep where the marks are."""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from pluralbench_rewards import Message
from pluralbench_runs import one_line

from pluralbench_local.conversations import Conversation, Template, encode_texts
from pluralbench_local.errors import LocalError
from pluralbench_local.packing import Tokens
from pluralbench_local.step_rewards import StepForm, StepReading

BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class Part(NamedTuple):
    """A part of a rendered conversation, whose tokens are made apart.

    `ends` are the characters of the text that end what is read: the last token before each.
    """

    text: str
    ends: tuple[int, ...] = ()


def split_steps(answer: str, between: str = "", *, whole: bool = False) -> list[str]:
    """Split an answer into its steps, by blank lines if `between` is empty; an answer without text has none."""
    steps = answer.split(between) if between else BLANK_LINES.split(answer)
    if whole:
        return steps if answer.strip() else []
    return [step.strip() for step in steps if step.strip()]


def tokenize_steps(conversations: Sequence[Conversation], template: Template, reading: StepReading) -> Iterator[Tokens]:
    """Tokenize conversations (id, prompt and answer) and keep where their steps are read.

    Raises:
        LocalError: If an answer has no step, or the chat template or the tokenizer changes a mark.
    """
    parts_of = [_parts(name, messages, answer, reading, template) for name, messages, answer in conversations]
    whole = replace(template, edit=None)  # an edit is of a conversation, not of each part
    pieces = encode_texts((part.text for parts in parts_of for part in parts), whole)
    for parts in parts_of:
        ids, marks = array("i"), list[int]()
        for part in parts:
            piece = next(pieces)
            marks += [len(ids) + place for place in _places(part, piece, template)]
            ids += piece
        if template.edit is not None:
            edited = array("i", template.edit(ids.tolist()))
            marks = [mark + len(edited) - len(ids) for mark in marks]  # an edit changes the beginning
            ids = edited
        yield Tokens(ids, range(marks[0], marks[-1] + 1), tuple(marks))


def _parts(
    name: str, messages: Sequence[Message], answer: str | Sequence[str], reading: StepReading, template: Template
) -> list[Part]:
    if isinstance(answer, str):
        steps = split_steps(answer, reading.split, whole=reading.whole)
    else:
        steps = [step if reading.whole else step.strip() for step in answer]
        _check_steps(name, steps, reading)
    if not steps:
        raise LocalError(f"An answer to the prompt {name} has no step, so it has no process reward; leave it out.")
    return FORMS[reading.form](messages, steps, reading.mark, template)


def _check_steps(name: str, steps: Sequence[str], reading: StepReading) -> None:
    """Refuse an empty step, and one with the mark in its text, which would be read as its end."""
    mark = "" if reading.form == "turn" else reading.mark.strip()
    for number, step in enumerate(steps):
        if not step.strip():
            raise LocalError(f"Step {number} of the answer to the prompt {name} is empty; leave the answer out.")
        if mark and mark in step:
            raise LocalError(
                f"Step {number} of the answer to the prompt {name} contains the step mark {mark!r}; remove it "
                "there, or leave the answer out."
            )


def _marked_by_tokens(messages: Sequence[Message], steps: Sequence[str], mark: str, template: Template) -> list[Part]:
    """Each step and each mark apart (TRL `prm_trainer.py`, `tokenize_row`)."""
    before, after = _around("".join(step + mark for step in steps), messages, template)
    marked = [part for step in steps for part in (Part(step), Part(mark, (len(mark),))) if part.text]
    return [Part(before), *marked, Part(after)]


def _marked_in_the_text(messages: Sequence[Message], steps: Sequence[str], mark: str, template: Template) -> list[Part]:
    """One text, whose marks are found by their characters."""
    lines = [step + mark for step in steps]
    before, after = _around("\n".join(lines), messages, template)
    ends, place = [], len(before)
    for line in lines:
        ends.append(place + len(line))
        place += len(line) + 1
    return [Part(before + "\n".join(lines) + after, tuple(ends))]


def _marked_by_turns(messages: Sequence[Message], steps: Sequence[str], mark: str, template: Template) -> list[Part]:
    """Steps in turn with replies, of which the first token is predicted (RLHFlow `prm_evaluate.py`)."""
    turns = [dict(message) for message in messages]
    turns[-1]["content"] = f"{turns[-1]['content']} {steps[0]}"
    openings = []
    for step in (*steps[1:], None):
        openings.append(template.render(turns, opening=True))
        turns.append({"role": "assistant", "content": mark})
        turns += [] if step is None else [{"role": "user", "content": step}]
    text = template.render(turns)
    if not all(text.startswith(opening + mark) for opening in openings):
        raise LocalError(
            "The chat template does not open replies where a finished conversation has them, so that the token before "
            f"{mark!r} cannot be read; give another one as `chat_template=...`."
        )
    ends = [len(opening) for opening in openings]
    parts = [text[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    return [*(Part(part, (len(part),)) for part in parts), Part(text[ends[-1] :])]


FORMS: Mapping[StepForm, Callable[[Sequence[Message], Sequence[str], str, Template], list[Part]]] = MappingProxyType(
    {"token": _marked_by_tokens, "text": _marked_in_the_text, "turn": _marked_by_turns}
)
"""How steps are marked, by `StepReading.form`."""


def _around(answer: str, messages: Sequence[Message], template: Template) -> tuple[str, str]:
    """Return what a template writes before and after an answer. Templates may trim what surrounds it."""
    text = template.render([*messages, {"role": "assistant", "content": answer}])
    before, found, after = text.rpartition(answer)
    if not found:
        before, found, after = text.rpartition(answer.strip())
    if not found:
        raise LocalError(
            "The chat template changes an answer with marked steps; give another one as `chat_template=...`."
        )
    return before, after


def _places(part: Part, ids: Sequence[int], template: Template) -> list[int]:
    """Positions of the tokens that end at the characters `part.ends`."""
    if part.ends in {(), (len(part.text),)} and ids:
        return [len(ids) - 1] if part.ends else []
    try:
        encoding = template.tokenizer(part.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    except Exception as error:  # noqa: BLE001 - slow tokenizers have no offsets
        raise LocalError(
            f"The tokenizer does not tell where its tokens are in a text ({one_line(error, 200)}), which step marks in "
            "texts need; use its fast tokenizer."
        ) from None
    by_end = {end: place for place, (start, end) in enumerate(encoding["offset_mapping"]) if end > start}
    missing = next((end for end in part.ends if end not in by_end), None)
    if missing is not None:
        raise LocalError(
            f"No token ends with the step mark in {part.text[max(missing - 20, 0) : missing + 10]!r}; choose another "
            '`step_mark=...`, or `step_form="token"`.'
        )
    return [by_end[end] for end in part.ends]


def single_token(token: str, template: Template) -> int:
    """Return the id of a token. Raises `LocalError` if the text is not a single one."""
    [ids] = template.encode([token])
    if len(ids) != 1 or ids[0] == template.tokenizer.unk_token_id:
        names = " ".join(map(str, template.tokenizer.convert_ids_to_tokens(list(ids))))
        raise LocalError(f"{token!r} is not a single token ({names or 'no token'}); give another one.")
    return ids[0]
