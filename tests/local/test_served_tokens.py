"""Token rewards behind servers: the same numbers as in this process, or one sentence that says why not."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from engine_server import Imitation, imitate
from pluralbench_local import LocalError
from pluralbench_rewards.served.engine import ServerError
from reward_models import Folders, differences, load_classifier
from served_contract import GROUPS, Running, scored

Serve = Callable[..., Imitation]
LABELS = (91, 80)
FEW = GROUPS[:5]
LOG_ODDS = {"positive_token": f"id:{LABELS[0]}", "negative_token": f"id:{LABELS[1]}", "question": "Good?"}
PROBABILITY = LOG_ODDS | {"token_score": "probability"}
LOGIT = {"positive_token": "id:91", "token_position": "end"}
ENGINES: dict[str, dict[str, Any]] = {
    "vllm, rows": {"engine": "vllm", "kind": "rows", "rows": LABELS},
    "vllm": {"engine": "vllm", "kind": "token"},
    "sglang": {"engine": "sglang", "kind": "token"},
}


@pytest.fixture
def serve(language_models: Folders) -> Iterator[Serve]:
    """`serve(engine="vllm", kind="token")`: an imitation server of a tiny language model, until the test ends."""
    with ExitStack() as stack:
        yield lambda folder="", **settings: stack.enter_context(
            imitate(settings.pop("engine"), folder or language_models(), **settings)
        )


def running(server: Imitation, fields: dict[str, Any]) -> Running:
    return Running(server.url, server.engine, server.folder, "token", fields=fields)


def scores_here(server: Imitation, fields: dict[str, Any]) -> list[list[float]]:
    return load_classifier(server.folder, kind="token", **fields).score(GROUPS).scores


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fields", [LOG_ODDS, PROBABILITY], ids=["log_odds", "probability"])
def test_the_scores_are_those_of_the_model_here(serve: Serve, engine: str, fields: dict[str, Any]) -> None:
    server = serve(**ENGINES[engine])
    found = scored(running(server, fields))
    assert max(differences(found.scores, scores_here(server, fields))) < 1e-4
    assert found.served is not None
    assert (found.served.check.against, found.served.check.decisions_changed) == ("weights", 0)


def test_the_logit_of_one_token_is_that_of_its_row(serve: Serve) -> None:
    server = serve(engine="vllm", kind="rows", rows=(91,))
    assert max(differences(scored(running(server, LOGIT)).scores, scores_here(server, LOGIT))) < 1e-4


def test_the_tokens_are_sent_with_the_ids_of_the_labels(serve: Serve) -> None:
    for engine, page in (("vllm", "/generative_scoring"), ("sglang", "/v1/score")):
        server = serve(**ENGINES[engine])
        scored(running(server, LOG_ODDS), FEW)
        bodies = [body for path, body in server.posts if path == page]
        assert bodies
        assert all(body["label_token_ids"] == list(LABELS) and body["query"] == [] for body in bodies)
        assert all(isinstance(ids, list) and ids[0] == 0 for body in bodies for ids in body["items"])


def reply(**changed: Any) -> Callable[[Any, int], Any]:
    return lambda good, number: good | changed


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no logit of one token": (ENGINES["vllm"], LOGIT, r"gives probabilities, not the logit of one token; start vLLM"),
    "another number of tokens": (
        {"engine": "vllm", "kind": "rows", "rows": (91,)},
        LOG_ODDS,
        r"sends 1 logits, not those of 2 tokens; start vLLM with --runner pooling --hf-overrides",
    ),
    "other tokens": (
        {"engine": "vllm", "kind": "rows", "rows": (91, 81)},
        LOG_ODDS,
        r"differ from those of the local weights",
    ),
    "an embedding server": (
        {"engine": "sglang", "kind": "rows", "rows": LABELS},
        LOG_ODDS,
        r"generates no text; start it with a language model, without --is-embedding",
    ),
    "a cut input": (
        ENGINES["vllm"] | {"spoil": reply(usage={"prompt_tokens": 7})},
        LOG_ODDS,
        r"read 7 tokens instead of [\d,]+, so it cut the input",
    ),
    "other labels": (
        ENGINES["sglang"] | {"spoil": lambda good, _: good | {"scores": [[0.2, 0.3] for _ in good["scores"]]}},
        LOG_ODDS,
        r"did not send the probabilities of 2 tokens, which sum to 1",
    ),
    "no probability": (
        ENGINES["vllm"] | {"spoil": lambda good, _: good | {"data": [row | {"score": 1.5} for row in good["data"]]}},
        LOG_ODDS,
        r"sent 1\.5 as a probability",
    ),
    "certainty": (
        ENGINES["vllm"] | {"spoil": lambda good, _: good | {"data": [row | {"score": 1.0} for row in good["data"]]}},
        LOG_ODDS,
        r"sends a probability of 0 or 1, from which no log-odds can be read",
    ),
    "an engine without token probabilities": (
        {"engine": "tei", "kind": "rows"},
        LOG_ODDS,
        r"is TEI, which is not supported for token rewards; serve the model with vLLM or SGLang",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_server_that_reads_another_reward_is_refused(serve: Serve, case: str) -> None:
    settings, fields, message = REFUSED[case]
    with pytest.raises(ServerError, match=message):
        scored(running(serve(**settings), fields), FEW)


def test_rows_of_a_head_whose_logits_are_scaled_are_refused(language_models: Folders, serve: Serve) -> None:
    folder = language_models("gemma2", final_logit_softcapping=2.0)
    with pytest.raises(
        LocalError, match=r"changes its logits \(final_logit_softcapping\), which vLLM's classification"
    ):
        scored(running(serve(folder, engine="vllm", kind="rows", rows=LABELS), LOG_ODDS), FEW)
    server = serve(folder, engine="vllm", kind="token")
    assert max(differences(scored(running(server, LOG_ODDS)).scores, scores_here(server, LOG_ODDS))) < 1e-4
