"""What cannot be optimised is said in one sentence, and nothing is left behind."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optimized_runs import LETTERS, TASKS, quick
from pluralbench_local import LocalError, LocalModel
from pluralbench_policies import OptimizeConfig, Task, optimize, trainable
from pluralbench_rewards import FunctionModel, Group
from pluralbench_runs import UserError
from reward_models import make_tokenizer, save_classifier, save_language_model, user


def refused(base: Any, out: Path, **changed: Any) -> str:
    """What the error says; `out` and all beside it that was not there before must not exist afterwards."""
    given: dict[str, Any] = {
        "reward": LETTERS,
        "tasks": TASKS,
        "options": quick("rloo", max_steps=1),
        "device": "cpu",
    } | changed
    beside = set(out.parent.iterdir())
    with pytest.raises(UserError) as failed:
        optimize(base, given.pop("reward"), given.pop("tasks"), out, **given)
    assert set(out.parent.iterdir()) == beside
    assert failed.value.exit_status == 2
    return str(failed.value)


def test_no_tasks_two_of_one_id_and_one_without_a_question(base: str, tmp_path: Path) -> None:
    assert refused(base, tmp_path / "out", tasks=[]) == "There are no tasks to optimize on."
    twice = refused(base, tmp_path / "out", tasks=[*TASKS, TASKS[3]])
    assert twice == "Two tasks have the id t3; give each an id of its own."
    answered = [*user("hi"), {"role": "assistant", "content": "Hello."}]
    said = refused(base, tmp_path / "out", tasks=[*TASKS, Task(answered, Group("odd", answered, []))])
    assert said == "The last message of the task odd does not have the role `user`."


def test_too_few_tasks_for_a_step(base: str, tmp_path: Path) -> None:
    said = refused(base, tmp_path / "out", tasks=TASKS[:5])
    assert said == "5 prompts are too few for a step of 8; lower `batch_size=...` or add tasks."


def test_a_policy_without_a_chat_template_or_with_one_that_refuses(tmp_path: Path) -> None:
    plain = save_language_model(tmp_path / "plain", tokenizer=make_tokenizer(template=None), num_hidden_layers=1)
    assert refused(plain, tmp_path / "out") == f"{plain} has no chat template; set `chat_template=...`."
    template = tmp_path / "strict.jinja"
    template.write_text("{{ raise_exception('Only questions in verse.') }}", encoding="utf-8")
    said = refused(plain, tmp_path / "out", chat_template=template)
    assert said == f"The chat template of {plain} rejects a prompt: Only questions in verse."


def test_a_policy_that_is_none(base: str, tmp_path: Path) -> None:
    assert "nothing is not a model folder" in refused("nothing", tmp_path / "out")
    reward = save_classifier(tmp_path / "reward", num_hidden_layers=1)
    assert f"{reward} is not a language model: it has a reward head" in refused(reward, tmp_path / "out")
    assert refused(LocalModel(name=base, kind="implicit"), tmp_path / "out").startswith(
        "Optimizing a policy takes no `kind=...`; leave it out."
    )


def test_another_gpu_than_the_first(base: str, tmp_path: Path) -> None:
    with pytest.raises(
        LocalError, match="not on cuda:1; select another GPU with the environment variable CUDA_VISIBLE"
    ):
        optimize(base, LETTERS, TASKS, tmp_path / "out", device="cuda:1")


LONG = [replace(task, messages=user("a very long question indeed " * 9)) for task in TASKS[:2]]


def test_prompts_that_are_too_long_are_left_out_and_counted(base: str, tmp_path: Path) -> None:
    options = quick("rloo", max_steps=1, max_prompt_tokens=60)
    seen: set[str] = set()

    def watching(groups: Sequence[Group]) -> list[list[float]]:
        seen.update(group.id for group in groups)
        return LETTERS.function(groups)  # type: ignore[return-value]

    tasks = [*LONG, *TASKS[2:]]
    done = optimize(base, FunctionModel(watching), tasks, tmp_path / "out", options=options, device="cpu")
    assert done.record["tasks"] == {"given": 10, "too_long": 2}
    assert seen == {task.group.id for task in TASKS[2:]}


def test_prompts_that_are_all_too_long(base: str, tmp_path: Path) -> None:
    said = refused(base, tmp_path / "out", tasks=LONG, options=quick("rloo", max_prompt_tokens=60))
    assert said.startswith("All 2 prompts are longer than 60 tokens (shortest: ")
    assert said.endswith("; raise `max_prompt_tokens=...`, lower `max_tokens=...`, or shorten the prompts.")
    # Of 1,024 positions, completions leave but 10.
    said = refused(base, tmp_path / "out", tasks=LONG, options=quick("rloo", max_tokens=1014))
    assert said.startswith("All 2 prompts are longer than 10 tokens (")
    assert refused(base, tmp_path / "out", options=quick("rloo", max_tokens=1024)) == (
        f"`max_tokens=1024` leaves no room for a prompt in the 1,024 positions of {base}; lower it."
    )


def always(value: float) -> FunctionModel:
    """A reward model that knows one score."""
    return FunctionModel(lambda groups: [[value] * len(group.responses) for group in groups])


@pytest.mark.parametrize("algorithm", ["rloo", "ppo"])
def test_a_step_without_any_score_stops_the_run(base: str, tmp_path: Path, algorithm: str) -> None:
    said = refused(base, tmp_path / "out", reward=always(math.nan), options=quick(algorithm, max_steps=1))
    assert said.startswith("The reward model always.<locals>.<lambda> gave no finite score to any of 32 completions; ")


@pytest.mark.parametrize("algorithm", ["rloo", "ppo"])  # GRPO divides by the scores' deviation
def test_a_loss_that_is_no_number_stops_the_run(base: str, tmp_path: Path, algorithm: str) -> None:
    odd = FunctionModel(lambda groups: [[1e38 * place for place, _ in enumerate(group.responses)] for group in groups])
    options = quick(algorithm, max_steps=3, learning_rate=1e30, kl_steps=0)
    said = refused(base, tmp_path / "out", reward=odd, options=options)
    assert "is no number" in said or "not finite" in said
    assert "lower `learning_rate=...`" in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"algorithm": "rloo", "num_generations": 1},
            "rloo compares completions of a prompt; set `num_generations=...` to at least 2",
        ),
        ({"batch_size": 20}, "`batch_size=20` is not a multiple of `mini_batch_size=16`"),
        (
            {"batch_size": 6, "micro_batch_size": 4},
            "`micro_batch_size=4` does not divide the 6 completions of an update",
        ),
    ],
)
def test_options_that_contradict_each_other(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        OptimizeConfig(**changed)


def test_the_defaults_are_the_papers_and_each_option_says_what_it_is() -> None:
    options = OptimizeConfig()
    assert (options.algorithm, options.batch_size, options.completions, options.updates) == ("ppo", 128, 1, 8)
    assert (options.part, options.max_prompt_tokens, options.max_tokens) == (4, 8192, 512)
    assert (options.learning_rate, options.critic_learning_rate, options.kl_coef) == (5e-7, 5e-6, 0)
    assert all(field.description for field in OptimizeConfig.model_fields.values())


def test_what_is_missing_is_said_with_how_to_install_it(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainable, "find_spec", lambda name: None if name == "trl" else name)
    assert refused(base, tmp_path / "out") == (
        "Policy optimization by rloo needs trl: `uv sync --inexact --package pluralbench-policies --extra optimize`."
    )
