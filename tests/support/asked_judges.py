"""Judges that ask a `ChatServer`, and replies for it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from chat_server import ChatServer, Reply
from pluralbench_calls import ChatModel, ConnectionConfig
from pluralbench_rewards.judge import Judge
from pluralbench_rewards.prompts import JudgePrompt, read_list, read_pair, read_score

ONE_BY_ONE = {"concurrency": 1}


def judge(
    server: ChatServer,
    folder: Path,
    *,
    model: Mapping[str, Any] | None = None,
    connection: Mapping[str, Any] | None = None,
    **options: Any,
) -> Judge:
    """A judge at temperature 0 whose ledger lies in the folder."""
    folder.mkdir(exist_ok=True)
    chat = ChatModel.model_validate({"provider": "127.0.0.1", "model": "judge-1", "temperature": 0.0, **(model or {})})
    reached = ConnectionConfig.model_validate({"base_url": server.base_url, **(connection or {})})
    return Judge(chat, reached, folder / "ledger", **options)


def shared_beginning(first: Sequence[Mapping[str, str]], second: Sequence[Mapping[str, str]]) -> str:
    """The text with which the messages of both requests begin."""
    texts = ("\n".join(message["content"] for message in messages) for messages in (first, second))
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))


def always(text: str, **reply: Any) -> Callable[[dict[str, Any], int], Reply]:
    """The same reply to every request."""
    return lambda *_: Reply(text, **reply)


def read_reply(prompt: JudgePrompt, reply: str, count: int, begun: str = "") -> list[float]:
    """What a prompt reads in a reply to so many responses; scores of a pair are 1 and 0, or 1/2 for a tie."""
    if prompt.protocol == "pairwise":
        verdict = read_pair(prompt.verdict, reply, begun).verdict
        return {"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.5, 0.5]}[verdict]
    if prompt.protocol == "pointwise":
        return [read_score(prompt.verdict, reply, begun)]
    return read_list(prompt.verdict, reply, count, begun)
