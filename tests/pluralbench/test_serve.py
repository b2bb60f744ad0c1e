"""`pluralbench serve`: over HTTP, the rewards of `score --mode exact`, in the forms of vLLM and OpenRLHF."""

import json
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pluralbench
import pytest
from pluralbench import LocalModel, ServedModel
from pluralbench.config import RewardServerConfig, ScoringConfig, ServingConfig
from pluralbench.contract import Group
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import reward_loader
from pluralbench.results import Run
from pluralbench_calls.errors import CallsError
from pluralbench_policies import reward_functions
from pluralbench_policies.reward_functions import BatchedRewards, score_all
from pluralbench_runs import UserError
from reward_models import make_groups
from verbs import scoring as scoring_of
from written_tables import write

EXACT = ScoringConfig(mode="exact")
Rows = list[dict[str, Any]]


class Reply(NamedTuple):
    status: int
    body: Any

    @property
    def error(self) -> str:
        assert set(self.body["error"]) == {"message", "type", "param", "code"}
        assert self.body["error"]["code"] == self.status
        return str(self.body["error"]["message"])


class Running(NamedTuple):
    """A server. sizes: the number of conversations in each batch."""

    port: int
    sizes: list[int]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: Any = None, **headers: str) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, content, headers)
        response = connection.getresponse()
        reply = Reply(response.status, json.loads(response.read()))
        connection.close()
        return reply

    def text(self, path: str) -> str:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    def reward(self, **body: Any) -> float:
        [row] = self.ask("/classify", body).body["data"]
        [value] = row["probs"]
        return float(value)


@contextmanager
def serving(model: Any, *, key: str = "", scoring: ScoringConfig = EXACT, **listen: Any) -> Iterator[Running]:
    """Serve a model from a thread of this process."""
    import uvicorn
    from pluralbench.downstream.http_limits import TimedProtocol
    from pluralbench.downstream.reward_server import RewardServer

    loaded, sizes = reward_loader(model, scoring, "`serve`")(), list[int]()

    def counted(model: Any, conversations: Sequence[Any]) -> Any:
        sizes.append(len(conversations))
        return score_all(model, conversations)

    with pytest.MonkeyPatch.context() as patch, socket.socket() as bound:
        patch.setattr(reward_functions, "score_all", counted)
        bound.bind(("127.0.0.1", 0))
        name = getattr(model, "name", "it")
        app = RewardServer(BatchedRewards(lambda: loaded), name, RewardServerConfig(**listen), key)
        settings: Any = {"lifespan": "off", "ws": "none", "http": TimedProtocol, "loop": "asyncio", "log_config": None}
        server = uvicorn.Server(uvicorn.Config(app, **settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Running(bound.getsockname()[1], sizes)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def local(model: str) -> LocalModel:
    return LocalModel(name=model, device="cpu")


@pytest.fixture(scope="module")
def server(local: LocalModel) -> Iterator[Running]:
    with serving(local, max_request_size=1) as running:
        yield running


def messages(group: Group) -> list[dict[str, str]]:
    return [*group.prompt, {"role": "assistant", "content": group.responses[0]}]


@pytest.mark.heavy
def test_score_through_it_gives_the_bits_of_score_here(
    server: Running, local: LocalModel, pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    data = str(write(tmp_path / "p.jsonl", pairs(12)))

    def scored(model: Any, name: str) -> Run:
        return pluralbench.score(model, benchmark="pairs", data=data, scoring=EXACT, out=tmp_path / name)

    served = ServedModel(model=local, serving=ServingConfig(server=(server.url,), batch_size=3))
    there, here = scored(served, "there"), scored(local, "here")
    for column in ("score_chosen", "score_rejected"):
        assert there.items[column].to_list() == here.items[column].to_list()
    record = scoring_of(there).served
    assert record is not None
    assert record.engines[0].startswith("pluralbench ")
    assert (record.check.against, record.check.largest_difference) == ("weights", 0)


@pytest.mark.parametrize("fields", [{"label": "softmax:1"}, {"label": "0:0.5,1:-2"}])
def test_a_label_is_applied_by_the_server(classifiers: Callable[..., str], fields: dict[str, str]) -> None:
    from pluralbench_local import load
    from pluralbench_local.served.scoring import load as load_served

    local = LocalModel(name=classifiers(num_labels=2), device="cpu", **fields)
    groups = make_groups(1, number=4)
    with serving(local) as running:
        serving_config = ServingConfig(server=(running.url,))
        there = load_served(ServedModel(model=local, serving=serving_config), EXACT).score(groups)
    assert there.scores == load(local, scoring=EXACT).score(groups).scores


def test_thirty_requests_at_once_give_the_bits_of_one_by_one(server: Running) -> None:
    conversations = [messages(group) for group in make_groups(3, number=30)[:30]]
    alone = [server.reward(messages=one) for one in conversations]
    server.sizes.clear()
    for _ in range(3):
        with ThreadPoolExecutor(30) as pool:
            together = [pool.submit(server.reward, messages=one) for one in conversations]
        assert [one.result() for one in together] == alone
    assert sum(server.sizes) == 90
    assert max(server.sizes) > 1


def test_text_and_tokens_are_the_conversation_that_the_template_renders(server: Running, local: LocalModel) -> None:
    from pluralbench_local import load

    loaded = load(local)
    template = loaded.template  # type: ignore[union-attr]
    group = make_groups(2, number=1)[0]
    text = template.conversation(group.messages, group.responses[0])
    [ids] = template.encode([text])
    expected = server.reward(messages=messages(group))
    assert server.reward(model=local.name, input=list(ids), use_activation=False) == expected
    assert server.reward(input=text, add_special_tokens=False) == expected
    # verl leaves out the BOS, which the engine adds.
    assert server.reward(input=text.removeprefix(template.tokenizer.bos_token)) == expected
    reply = server.ask("/classify", {"input": [list(ids), text], "add_special_tokens": False}).body
    assert [row["index"] for row in reply["data"]] == [0, 1]
    assert (reply["object"], reply["model"]) == ("list", local.name)
    assert reply["usage"] == {"prompt_tokens": 2 * len(ids), "total_tokens": 2 * len(ids), "completion_tokens": 0}


def test_openrlhf_gets_a_reward_for_each_query(server: Running) -> None:
    """The request of its `SingleTurnAgentExecutor`, and that of its earlier clients, which send queries alone."""
    groups = make_groups(4, number=3)
    expected = [server.reward(messages=messages(group)) for group in groups]
    prompts = [f"<bos>{number}" for number, _ in enumerate(groups)]
    queries = [f"{prompt}{group.responses[0]}</s>" for prompt, group in zip(prompts, groups, strict=True)]
    labels = [json.dumps({"prompt": group.prompt}) for group in groups]
    reply = server.ask("/get_reward", {"query": queries, "prompts": prompts, "labels": labels})
    assert reply == (200, {"rewards": expected, "scores": expected, "extra_logs": {}})
    # The chat template writes a newline after the token with which a policy ends.
    alone = [server.reward(input=f"{query}\n", add_special_tokens=False) for query in queries]
    assert server.ask("/get_reward", {"query": queries}).body["rewards"] == alone
    assert (
        server.ask("/get_reward", {"query": queries, "prompts": prompts, "labels": ["4"] * len(groups)}).body["rewards"]
        == alone
    )


WRONG: dict[str, tuple[str, Any, int, str]] = {
    "unknown model": ("/classify", {"model": "x", "input": "a"}, 404, "There is no model 'x'; there is "),
    "unknown page": ("/score", {}, 404, "There is no /score; there are /health, "),
    "wrong method": ("/classify", None, 405, "/classify is asked by POST, not by GET."),
    "no JSON": ("/classify", b"{", 400, "The request is not JSON ("),
    "deep JSON": ("/classify", b"[" * 100_000, 400, "The request is not JSON ("),
    "no object": ("/classify", [1], 400, "The request is not a JSON object."),
    "unknown field": ("/classify", {"input": "a", "chat_template": "x"}, 400, "The field 'chat_template' is not known"),
    "cut": ("/classify", {"input": "a b c", "truncate_prompt_tokens": 1}, 400, "A conversation has more than 1 tokens"),
    "cut by text": ("/classify", {"input": "a", "truncate_prompt_tokens": "1"}, 400, "`truncate_prompt_tokens` is not"),
    "opening": ("/classify", {"input": "a", "add_generation_prompt": True}, 400, "A reward is of a finished response"),
    "image": (
        "/classify",
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}, {"role": "assistant", "content": "b"}]},
        400,
        "A prompt is neither text nor messages",
    ),
    "no prompt": (
        "/get_reward",
        {"query": ["a"], "prompts": ["a"], "labels": ['{"prompt": null}']},
        400,
        "A prompt is",
    ),
    "nothing": ("/classify", {}, 400, "Give either `input` or `messages`."),
    "activation": ("/classify", {"input": "a", "use_activation": True}, 400, "Rewards have no activation"),
    "no flag": ("/classify", {"input": "a", "add_special_tokens": 1}, 400, "`add_special_tokens` is neither true"),
    "no input": ("/classify", {"input": []}, 400, "`input` is neither a text, nor token ids"),
    "empty ids": ("/classify", {"input": [[1], []]}, 400, "`input` is neither a text, nor token ids"),
    "fractions": ("/classify", {"input": [1.5]}, 400, "`input` is neither a text, nor token ids"),
    "empty text": ("/classify", {"input": "", "add_special_tokens": False}, 400, "A conversation is empty."),
    "unknown id": ("/classify", {"input": [1, 10**9]}, 400, "A conversation has the token id 1,000,000,000, but"),
    "negative id": ("/classify", {"input": [-1]}, 400, "A conversation has the token id -1, but"),
    "too long": ("/classify", {"input": "a " * 3000}, 400, "A conversation has "),
    "too long, messages": (
        "/classify",
        {"messages": [{"role": "user", "content": "a " * 3000}, {"role": "assistant", "content": "b"}]},
        400,
        "1 of 1 prompts have conversations of more than 1,024 tokens, the longest 6,014; raise ",
    ),
    "no response": ("/classify", {"messages": [{"role": "user", "content": "a"}]}, 400, "A conversation does not end"),
    "no messages": ("/classify", {"messages": ["a"]}, 400, "A prompt is neither text nor messages"),
    "no query": ("/get_reward", {"query": []}, 400, "`query` is not a list of texts"),
    "one query": ("/get_reward", {"query": "a"}, 400, "`query` is not a list of texts"),
    "other prompts": ("/get_reward", {"query": ["a"], "prompts": []}, 400, "`prompts` is not a list with a text"),
    "other labels": ("/get_reward", {"query": ["a"], "labels": ["a", "b"]}, 400, "`labels` is not a list with a label"),
    "other prompt": (
        "/get_reward",
        {"query": ["a"], "prompts": ["b"], "labels": ['{"prompt": "b"}']},
        400,
        "A query does not begin with its prompt",
    ),
    "too large": ("/classify", {"input": "a" * (1 << 20)}, 413, "The request is larger than 1 MiB; send fewer"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_gets_one_sentence(server: Running, case: str) -> None:
    path, body, status, sentence = WRONG[case]
    reply = server.ask(path, body)
    assert (reply.status, reply.error[: len(sentence)]) == (status, sentence)
    assert server.ask("/health") == (200, {})


def test_a_conversation_that_is_too_long_fails_alone(server: Running) -> None:
    fine = messages(make_groups(3, number=1)[0])
    expected = server.reward(messages=fine)
    with ThreadPoolExecutor(8) as pool:
        long = [pool.submit(server.ask, "/classify", {"input": "a " * 3000}) for _ in range(4)]
        others = [pool.submit(server.reward, messages=fine) for _ in range(4)]
    assert [one.result().status for one in long] == [400] * 4
    assert [one.result() for one in others] == [expected] * 4


def test_a_key_is_required_everywhere_but_for_health(local: LocalModel) -> None:
    with serving(local, key="abc") as running:
        body = {"input": [1, 2]}
        for headers in ({}, {"Authorization": "Bearer abd"}, {"Authorization": "abc"}, {"Authorization": "Bearer é"}):
            reply = running.ask("/classify", body, **{name: text.encode() for name, text in headers.items()})  # type: ignore[arg-type]
            assert (reply.status, reply.error[:32]) == (401, "The request has no key or a wron")
        assert [running.ask(path).status for path in ("/health", "/version", "/v1/models", "/x")] == [
            200,
            401,
            401,
            401,
        ]
        assert running.ask("/classify", body, Authorization="Bearer abc").status == 200


def test_a_function_reads_messages_and_says_what_it_cannot_score() -> None:
    def lengths(groups: Sequence[Group]) -> list[list[float]]:
        values = {"?": math.nan}
        if any("away" in group.responses for group in groups):
            raise CallsError("The provider is away.")
        if any("bug" in group.responses for group in groups):
            raise KeyError("bug")
        return [[values.get(text, float(len(text))) for text in group.responses] for group in groups]

    def chat(answer: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}]}

    with serving(lengths, scoring=ScoringConfig()) as running:
        reply = running.ask("/classify", chat("four"))
        assert ([row["probs"] for row in reply.body["data"]], "usage" in reply.body) == ([[4.0]], False)
        assert running.ask("/get_reward", {"query": ["hi you"], "prompts": ["hi "]}).body["rewards"] == [3.0]
        for body, status, sentence in (
            (chat("?"), 422, "Conversation 0 (from 0) has no reward (it is not finite)."),
            ({"input": "hi"}, 400, "The reward model "),
            (chat("away"), 502, "The provider is away."),
            (chat("bug"), 500, "Internal error (KeyError: 'bug')."),
        ):
            reply = running.ask("/classify", body)
            assert (reply.status, reply.error[: len(sentence)]) == (status, sentence)


def test_what_cannot_be_served_is_refused_before_it_is_loaded(
    local: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(sentence: str, **listen: Any) -> None:
        with pytest.raises(EvaluationError, match=sentence):
            pluralbench.serve(local, listen=RewardServerConfig(**listen))

    refused("^The server needs a key; set the environment variable NO_SUCH_KEY", client_key_env="NO_SUCH_KEY")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused(r"cannot be listened at .*; choose another `port=", port=taken.getsockname()[1])
    with pytest.raises(EvaluationError, match="choose one device"):
        pluralbench.serve(local.model_copy(update={"device": "all"}))
    with pytest.raises(UserError, match="is not a model folder"):
        pluralbench.serve("no/such/folder")
    monkeypatch.setattr("pluralbench.downstream.serve.find_spec", lambda _: None)
    with pytest.raises(EvaluationError, match=r"^`serve` needs an extra: .*serve"):
        pluralbench.serve(local)


def test_the_command_serves_until_a_signal_and_shows_no_key(
    model: str, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_KEY", "never-to-be-seen")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        running = Running(free.getsockname()[1], [])
    replies: list[Reply] = []

    def ask() -> None:
        while not replies:
            with suppress(OSError):  # it does not listen yet
                replies.append(running.ask("/health"))
        replies.append(running.ask("/classify", {"input": [1]}))
        replies.append(running.ask("/classify", {"input": [1]}, Authorization="Bearer never-to-be-seen"))
        os.kill(os.getpid(), signal.SIGTERM)  # which this process survives only while the command handles it

    client = threading.Thread(target=ask, daemon=True)
    client.start()
    words = ["serve", model, "--device", "cpu", "--port", str(running.port), "--client-key-env", "OUR_KEY"]
    status, out, log = run(*words)
    client.join()
    assert [reply.status for reply in replies] == [200, 401, 200]
    assert status == 0
    assert f" at {running.url} (/classify" in log
    assert log.endswith("Stopped.\n")
    assert "Interrupted" not in log
    assert "\n3 requests in " in log
    assert "/s), 1 of them refused or failed; 1 conversation scored.\n" in log
    assert "never-to-be-seen" not in log + out


def raw(running: Running, *sent: bytes, wait: float = 10.0) -> bytes:
    """What the server sends until it closes the connection."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=wait) as connection:
        for part in sent:
            connection.sendall(part)
        received = b""
        while part := connection.recv(65_536):
            received += part
    return received


HALF = b"POST /classify HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{"


def test_what_arrives_too_slowly_is_ended(local: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluralbench.downstream.http_limits.HEADERS_SECONDS", 0.2)
    monkeypatch.setattr("pluralbench.downstream.reward_server.BODY_SECONDS", 0.2)
    health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving(local) as running:
        assert raw(running) == raw(running, b"GET /hea") == b""
        assert raw(running, health, b"GET /hea").count(b"HTTP/1.1 200 OK") == 1
        reply = raw(running, HALF)
        assert reply.startswith(b"HTTP/1.1 408 ")
        assert b"The request did not arrive within 0 s; send fewer conversations." in reply
        assert running.ask("/health") == (200, {})


def test_a_request_of_two_lengths_is_refused_with_what_follows_it(server: Running) -> None:
    both = b"POST /classify HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    reply = raw(server, both + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1 ") == 1
    assert b"The request has both a Content-Length and a Transfer-Encoding" in reply


def test_what_clients_of_vllm_send_is_taken(local: LocalModel) -> None:
    group = make_groups(5, number=1)[0]
    parts = [{"role": one["role"], "content": [{"type": "text", "text": one["content"]}]} for one in messages(group)]
    more = {"model": None, "user": "me", "priority": 0, "request_id": "7", "add_generation_prompt": False}
    more |= {"truncate_prompt_tokens": -1, "use_activation": None, "softmax": False}
    with serving(local) as running:
        assert running.reward(messages=parts, **more) == running.reward(messages=messages(group))
        split = [*parts[:-1], {"role": "assistant", "content": [{"type": "text", "text": "a"}] * 2}]
        joined = [*messages(group)[:-1], {"role": "assistant", "content": "a\na"}]
        assert running.reward(messages=split) == running.reward(messages=joined)


def test_the_numbers_of_the_server_are_those_of_its_clients(local: LocalModel) -> None:
    with serving(local) as running:
        running.reward(input="a")
        running.ask("/classify", {"input": ["a", "b"]})
        running.ask("/classify", {"input": []})
        running.ask("/no-such-page")
        text = running.text("/metrics")
    numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert numbers.pop("pluralbench_request_seconds_sum") > "0"
    assert numbers == {
        'pluralbench_requests_total{page="/classify",status="200"}': "2",
        'pluralbench_requests_total{page="/classify",status="400"}': "1",
        'pluralbench_requests_total{page="other",status="404"}': "1",
        "pluralbench_request_seconds_count": "4",
        "pluralbench_conversations_total": "3",
        "pluralbench_requests_open": "1",
    }


def test_a_client_that_does_not_finish_holds_no_server_up(
    model: str, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pluralbench.downstream.serve.STOP_SECONDS", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        running = Running(free.getsockname()[1], [])
    replies: list[Any] = []

    def ask() -> None:
        while not replies:
            with suppress(OSError):
                replies.append(running.ask("/v1/models").body["data"][0])
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(HALF)
            while "pluralbench_requests_open 2\n" not in running.text("/metrics"):  # this one and the half
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)
            replies.append(connection.recv(65_536))

    client = threading.Thread(target=ask, daemon=True)
    client.start()
    words = ["serve", model, "--device", "cpu", "--port", str(running.port), "--served-name", "ours"]
    status, _, log = run(*words)
    client.join()
    assert (replies[0]["id"], replies[0]["max_model_len"]) == ("ours", 1024)
    assert replies[1].startswith(b"HTTP/1.1 503 ")
    assert (status, log.endswith("Stopped.\n")) == (0, True)
    assert "Traceback" not in log
