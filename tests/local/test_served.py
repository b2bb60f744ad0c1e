"""Reward models behind servers: the same numbers as in this process, or one sentence that says why not."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import served_contract
from case_marks import heavy
from engine_server import Imitation, imitate
from pluralbench_local import LocalError, LocalModel, ServedModel
from pluralbench_local.served.checking import weight_files
from pluralbench_local.served.config import described
from pluralbench_local.served.scoring import load
from pluralbench_rewards import ScoringConfig
from pluralbench_rewards.served.engine import ServerError, ServingConfig
from reward_models import ENDS_WITH_EOS, EOS, Folders, differences, make_tokenizer, save_classifier
from served_contract import GROUPS, Running, scored, scores_alone, served

Serve = Callable[..., Imitation]
ENGINES = ("vllm", "sglang", "tei")
ARCHITECTURE = {"vllm": "llama", "sglang": "qwen3", "tei": "bert"}


@pytest.fixture
def serve(classifiers: Folders) -> Iterator[Serve]:
    """`serve("vllm", offset=0.1)`: an imitation server of a tiny classifier, until the test ends."""
    with ExitStack() as stack:

        def start(engine: str, folder: str | None = None, **settings: Any) -> Imitation:
            folder = folder or classifiers(ARCHITECTURE[engine])
            return stack.enter_context(imitate(engine, folder, **settings))

        yield start


def running(server: Imitation, **more: Any) -> "Running":
    return Running(server.url, server.engine, server.folder, longest=server.max_length, **more)


def refused(*servers: Imitation, **serving: Any) -> str:
    """What scoring through these servers is refused for."""
    with pytest.raises(ServerError) as raised:
        scored(running(servers[0]), server=tuple(server.url for server in servers), **serving)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("engine", ["vllm", *heavy("sglang", "tei")])
def test_the_scores_of_an_engine_are_those_of_the_model_here(serve: Serve, engine: str) -> None:
    served_contract.scores_are_those_of_the_model_here(running(serve(engine)))


@pytest.mark.heavy
def test_an_engine_reads_the_token_of_the_models_class(serve: Serve, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(pad=EOS, template=ENDS_WITH_EOS)
    server = serve("vllm", save_classifier(tmp_path / "m", tokenizer=tokenizer, pad_token_id=1))
    served_contract.scores_are_those_of_the_model_here(running(server))
    last = served(running(server, fields={"read": "last"})).score(GROUPS)  # compared with the model here
    assert max(differences(last.scores, scores_alone(server.folder))) > 0.01


OTHER_PROMISES = [(engine, promise) for engine in ENGINES for promise in served_contract.CLASSIFIERS[1:]]


@pytest.mark.parametrize(
    ("engine", "promise"),
    [
        pytest.param(
            engine, promise, id=f"{engine}, {promise.__name__}", marks=[pytest.mark.heavy] * (engine != "vllm")
        )
        for engine, promise in OTHER_PROMISES
    ],
)
def test_an_engine_keeps_the_promise(serve: Serve, engine: str, promise: "Callable[[Running], None]") -> None:
    promise(running(serve(engine)))


def test_another_model_of_the_same_tokenizer_is_refused(serve: Serve, classifiers: Folders) -> None:
    served_contract.another_model_is_refused(running(serve("vllm")), classifiers("llama", seed=7))


@pytest.mark.heavy
def test_implicit_rewards_are_those_of_the_model_here(language_models: Folders, serve: Serve) -> None:
    policy, reference = language_models(), language_models(seed=1)
    first, other = (serve("vllm", folder, kind="implicit") for folder in (policy, reference))
    pair = Running(first.url, "vllm", policy, "implicit", reference, other.url)
    served_contract.scores_are_those_of_the_model_here(pair)
    # A token has to be generated, so the longest conversation is one shorter than the server's inputs.
    longest = max(len(ids) for path, body in first.posts if path == "/v1/completions" for ids in body["prompt"])
    first.max_length = longest
    with pytest.raises(LocalError, match=rf"more than {longest - 1:,} tokens"):
        scored(pair)


def test_what_is_sent_is_the_tokens_and_never_ends_an_engine(serve: Serve) -> None:
    servers = [serve("vllm"), serve("sglang"), serve("tei")]
    for server in servers:
        scored(running(server))
        assert not server.ended
    vllm, sglang, tei = (
        [body for path, body in server.posts if "predict" in path or "classify" in path] for server in servers
    )
    assert all(set(body) == {"model", "input", "use_activation"} and body["use_activation"] is False for body in vllm)
    assert all(set(body) == {"input_ids"} for body in sglang)
    assert all(body["raw_scores"] is True and body["truncate"] is False for body in tei)
    assert all(len(texts) == 1 for body in tei for texts in body["inputs"])
    assert {path for server in servers for path, _ in server.posts} == {"/classify", "/predict", "/tokenize"}


def test_a_value_head_is_read_at_its_own_token_where_its_weights_are_here(
    serve: Serve, classifiers: Folders, tmp_path: Path
) -> None:
    """OpenRLHF's head `score` looks like a classifier's, but is read at the eos that ends a conversation."""
    folder = tmp_path / "model"
    shutil.copytree(classifiers("llama"), folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"value_head_prefix": "score"}), encoding="utf-8")
    server = serve("vllm", str(folder))
    record = scored(running(server)).served
    assert record is not None
    assert record.check.against == "weights"
    assert record.check.largest_difference < 1e-4
    eos = server.tokenizer.eos_token_id
    assert all(ids[-1] == eos for path, body in server.posts if path == "/classify" for ids in body["input"])


def test_the_responses_to_one_prompt_stand_together_and_once(serve: Serve) -> None:
    server = serve("vllm")
    scored(running(server), verify_items=0, batch_size=8, concurrency=1)
    batches = [body["input"][:-1] for path, body in server.posts[2:] if path == "/classify"]  # the last is the probe
    sent = [tuple(ids) for batch in batches for ids in batch]
    assert len(sent) == len(set(sent))
    assert sent == sorted(sent) or batches == sorted(batches, key=lambda batch: batch[0])


def spoiled(change: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    """The replies of scoring as `change` makes them of the good ones' rows."""

    def spoil(reply: Any, _: int) -> Any:
        return reply | {"data": change(reply["data"])} if isinstance(reply, dict) else change(reply)

    return spoil


WRONG = {
    "short": ("vllm", lambda rows: rows[1:], "results for"),
    "each token": ("vllm", lambda rows: [row | {"probs": [row["probs"]]} for row in rows], "scores each token"),
    "NaN": ("sglang", lambda rows: [row | {"embedding": [float("nan")]} for row in rows], "sent nan as a score"),
    "labels": ("tei", lambda rows: [[{"label": "good", "score": 1.0}] for _ in rows], "the labels good instead of"),
    "cut": ("sglang", lambda rows: [row | {"meta_info": {"prompt_tokens": 3}} for row in rows], "it cut the input"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_reply_that_no_score_can_be_made_of_is_an_error(serve: Serve, fault: str) -> None:
    engine, change, said = WRONG[fault]
    assert said in refused(serve(engine, spoil=spoiled(change)))


FLAGS = {"vllm": "--pooler-config '{\"use_activation\": false}'", "tei": "`raw_scores`"}


@pytest.mark.parametrize("engine", FLAGS)
def test_scores_that_passed_a_sigmoid_are_refused_by_the_flag(serve: Serve, engine: str) -> None:
    said = refused(serve(engine, activated=True))
    assert "does not return raw logits: all scores lie between 0 and 1" in said
    assert FLAGS[engine] in said


@pytest.fixture
def without_weights(tmp_path: Path) -> Callable[[str], str]:
    """A copy of a model's folder that holds no weights."""

    def copy(folder: str) -> str:
        return str(shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors")))

    return copy


def test_a_constant_is_told_from_another_model(serve: Serve, without_weights: Callable[[str], str]) -> None:
    one, other = serve("sglang", offset=0.1153), serve("sglang", offset=-0.1181)
    said = refused(one)
    assert "differ from those of the local weights of" in said
    assert "by +0.1153: its head adds a bias that the model does not have (SGLang does so" in said
    bare = Running(one.url, "sglang", without_weights(one.folder))
    with pytest.raises(ServerError, match=rf"All scores of {other.url} differ from those of {one.url} by -0.2334"):
        scored(bare, server=(one.url, other.url))


def test_what_is_compared_with_nothing_is_said_and_recorded_so(
    serve: Serve, without_weights: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve("sglang", offset=0.1)
    bare = Running(server.url, "sglang", without_weights(server.folder))
    found = scored(bare)
    assert found.served is not None
    assert found.served.check.against is None
    assert "are not checked, and the run records it" in capfd.readouterr().err
    twice = scored(bare, server=(server.url, serve("sglang", offset=0.1).url))
    assert twice.served is not None
    assert twice.served.check.against == "servers"


def test_a_server_that_dies_is_left_out_and_the_others_do_its_work(
    serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    lasting, dying = serve("vllm"), serve("vllm", ends_after=9)
    found = scored(running(lasting), server=(lasting.url, dying.url), batch_size=2, max_retries=0)
    assert found.served is not None
    assert (found.served.servers, found.served.servers_excluded) == (2, 1)
    assert max(differences(found.scores, scores_alone(lasting.folder))) < 1e-4
    assert f"{dying.url} cannot be reached" in capfd.readouterr().err


def restarted(reply: Any, number: int) -> Any:
    """The head has another random bias from the seventh scoring request on."""
    shift = 0.0 if number < 6 else 0.1
    return [row | {"embedding": [row["embedding"][0] + shift]} for row in reply]


def test_a_server_that_was_restarted_within_a_run_gives_no_score_after_it(serve: Serve) -> None:
    server = serve("sglang", spoil=restarted)
    came: dict[int, list[float]] = {}
    with pytest.raises(ServerError, match=r"changed its scores since the check \(\+0\.1 .* restarted within the run"):
        served(running(server), batch_size=4, concurrency=1).score(GROUPS, on_scored=came.update)
    assert 0 < len(came) < len(GROUPS)
    truth = scores_alone(server.folder)
    assert max(differences(list(came.values()), [truth[place] for place in came])) < 1e-4


def test_bad_addresses_are_one_sentence_each(serve: Serve, classifiers: Folders) -> None:
    assert "answers with a web page (HTML at /version) and is not an engine" in refused(serve("vllm", html=True))
    gone = serve("vllm")
    gone.url = "http://127.0.0.1:9"
    assert refused(gone).startswith("No server answers at http://127.0.0.1:9 (")
    generating = serve("sglang", kind="classifier", shown={"/model_info": {"model_path": "x", "is_generation": True}})
    assert refused(generating).endswith("generates text and returns no scores; start it with --is-embedding.")
    assert "has several models (a, b); select one with `served_name=...`." in refused(serve("vllm", names=("a", "b")))
    assert "is not a supported engine" in refused(serve("vllm", shown={"/v1/models": {}}))


def test_a_server_of_another_tokenizer_is_refused_before_it_gets_a_token(serve: Serve, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["<|user|>"])
    other = save_classifier(tmp_path / "other", "llama", tokenizer=tokenizer, vocab_size=len(tokenizer))
    server = serve("sglang")
    with pytest.raises(ServerError, match="tokenizes a text differently than"):
        scored(Running(server.url, "sglang", other))
    assert {path for path, _ in server.posts} == {"/tokenize"}


def test_an_implicit_reward_needs_an_engine_that_gives_log_probabilities(
    serve: Serve, language_models: Folders
) -> None:
    pooling = serve("vllm")
    asked = Running(pooling.url, "vllm", language_models(), "implicit")
    with pytest.raises(ServerError, match=r"has no /v1/completions .*; start vLLM with --runner generate\."):
        scored(asked)
    tei = Running(serve("tei").url, "tei", language_models(), "implicit")
    with pytest.raises(ServerError, match="is TEI, which is not supported for implicit rewards"):
        scored(tei)


def test_a_text_that_makes_other_tokens_is_not_sent(serve: Serve, written: Callable[[str], Path]) -> None:
    server = serve("tei")
    model = LocalModel(
        name=server.folder, device="cpu", chat_template=written("{% for m in messages %}{{ m.content }}{% endfor %}")
    )
    asked = load(ServedModel(model=model, serving=ServingConfig(server=(server.url,))), ScoringConfig())
    with pytest.raises(LocalError, match=r"cannot be sent as text: the engine adds special tokens \(<s>\)"):
        asked.score(GROUPS)


def test_a_reference_and_its_server_come_together(language_models: Folders) -> None:
    folder = language_models()
    model = LocalModel(name=folder, kind="implicit", reference=folder)
    with pytest.raises(ServerError, match="A reference needs its own server"):
        described(model, ServingConfig(server=("http://127.0.0.1:1",)))
    with pytest.raises(ServerError, match=r"`engine=\.\.\.` is for models behind a server; give `server="):
        described(model, ServingConfig(engine="vllm"))
    assert described(model, ServingConfig()) is model


def test_rows_that_come_in_another_order_belong_to_their_conversations(serve: Serve) -> None:
    server = serve("vllm", spoil=spoiled(lambda rows: rows[1:] + rows[:1]))
    assert max(differences(scored(running(server)).scores, scores_alone(server.folder))) < 1e-4


def test_equal_scores_are_refused_where_nothing_is_here_to_compare_with(
    serve: Serve, classifiers: Folders, without_weights: Callable[[str], str]
) -> None:
    def equal(reply: Any, _: int) -> Any:
        return [row | {"embedding": [1.0]} for row in reply]

    server = serve("sglang", spoil=equal)
    bare = Running(server.url, "sglang", without_weights(server.folder))
    with pytest.raises(ServerError, match=r"all scores are 1, as after a softmax over one logit; use /classify"):
        scored(bare)


def test_weights_are_here_if_every_shard_is_whatever_else_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit, shards = "c" * 40, ["model-1-of-2.safetensors", "model-2-of-2.safetensors"]
    model = tmp_path / "models--org--name"
    folder = model / "snapshots" / commit
    for part in (folder, model / "refs"):
        part.mkdir(parents=True)
    (model / "refs" / "main").write_text(commit, encoding="utf-8")
    assert weight_files("org/name") == []
    index = {"weight_map": dict(zip("ab", shards, strict=True))}
    for name, content in {"config.json": {}, "model.safetensors.index.json": index, shards[0]: {}}.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    assert weight_files("org/name") == []
    (folder / shards[1]).touch()
    assert weight_files("org/name") == [folder / shard for shard in shards]
    assert weight_files("no name on the Hub") == []
