"""The items of a run as pages for a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pluralbench_runs import plural
from pluralbench_runs.console import clean, sanitize
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pluralbench.results.examples import outcomes_of, question_of
from pluralbench.results.numbers import with_interval
from pluralbench.results.runs import Run

Row = Mapping[str, Any]
Part = tuple[str, str, int]
"""A text of a page, its style, and its indentation in columns."""
LONG, LONG_POST, POSTS = 1_200, 240, 3  # characters of a text, characters of a post, and number of posts
SIDES = {"chosen", "rejected", "step"}
OUTCOMES = {
    "win": "won",
    "loss": "lost",
    "tie": "tied",
    "invalid": "invalid",
    "dropped": "dropped",
    "equal": "equal ranks",
}


def overview(run: Run) -> list[str]:
    """Describe a run, its overall number and the outcomes of its decisions, a line each."""
    config = run.config
    overall = with_interval(run.headline)
    outcomes = ", ".join(f"{OUTCOMES[outcome]} {count:,}" for outcome, count in outcomes_of(run).items())
    return [
        f"{run.path}: {config.benchmark.title}, {plural(sum(config.data.rows.values()), 'item')}, "
        f"by {sanitize(run.name)}",
        *([f"Overall {overall} over {run.size}"] if overall else []),
        *([f"No overall number: {run.unreadable} verdicts or scores are invalid"] if run.unreadable else []),
        f"Decisions: {'; '.join(filter(None, [outcomes, run.close_margins]))}",
    ]


def item_page(example: Row, console: Console, *, full: bool = False) -> Iterator[Text]:
    """Lay out an item of `examples` in lines that fit the console; long texts are cut unless it is `full`."""
    prompt = example["prompt"]
    title = Text(question_of(prompt, LONG) or clean(example["id"]), style="bold")
    shown = cell_len(title.plain) <= console.width and [one["content"].strip() for one in prompt] == [title.plain]
    title.truncate(console.width, overflow="ellipsis")
    yield title.append(f" {'─' * (console.width - cell_len(title.plain) - 1)}"[: console.width - cell_len(title.plain)])
    further = {**example, "prompt": ()} if shown else example
    for text, style, indent in (_text(_facts(example), indent=0), *_parts(further, full=full)):
        for line in Text(text, style=style).wrap(console, max(console.width - indent, 20)):
            line.rstrip()
            yield Text(" " * indent).append_text(line)


def _parts(example: Row, *, full: bool) -> Iterator[Part]:
    for message in example["prompt"]:
        name = "Prompt" if message["role"] == "user" else message["role"].capitalize()
        yield _heading(name)
        yield _text(cut(message["content"], LONG, full=full))
    yield from _person(example["person"], full=full)
    for answer in example["answers"]:
        yield _heading(_answer(answer, example.get("votes")))
        yield _text(cut(answer["text"], LONG, full=full))
        if "position" not in answer:
            yield from _replies(answer.get("replies", []), full=full)
    picked_from = next((answer for answer in example["answers"] if "position" in answer), None)
    if picked_from is not None:
        yield _heading("Judge, all answers in one list")
        yield from _replies(picked_from.get("replies", []), full=full)
    for decision in example["decisions"]:
        if len(example["decisions"]) > 1:
            names = f"{answer_name(decision['chosen'])} over {answer_name(decision['rejected'])}"
            yield _heading(f"{names[0].upper()}{names[1:]}: {OUTCOMES[decision['outcome']]}{_margin(decision)}")
        yield from _decision(decision, full=full)


def _facts(example: Row) -> str:
    outcomes, first = example["outcomes"], example["decisions"][0]
    one = len(example["decisions"]) == 1
    outcome_text = ", ".join(f"{'' if one else f'{count} '}{OUTCOMES[outcome]}" for outcome, count in outcomes.items())
    place = example["config"] if example["subset"] is None else f"{example['config']}, {example['subset']}"
    english = f"; in English {OUTCOMES[example['english']]}" if "english" in example else ""
    credit = "" if example.get("credit") is None else f", credit {example['credit']:.3g}"
    return clean(f"{example['id']} ({place}): {outcome_text}{_margin(first) if one else ''}{credit}{english}")


def _margin(decision: Row) -> str:
    return "" if decision.get("margin") is None else f", margin {decision['margin']:+.4g}"


def _answer(answer: Row, votes: int | None) -> str:
    name = answer_name(answer["name"])
    rank = "" if name == answer["name"] or "rank" not in answer else f", rank {answer['rank']}"
    score = "" if "score" not in answer else f", score {_number(answer['score'])}"
    position = f", number {answer['position']} in the list" if "position" in answer else ""
    voted = "" if votes is None else f", {answer['votes']} of {plural(votes, 'vote')}"
    return f"{name[0].upper()}{name[1:]}{rank}{score}{position}{voted}"


def answer_name(answer: str) -> str:
    """The name in a sentence; names such as "chosen" and "rejected 0" need no noun."""
    return answer if answer.partition(" ")[0] in SIDES else f"answer {answer}"


def picked(decision: Row, order: Row) -> str:
    """Describe the verdict of a judge on a pair in one order, such as "prefers chosen"."""
    pair = (decision.get("chosen", "A"), decision.get("rejected", "B"))
    first, second = pair if order["first"] == pair[0] else pair[::-1]
    names = {"A": f"prefers {answer_name(first)}", "B": f"prefers {answer_name(second)}", "C": "a tie"}
    return names.get(order["verdict"], "invalid")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _person(person: Row, *, full: bool) -> Iterator[Part]:
    if not person:
        return
    yield _heading("Person")
    yield _text(person["context"])
    if person.get("persona"):
        yield _text(" ".join(person["persona"]))
    if person.get("withheld"):
        yield _text(f"Not in the prompt: {' '.join(person['withheld'])}")
    if person.get("aspects"):
        yield _text("Expectations of an answer:")
    for aspect in person.get("aspects", []):
        reason = f": {aspect['reason']}" if aspect["reason"] else ""
        yield _text(cut(f"- {aspect['aspect']}{reason}", LONG_POST, full=full), indent=4)
    posts = person.get("posts", [])
    for number, post in enumerate(posts if full else posts[:POSTS], start=1):
        category = f" ({post['category']})" if post["category"] else ""
        yield _text(f"Post {number} of {len(posts)}{category}")
        yield _text(cut(post["text"], LONG_POST, full=full), indent=4)
    if len(posts) > POSTS and not full:
        yield _text(f"{len(posts) - POSTS:,} more posts are not shown.")


def _decision(decision: Row, *, full: bool) -> Iterator[Part]:
    """The verdicts on a pair, with the replies of a judge, or the probability that the first response is better."""
    for order in decision.get("orders", []):
        verdict = f"{answer_name(order['first'])} shown first: {picked(decision, order)}"
        if "probability" in order:
            verdict += f"; it is better with probability {_number(order['probability'])}"
        yield _heading(f"{'Judge' if 'replies' in order else 'Compared'}, {verdict}")
        yield from _replies(order.get("replies", []), full=full)
    certainty = "" if decision.get("certainty") is None else f", certainty {decision['certainty']:g}"
    if "truth" in decision:
        yield _heading(f"Verdict {decision['verdict']}{certainty}; the label is {decision['truth']}")
    if decision.get("reason"):
        yield _heading(f"Invalid: {decision['reason']}.")


def _replies(replies: Sequence[Row], *, full: bool) -> Iterator[Part]:
    if votes := counted_votes(replies):
        yield _text(f"Votes: {votes}.")
    for name, reply in zip(reply_names(replies), replies, strict=True):
        yield _text(f"{name}:")
        yield _text(cut(reply["text"], LONG, full=full), indent=4)


def reply_names(replies: Sequence[Row]) -> Iterator[str]:
    """Name each reply by its number or its part, judge and sample, what it is if not an answer, and how it was read."""
    count, number = sum("part" not in reply for reply in replies), 0
    for reply in replies:
        number += "part" not in reply
        name = reply["part"].capitalize() if "part" in reply else f"Reply {number} of {count}" if count > 1 else "Reply"
        by = f" ({reply['by']})" if reply.get("by") else ""
        outcome = "" if reply["outcome"] == "answer" else f" ({reply['outcome'].replace('_', ' ')})"
        reading = _reading(reply)
        yield f"{name}{by}{outcome}{', ' if reading else ''}{reading}"


def counted_votes(replies: Sequence[Row]) -> str:
    """Count how replies that vote were read, such as "prefers chosen 5, invalid 1"; empty if fewer than two do."""
    readings = Counter(_reading(reply).partition(":")[0] for reply in replies)
    del readings[""]
    return ", ".join(f"{reading} {count:,}" for reading, count in readings.items()) if readings.total() > 1 else ""


def _reading(reply: Row) -> str:
    """How a reply that votes was read; empty for other replies."""
    if "reason" in reply:
        return f"invalid: {reply['reason']}"
    if "verdict" in reply:
        return picked(reply, reply)
    scores = reply.get("scores", {})
    if len(scores) > 1 and {*scores.values()} <= {0.0, 1.0}:
        return f"picks {' and '.join(answer_name(name) for name, score in scores.items() if score)}"
    return f"score{'s' * (len(scores) > 1)} {' and '.join(map(_number, scores.values()))}" if scores else ""


def cut(text: str, limit: int, *, full: bool = False) -> str:
    """Cut a text to `limit` characters and note how many more there are; control characters are removed."""
    printable = sanitize(text).strip()
    if full or len(printable) <= limit:
        return printable or "(empty)"
    return f"{printable[:limit].rstrip()} … ({len(printable) - limit:,} more characters)"


def _heading(text: str) -> Part:
    return sanitize(text), "bold", 0


def _text(text: str, indent: int = 2) -> Part:
    return sanitize(text), "", indent
