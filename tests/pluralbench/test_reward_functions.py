"""`as_reward_function`: what trainers of other libraries get of a reward model."""

import importlib.util
import json
import math
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pluralbench
import pytest
from asked_judges import judge
from chat_server import Reply, serve
from pluralbench import LocalModel
from pluralbench.config import ScoringConfig
from pluralbench.contract import Group
from pluralbench.errors import EvaluationError
from pluralbench_policies import PolicyError
from pluralbench_runs import UserError
from reward_models import classifier_alone, make_groups, user

EXACT = ScoringConfig(mode="exact")
ANSWERS = ["origami", "drumming and walking", "an old dog"]
GROUPS = [Group(f"q{place}", user(f"a quiet hobby {place}"), [answer]) for place, answer in enumerate(ANSWERS)]


def lengths(groups: Sequence[Group]) -> list[list[float]]:
    """The length of each response, plus that of the prompt in thousands; nothing for a response "?"."""
    return [
        [math.nan if text == "?" else len(text) + 1000 * len(group.messages[-1]["content"]) for text in group.responses]
        for group in groups
    ]


def reply(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def test_every_trainer_gets_the_numbers_of_the_model(model: str, tmp_path: Path) -> None:
    expected = [row[0] for row in classifier_alone(model, GROUPS)]
    local = LocalModel(name=model, device="cpu")
    trl, verl, openrlhf = (
        pluralbench.as_reward_function(local, kind, scoring=EXACT, ending="<end>")
        for kind in ("trl", "verl", "openrlhf")
    )
    plain = [group.prompt[0]["content"] for group in GROUPS]
    messages = [group.prompt for group in GROUPS]
    texts = trl(prompts=plain, completions=ANSWERS, completion_ids=[[0]] * 3, trainer_state=None, log_extra=print)
    assert texts == pytest.approx(expected, abs=1e-5)
    assert trl(prompts=messages, completions=[reply(text) for text in ANSWERS]) == texts
    for prompts in (plain, messages):
        extra = [{"id": "7", "prompt": prompt, "num_turns": None} for prompt in prompts]
        calls = zip(ANSWERS, extra, strict=True)
        assert texts == [
            verl(data_source="x", solution_str=text, ground_truth="", extra_info=own) for text, own in calls
        ]
        labels = [json.dumps({"prompt": prompt}) for prompt in prompts]
        rendered = [f"<|user|>{prompt}<|assistant|>" for prompt in plain]
        queries = [f"{prompt}{answer}<end>" for prompt, answer in zip(rendered, ANSWERS, strict=True)]
        rewards = openrlhf(queries, rendered, labels)
        assert rewards["rewards"].tolist() == rewards["scores"].tolist() == texts
        assert rewards["extra_logs"] == {}
    assert trl.__name__ == Path(model).name


def test_a_query_of_openrlhf_is_read_as_it_is_by_a_model_in_this_process(model: str) -> None:
    from pluralbench_local import load

    expected = [row[0] for row in classifier_alone(model, GROUPS)]
    template = load(model, device="cpu").template  # type: ignore[union-attr]
    queries = [template.conversation(group.prompt, group.responses[0]) for group in GROUPS]
    prompts = [template.render(group.prompt, opening=True) for group in GROUPS]
    function = pluralbench.as_reward_function(LocalModel(name=model, device="cpu"), "openrlhf")
    assert function(queries, prompts, [""] * 3)["rewards"].tolist() == pytest.approx(expected, abs=1e-5)
    # A function reads the prompt as the message of the user.
    asked = pluralbench.as_reward_function(lengths, "openrlhf")
    assert asked(["four1"], ["four"], [None])["rewards"].tolist() == [4001.0]
    with pytest.raises(PolicyError, match=r"^A query does not begin with its prompt: 'other', 'four'\.$"):
        asked(["other"], ["four"], [None])


@pytest.mark.parametrize("ending", ["</s>\n", "</s>", ""], ids=["whole", "token", "cut off"])
@pytest.mark.parametrize("label", ["prompt", ""])
def test_a_query_of_openrlhf_is_completed_as_score_reads_it(
    model: str, ending: str, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy stops after the token that ends its turn, and the template writes a newline after it."""
    from pluralbench_policies.reward_functions import _warn
    from transformers import AutoTokenizer

    _warn.cache_clear()
    tokenizer = AutoTokenizer.from_pretrained(model)
    opened: Any = {"tokenize": False, "add_generation_prompt": True}
    prompts = [str(tokenizer.apply_chat_template(list(one.prompt), **opened)) for one in GROUPS]
    queries = [prompt + answer + ending for prompt, answer in zip(prompts, ANSWERS, strict=True)]
    whole = [*GROUPS[0].prompt, *reply(ANSWERS[0])]
    assert tokenizer.apply_chat_template(whole, tokenize=False) == f"{prompts[0]}{ANSWERS[0]}</s>\n"
    labels = [json.dumps({"prompt": group.prompt}) if label else "" for group in GROUPS]
    function = pluralbench.as_reward_function(LocalModel(name=model, device="cpu"), "openrlhf")
    rewards = [function(queries, prompts, labels)["rewards"].tolist() for _ in range(2)]
    assert rewards[0] == rewards[1] == pytest.approx([row[0] for row in classifier_alone(model, GROUPS)], abs=1e-5)
    said = "A query of OpenRLHF does not end with '</s>\\n': it is cut off, or written for another template.\n"
    assert capsys.readouterr().err.count(said) == (ending == "")


def test_the_end_token_of_a_policy_is_named_to_a_model_without_a_template(capsys: pytest.CaptureFixture[str]) -> None:
    function = pluralbench.as_reward_function(lengths, "openrlhf")
    assert function(["hi four<|im_end|>\n"], ["hi "], [""])["rewards"].tolist() == [3015.0]
    assert "A response ends with '<|im_end|>\\n'; if this ends each query, give it as `ending=...`." in (
        capsys.readouterr().err
    )
    given = pluralbench.as_reward_function(lengths, "openrlhf", ending="<|im_end|>\n")
    assert given(["hi four<|im_end|>\n"], ["hi "], [""])["rewards"].tolist() == [3004.0]


@pytest.mark.parametrize("prompt", [5, None, [5], []], ids=str)
def test_a_prompt_of_another_shape_is_refused(prompt: Any) -> None:
    verl, openrlhf = (pluralbench.as_reward_function(lengths, kind) for kind in ("verl", "openrlhf"))
    with pytest.raises(PolicyError, match=r"^A prompt is neither text nor"):
        verl(solution_str="a", extra_info={"prompt": prompt})
    with pytest.raises(PolicyError, match=r"^A prompt is neither text nor"):
        openrlhf(["hia"], ["hi"], [json.dumps({"prompt": prompt})])


@pytest.mark.parametrize("kind", ["trl", "verl"])
def test_a_reward_does_not_depend_on_the_rest_of_a_batch(model: str, kind: Any) -> None:
    groups = make_groups(5, number=24)
    function = pluralbench.as_reward_function(LocalModel(name=model, device="cpu", dtype="bfloat16"), kind)

    def together(part: Sequence[Group]) -> list[float]:
        if kind == "trl":
            return list(function([one.prompt for one in part], [one.responses[0] for one in part]))
        calls = [
            replace(one, responses=[one.responses[0]]) for one in part
        ]  # those that wait form a batch, as verl's do
        return [reward.value for reward in function.rewards.submit(calls).result()]  # type: ignore[attr-defined]

    assert together(groups) == [reward for group in groups for reward in together([group])]


def test_a_missing_reward_is_none_where_the_trainer_ignores_it_and_an_error_elsewhere() -> None:
    assert pluralbench.as_reward_function(lengths)(prompts=["hi", "hi"], completions=["?", "yes"]) == [None, 2003.0]
    with pytest.raises(PolicyError, match=r"^A completion of q7 has no score \(it is not finite\)\.$"):
        pluralbench.as_reward_function(lengths, "verl")(solution_str="?", extra_info={"prompt": "hi", "id": "q7"})
    with pytest.raises(PolicyError, match=r"^A completion has no score"):
        pluralbench.as_reward_function(lengths, "openrlhf")(["hi?"], ["hi"], [""])


def test_a_judge_rewards(tmp_path: Path) -> None:
    def answer(body: dict[str, Any], _: int) -> Reply:
        return Reply("[[7]]" if "drumming" in str(body["messages"]) else "no rating")

    with serve(answer) as server:
        function = pluralbench.as_reward_function(judge(server, tmp_path, attempts=1))
        assert function(prompts=[user("hi")] * 2, completions=[reply("drumming"), reply("tea")]) == [7.0, None]


def test_what_cannot_reward_is_refused_before_or_at_the_first_call(tmp_path: Path) -> None:
    any_format: Any = "axolotl"
    with pytest.raises(EvaluationError, match=r"^'axolotl' is not a format of reward functions; choose one of trl, "):
        pluralbench.as_reward_function(lengths, any_format)
    with pytest.raises(UserError, match="is not a model folder"):
        pluralbench.as_reward_function(str(tmp_path / "nothing"))
    with pytest.raises(EvaluationError, match="applies to models that are loaded in this process"):
        pluralbench.as_reward_function(lengths, scoring=EXACT)
    verl = pluralbench.as_reward_function(lengths, "verl")
    with pytest.raises(PolicyError, match=r"put it into `extra_info` of each row, as `prompt`"):
        verl(data_source="x", solution_str="a", ground_truth="b", extra_info={"num_turns": 1})
    for prompt in ([], [{"role": "user"}], [{"role": "user", "content": [{"type": "image"}]}], 7):
        with pytest.raises(PolicyError, match="neither text nor messages"):
            verl(solution_str="a", extra_info={"prompt": prompt})


def test_a_pairwise_model_is_refused_at_the_first_call() -> None:
    from pluralbench_rewards import ModelRecord

    class Compares:
        def record(self) -> ModelRecord:
            return ModelRecord(name="pairs", kind="pairwise")

        def compare(self, groups: Any, pairs: Any, *, cached: Any = None, on_scored: Any = None) -> Any:
            raise AssertionError

    function = pluralbench.as_reward_function(Compares())
    with pytest.raises(
        EvaluationError, match=r"^pairs only compares two responses, and a reward function needs a score"
    ):
        function(prompts=["hi"], completions=["a"])


def test_a_function_can_be_pickled_and_loaded_by_its_path(model: str, tmp_path: Path) -> None:
    """As verl (`load_extern_object`) and OpenRLHF (`SingleTurnAgentExecutor`) load a file."""
    file = tmp_path / "reward.py"
    lines = ["from pluralbench import LocalModel, as_reward_function", ""]
    lines.append(f'compute_score = as_reward_function(LocalModel(name={model!r}, device="cpu"), "verl")')
    file.write_text("\n".join(lines), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("custom_module", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    row: dict[str, Any] = {"solution_str": "origami", "extra_info": {"prompt": "hi"}}
    copy = pickle.loads(pickle.dumps(module.compute_score))  # noqa: S301 - our own
    assert copy(**row) == module.compute_score(**row)
    assert pickle.loads(pickle.dumps(copy))(**row) == copy(**row)  # noqa: S301 - also once its model is loaded


def test_calls_from_many_threads_are_batched_and_one_that_fails_concerns_no_other() -> None:
    sizes: list[int] = []
    first, go = threading.Event(), threading.Event()

    def slow(groups: Sequence[Group]) -> list[list[float]]:
        sizes.append(len(groups))
        first.set()
        go.wait()
        if any(group.responses[0] == "bad" for group in groups):
            raise EvaluationError("This one is bad.")
        return lengths(groups)

    function = pluralbench.as_reward_function(slow, "verl")

    def call(text: str) -> float:
        return float(function(solution_str=text, extra_info={"prompt": ""}))

    with ThreadPoolExecutor(21) as pool:
        begun = pool.submit(call, "x")
        first.wait()
        calls = [pool.submit(call, "x" * size) for size in range(1, 20)] + [pool.submit(call, "bad")]
        waiting = function.rewards._waiting  # type: ignore[attr-defined]
        while len(waiting) < 20:
            time.sleep(0.001)
        go.set()
        assert begun.result() == 1.0
        assert [one.result() for one in calls[:-1]] == [float(size) for size in range(1, 20)]
        with pytest.raises(EvaluationError, match="This one is bad"):
            calls[-1].result()
    assert sizes[:2] == [1, 20]


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # of the library
def test_trl_trains_a_policy_with_the_function(model: str, language_models: Callable[..., str], tmp_path: Path) -> None:
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    reward = pluralbench.as_reward_function(LocalModel(name=model, device="cpu"), scoring=EXACT)
    seen: list[tuple[list[Any], list[Any], list[Any]]] = []

    def record(prompts: list[Any], completions: list[Any], **columns: Any) -> list[Any]:
        rewards = reward(prompts=prompts, completions=completions, **columns)
        seen.append((prompts, completions, rewards))
        return list(rewards)

    settings: dict[str, Any] = {
        "output_dir": str(tmp_path),
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 8,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_steps": 1,
    }
    data = Dataset.from_list([{"prompt": user(f"a quiet hobby {place}"), "user": "an"} for place in range(8)])
    trainer: Any = GRPOTrainer(
        model=language_models(), reward_funcs=[reward, record], args=GRPOConfig(**settings), train_dataset=data
    )
    trainer.train()
    [_, *logged] = [line for line in trainer.state.log_history[::-1] if "reward" in line]
    assert len(seen) == trainer.state.global_step == 2
    assert f"rewards/{Path(model).name}/mean" in logged[0]
    for prompts, completions, rewards in seen:
        groups = [Group("", one, [text[0]["content"]]) for one, text in zip(prompts, completions, strict=True)]
        assert rewards == pytest.approx([row[0] for row in classifier_alone(model, groups)], abs=1e-5)
