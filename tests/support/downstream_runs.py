"""What the tests of best-of-N share: a policy and a judge behind one endpoint, and a small run of both."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chat_server import ChatServer, Reply
from pluralbench import ConnectionConfig, DataConfig, best_of_n
from pluralbench.config import DownstreamPromptConfig, OutcomeConfig, SamplingConfig
from pluralbench.contract import Group
from pluralbench.results import Downstream
from pluralbench_rewards.rubric import SYSTEM
from pluralbench_runs import FrozenModel
from some_words import WORDS
from verbs import by_length

SHOWN = re.compile(r"<(\w+)>\n(.*?)\n</\1>", re.DOTALL)
ONE_BY_ONE = {"concurrency": 1}
Row = dict[str, Any]


def is_judged(body: Row) -> bool:
    """Whether a request is for the judge."""
    return "judge" in str(body["model"])


def shown(body: Row) -> dict[str, str]:
    """What a judge's request shows, by section."""
    return dict(SHOWN.findall(body["messages"][-1]["content"]))


class World:
    """A policy that never says one thing twice of one prompt, and a judge by any of the measures.

    Asked for the same in one order, two worlds say the same.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, body: Row, _: int) -> Reply:
        """What the endpoint says."""
        return self.judged(body) if is_judged(body) else self.said(body)

    def said(self, body: Row) -> Reply:
        """An answer of the policy."""
        prompt = str(body["messages"])
        self.asked[prompt] += 1
        draw = random.Random(f"{prompt} {self.asked[prompt]}")
        return Reply(f"{' '.join(draw.choices(WORDS, k=draw.randint(1, 12)))} {self.asked[prompt]}")

    def judged(self, body: Row) -> Reply:
        """A verdict of the judge, by nothing but the answer."""
        sections = shown(body)
        if body["messages"][0]["content"] == SYSTEM:
            aspects = sections["aspects"].count("\n") + 1
            draw = random.Random(sections["answer"])
            return Reply(str([draw.randrange(3) for _ in range(aspects)]))
        if "response_a" in sections:
            return Reply("[[A]]" if len(sections["response_a"]) > len(sections["response_b"]) else "[[B]]")
        return Reply(f"[[{random.Random(sections['response']).randint(1, 10)}]]")


def asked_of(requests: Sequence[Row]) -> tuple[int, int]:
    """How many requests were for the policy, and how many for the judge."""
    judged = sum(map(is_judged, requests))
    return len(requests) - judged, judged


def by_letter(groups: Sequence[Group]) -> list[list[float]]:
    """The more of the letter e the better; a text without one has no reward."""
    return [[float(response.count("e")) or float("nan") for response in group.responses] for group in groups]


MODELS: dict[str, Callable[..., Any]] = {"length": by_length, "letter": by_letter}


def sampled(server: ChatServer, data: Path, out: Path, rewards: Any = MODELS, **options: Any) -> Downstream:
    """`pluralbench.best_of_n` of the server's `policy`, judged by its `judge`; options go where they belong.

    files: fields of both connections.
    """

    def taken(description: type[FrozenModel], given: Row) -> Any:
        return description(
            **given | {name: options.pop(name) for name in [*options] if name in description.model_fields}
        )

    connection = ConnectionConfig(base_url=server.base_url, api_key_env="", **ONE_BY_ONE, **options.pop("files", {}))
    return best_of_n(
        options.pop("policy", "policy"),
        rewards,
        data=taken(DataConfig, {"location": str(data)}),
        prompt=taken(DownstreamPromptConfig, {}),
        outcome=taken(OutcomeConfig, {"judge": "judge"}),
        sampling=taken(SamplingConfig, {"n": 5, "k": (1, 2, 4)}),
        policy_connection=options.pop("policy_connection", connection),
        judge_connection=connection,
        out=out,
        **options,
    )
