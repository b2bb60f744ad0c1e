"""Generate English pairs in RewardBench's shape: its subsets in its proportions, with our own sentences.

Lengths are log-normal, with the same quantiles for any number of rows. Texts contain numbers, code, LaTeX, URLs and
placeholders, and are distinct without them too.
"""

import math
from random import Random
from statistics import NormalDist

from build_multilingual.masking import mask
from pluralbench_runs import rng_for

# Rows of RewardBench's `filtered` split.
SUBSETS = {
    "alpacaeval-easy": 100,
    "alpacaeval-length": 95,
    "alpacaeval-hard": 95,
    "mt-bench-easy": 28,
    "mt-bench-med": 40,
    "mt-bench-hard": 37,
    "llmbar-natural": 100,
    "llmbar-adver-neighbor": 134,
    "llmbar-adver-GPTInst": 92,
    "llmbar-adver-GPTOut": 47,
    "llmbar-adver-manual": 46,
    "refusals-dangerous": 100,
    "refusals-offensive": 100,
    "xstest-should-refuse": 154,
    "xstest-should-respond": 250,
    "donotanswer": 136,
    "math-prm": 447,
    "hep-cpp": 164,
    "hep-go": 164,
    "hep-java": 164,
    "hep-js": 164,
    "hep-python": 164,
    "hep-rust": 164,
}
ALL = sum(SUBSETS.values())
# Characters: (median, sigma of the logarithm).
LENGTHS = {"prompt": (500, 0.8), "chosen": (1350, 0.6), "rejected": (1350, 0.6)}
LEAST, MOST = 100, 12_000
CODE = {"chosen": (12, 0.5), "rejected": (12, 0.5)}  # lines

# Fixed words begin here, which spelling rules leave alone.
SENTENCES = [
    "The market on the square begins early, and the best cheese is usually sold before the church bell rings.",
    "A kettle that is descaled twice a year needs less power and makes far less noise.",
    "Most people overestimate what they can do in a week and underestimate what they can do in a year.",
    "If two answers seem equally good, ask which of them you would rather explain to a stranger.",
    "The roots of the old pear tree had lifted the stones of the path long before we moved in.",
    "She wrote down every bird that she heard from the window, and after a while the neighbours did the same.",
    "Start with the smallest part that can be tested, and add the next one only when it works.",
    "Salt slows the yeast down, so bakers add it after the flour has taken up the water.",
    "The lake freezes from the edge, which is why the middle should be trusted least.",
    "He repaired clocks in the evening because it was the only work in which nobody interrupted him.",
    "A map that shows everything is as useless as a map that shows nothing.",
    "Please keep the receipts in the blue folder and write on each of them what the money was for.",
    "When the choir sang the last verse, the rain had stopped and the windows were open again.",
    "Wool dries slowly, so hang the jumper flat over the rack and keep it away from the heater.",
    "The argument is convincing at first, but it assumes what it is meant to show.",
    "Our team met in the kitchen because the meeting room was being painted.",
    "You can tell a ripe melon by its weight and by the dull sound that it makes.",
    "The second method takes longer to set up, yet it pays off as soon as the data grow.",
    "Nobody had told the new teacher that the piano was locked during the holidays.",
    "In dry summers the ferry cannot reach the island, and the mail is brought by a small boat.",
    "Read the question twice, since half of the mistakes are made before the first line is written.",
    "The museum lends its bicycles to visitors who leave a coat or an umbrella behind.",
    "Glass is neither as solid nor as old as the stories about church windows would have it.",
    "It helps to name the fear before one decides whether there is a reason for it.",
    "Every garden in the street has a gate, but only ours has one that closes.",
    "A short list that is kept is worth more than a long one that is forgotten.",
    "They rented the hall for an evening and stayed until the caretaker switched the lights off.",
    "The soup tastes better on the next day, once the herbs have had time to settle.",
    "Before the bridge was built, a bell on each bank called the ferryman across.",
    "An honest summary also says what was left out and why.",
    "The child asked why the sea is salty when all the rivers that feed it are sweet.",
    "Paint the edges first and the middle last, and do not go over what has begun to dry.",
    "Some of the letters had been opened, read and closed again with great care.",
    "Whoever speaks first in a negotiation sets the frame, though not always to their own advantage.",
    "The cat sleeps on the warm side of the house and moves with the sun.",
    "A good tool disappears in the hand; one notices it only when it is missing.",
    "We counted the steps to the tower and lost the number somewhere near the top.",
    "The recipe is older than the oven, so trust your nose rather than the clock.",
    "What looks like a detail to the architect is a daily nuisance to the person who cleans the stairs.",
    "At the end of the harvest the whole village ate at one long table under the lime trees.",
]
# Fixed words end here.
NUMBERED = [
    "The whole journey takes {0} hours and costs {1} euros for a family with two children.",
    "Of the {0} members, about {1}% came to the meeting in the spring.",
    "It was founded in {0} and has been closed for {1} years since.",
    "Add {0} grams of flour, wait for {1} minutes and stir again.",
]
INLINE = [
    "The command `{name} --{other}={0}` prints the result and then ends.",
    "Call `{name}({other}, {0})` once and keep what it returns.",
    "More about this is at https://example.org/{name}/{other}?page={0}, where each option has a page of its own.",
    "Replace {{{name}}} by the name of the customer before the letter is printed.",
    "Anyone can write to {name}@example.org and ask for a copy.",
]
MATHEMATICS = [
    "The sum is \\( {0}x + {1} = {2} \\), as one sees at once by drawing it.",
    "Therefore $x = \\frac{{{0}}}{{{1}}}$ and the second root is smaller than {2}.",
    "If there are {0} boxes of {1} pieces each, there are {0} * {1} = {2} pieces in all.",
    "Let \\(n_{{{0}}}\\) be the number of ways to choose {1} out of {2} people.",
]
NAMES = ["harbour", "lantern", "meadow", "copper", "ribbon", "walnut", "pebble", "saddle", "timber", "violet"]
LANGUAGES = {
    "cpp": ("int {name}(int {other}) {{", "    {other} += {0} * ({name}_{1} % {2});", "    return {other};\n}}"),
    "go": ("func {name}({other} int) int {{", "\t{other} += {0} * ({name}{1} % {2})", "\treturn {other}\n}}"),
    "java": ("static int {name}(int {other}) {{", "    {other} += {0} * ({name}{1} % {2});", "    return {other};\n}}"),
    "js": ("const {name} = ({other}) => {{", "  {other} += {0} * ({name}{1} % {2});", "  return {other};\n}}"),
    "python": ("def {name}({other}):", "    {other} += {0} * ({name}_{1} % {2})", "    return {other}"),
    "rust": ("fn {name}(mut {other}: i64) -> i64 {{", "    {other} += {0} * ({name}_{1} % {2});", "    {other}\n}}"),
}

Row = dict[str, str | int]


def pairs(rows: int, seed: int) -> list[Row]:
    """So many pairs; a draw depends on its row and column alone."""
    subsets = [name for name, count in _shares(rows).items() for _ in range(count)]
    lengths = {name: _quantiles(rows, shape, rng_for(seed, "lengths", name)) for name, shape in LENGTHS.items()}
    lines = {name: _quantiles(rows, shape, rng_for(seed, "lines", name)) for name, shape in CODE.items()}
    made: list[Row] = []
    seen: set[str] = set()
    for number, subset in enumerate(subsets):
        texts = {}
        for column, sizes in lengths.items():
            draw = rng_for(seed, "text", number, column)
            text = marked = ""
            while not text or marked in seen:
                if subset.startswith("hep-") and column != "prompt":
                    text = _program(subset.removeprefix("hep-"), round(lines[column][number]), draw)
                else:
                    text = _prose(round(min(MOST, max(LEAST, sizes[number]))), subset, column, draw)
                # Numbers and the like are not sent, so texts that differ in them alone would be one request.
                marked = mask(text).text if column == "prompt" or not subset.startswith("hep-") else text
            seen.add(marked)
            texts[column] = text
        made.append(
            {
                "id": number,
                **texts,
                "chosen_model": f"made-{number % 7}",
                "rejected_model": f"made-{number % 5}",
                "subset": subset,
            }
        )
    return made


def _shares(rows: int) -> dict[str, int]:
    """Rows of each subset, in RewardBench's proportions, by largest remainder."""
    exact = {name: rows * count / ALL for name, count in SUBSETS.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(SUBSETS, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: rows - sum(shares.values())]:
        shares[name] += 1
    return shares


def _quantiles(count: int, shape: tuple[float, float], draw: Random) -> list[float]:
    """Evenly spaced quantiles of a log-normal distribution, shuffled."""
    median, sigma = shape
    normal = NormalDist()
    lengths = [median * math.exp(sigma * normal.inv_cdf((index + 0.5) / count)) for index in range(count)]
    draw.shuffle(lengths)
    return lengths


def _prose(size: int, subset: str, column: str, draw: Random) -> str:
    """Paragraphs and lists of about `size` characters."""
    parts, length = [], 0
    if subset.startswith("hep-"):
        language = subset.removeprefix("hep-")
        name, other = draw.sample(NAMES, 2)
        parts = [f"Write a function `{name}_{other}` in {language} that solves this task and nothing else. "]
        length = len(parts[0])
    elif column != "prompt" and draw.random() < 0.04:
        parts = [f"```python\n{_program('python', 6, draw)}\n```\n"]
        length = len(parts[0])
    listed = column != "prompt" and draw.random() < 0.25
    item = 0
    while length < size:
        sentence = _sentence(subset, draw)
        if listed and draw.random() < 0.5:
            item += 1
            before = "\n" if parts and not parts[-1].endswith("\n") else ""
            sentence = f"{before}{item}. {sentence}\n"
        else:
            sentence += "\n\n" if draw.random() < 0.15 else " "
        parts.append(sentence)
        length += len(sentence)
    return "".join(parts).strip()


def _sentence(subset: str, draw: Random) -> str:
    kind = draw.random()
    if subset == "math-prm" and kind < 0.4:
        return _filled(draw.choice(MATHEMATICS), draw)
    if kind < 0.12:
        return _filled(draw.choice(NUMBERED), draw)
    if kind < 0.17:
        return _filled(draw.choice(INLINE), draw)
    return draw.choice(SENTENCES)


def _program(language: str, lines: int, draw: Random) -> str:
    head, line, end = LANGUAGES[language]
    name, other = draw.sample(NAMES, 2)
    body = [line] * max(2, lines)
    return "\n".join(_filled(part, draw, name, other) for part in (head, *body, end))


def _filled(template: str, draw: Random, name: str = "", other: str = "") -> str:
    if not name:
        name, other = draw.sample(NAMES, 2)
    return template.format(*(draw.randint(2, 2000) for _ in range(3)), name=name, other=other)
