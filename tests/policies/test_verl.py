"""The files for verl, and what verl itself makes of them in an environment of its own."""

import json
import math
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from members import ROOT
from optimized_runs import TASKS
from pluralbench_local import LocalModel, load
from pluralbench_policies import OptimizeConfig, PolicyError
from pluralbench_policies.reward_functions import group_of
from pluralbench_policies.verl import VerlConfig, run_verl, scorer_of, verl_config, verl_files
from pluralbench_rewards import Group, Person
from pluralbench_runs import ClusterConfig
from reward_models import save_classifier

PERSON = Person("u1", [{"id": "p1", "category": "tea", "text": "I drink 龙井."}], ["likes tea"])
TOLD = [replace(task, group=replace(task.group, person=PERSON, context=["likes tea"])) for task in TASKS]
SMALL = {"batch_size": 8, "mini_batch_size": 4, "max_prompt_tokens": 200, "max_tokens": 20}


@pytest.fixture(scope="module")
def reward(tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    """A classifier, described."""
    return LocalModel(name=save_classifier(tmp_path_factory.mktemp("reward") / "model"), device="cpu")


@pytest.fixture(scope="module")
def written(base: str, reward: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for verl."""
    options = OptimizeConfig(**SMALL, reward_divisor=10)
    return verl_files(base, reward, TOLD, tmp_path_factory.mktemp("verl") / "out", options=options)


def test_the_defaults_are_the_papers(base: str, reward: LocalModel, tmp_path: Path) -> None:
    tasks = [replace(TASKS[0], group=replace(TASKS[0].group, id=str(number))) for number in range(128)]
    folder = verl_files(base, reward, tasks, tmp_path / "out", options=OptimizeConfig(reward_divisor=10))
    config = json.loads((folder / "optimize.yaml").read_text(encoding="utf-8"))
    data, actor, rollout = config["data"], config["actor_rollout_ref"]["actor"], config["actor_rollout_ref"]["rollout"]
    assert (data["train_batch_size"], data["max_prompt_length"], data["max_response_length"]) == (128, 8192, 512)
    assert data["filter_overlong_prompts"] is True
    assert (actor["optim"]["lr"], actor["ppo_mini_batch_size"], actor["ppo_micro_batch_size_per_gpu"]) == (5e-7, 16, 4)
    assert (rollout["name"], rollout["n"], rollout["temperature"], rollout["top_p"]) == ("vllm", 1, 1.0, 1.0)
    assert (rollout["gpu_memory_utilization"], rollout["max_num_seqs"]) == (0.4, 4)
    assert config["critic"]["optim"]["lr"] == 5e-6
    assert (config["algorithm"]["adv_estimator"], config["algorithm"]["use_kl_in_reward"]) == ("gae", False)
    assert [actor[name] for name in ("clip_ratio_low", "clip_ratio_high", "clip_ratio_c")] == [0.2, 0.2, 3.0]
    assert [config["critic"]["optim"]["weight_decay"], actor["optim"]["weight_decay"]] == [0.01, 0.01]
    assert (config["trainer"]["total_epochs"], config["trainer"]["n_gpus_per_node"]) == (1, 4)


@pytest.mark.parametrize(("algorithm", "in_loss"), [("ppo", False), ("rloo", False), ("grpo", True)])
def test_the_divergence_and_the_clip_are_where_they_are_here(algorithm: Any, in_loss: bool) -> None:
    options = OptimizeConfig(algorithm=algorithm, kl_coef=0.1, clip_range=0.3)
    config = verl_config(LocalModel(name="m"), Path("out"), options, VerlConfig())
    actor = config["actor_rollout_ref"]["actor"]
    assert (actor["use_kl_loss"], config["algorithm"]["use_kl_in_reward"]) == (in_loss, not in_loss)
    assert (actor["kl_loss_coef"], config["algorithm"]["kl_ctrl"]["kl_coef"]) == (0.1, 0.1)
    assert {actor[name] for name in ("clip_ratio", "clip_ratio_low", "clip_ratio_high")} == {0.3}


def test_the_reward_function_gives_the_reward_models_score(written: Path, reward: LocalModel) -> None:
    group = replace(TOLD[3].group, responses=["origami and drumming"], steps=[])
    [[score]] = load(reward).score([group]).scores
    asked = json.dumps(asdict(TOLD[3].group))
    assert group_of(asked, "origami and drumming") == group
    found = scorer_of(written / "reward.json")(solution_str="origami and drumming", extra_info={"group": asked})
    assert found == pytest.approx(score / 10)


def test_verl_is_told_of_the_cluster(base: str, reward: LocalModel, tmp_path: Path) -> None:
    options = OptimizeConfig(**SMALL)
    found = []
    for number, on in enumerate((None, "ray", "10.0.0.1:6379")):
        folder = verl_files(
            base, reward, TOLD, tmp_path / str(number), options=options, cluster=ClusterConfig(address=on)
        )
        found.append(json.loads((folder / "optimize.yaml").read_text(encoding="utf-8")).get("ray_kwargs"))
    assert found == [None, None, {"ray_init": {"address": "10.0.0.1:6379"}}]


def test_a_completion_without_a_score_stops_verl(
    written: Path, monkeypatch: pytest.MonkeyPatch, reward: LocalModel
) -> None:
    from pluralbench_local import LocalRewardModel

    real = LocalRewardModel.score

    def failing(self: LocalRewardModel, groups: list[Group]) -> object:
        return replace(real(self, groups), scores=[[math.nan]], reasons=["the reward model was away"])

    monkeypatch.setattr(LocalRewardModel, "score", failing)
    with pytest.raises(PolicyError, match=r"^A completion of t3 has no score \(the reward model was away\)\.$"):
        scorer_of(written / "reward.json")(solution_str="hi", extra_info={"group": json.dumps(asdict(TOLD[3].group))})


def test_without_verl_a_sentence_says_what_to_install(written: Path) -> None:
    with pytest.raises(PolicyError, match=r"^verl is not installed; install verl 0\.9\.1 and pluralbench in "):
        run_verl(written)


def test_too_few_tasks_and_none(base: str, reward: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="10 prompts are too few for a step of 128"):
        verl_files(base, reward, TASKS, tmp_path / "out")
    with pytest.raises(PolicyError, match="no tasks"):
        verl_files(base, reward, [], tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_reward_function_of_the_users_own_stays(base: str, reward: LocalModel, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text("mine", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"reward\.py is not of an earlier export to verl; choose another folder\.$"):
        verl_files(base, reward, TOLD, tmp_path, options=OptimizeConfig(batch_size=1))
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


CHECK = """
import json, sys
from pathlib import Path
from typing import Any
from pluralbench_policies.verl import check
config, tasks, score = check(Path(sys.argv[1]))
rows = [tasks[place] for place in range(len(tasks))]
given = [row["extra_info"] for row in rows]
asked = {"data_source": "pluralbench", "solution_str": "origami", "ground_truth": ""}
scores = [score(**asked, extra_info=each) for each in given]
read = {"tasks": len(rows), "prompts": [list(row["raw_prompt"]) for row in rows], "scores": scores}
read |= {"batch": config.data.train_batch_size, "rate": config.critic.optim.lr}
read |= {"estimator": config.algorithm.adv_estimator}
from verl.utils.import_utils import load_extern_object
own = load_extern_object(module_path=sys.argv[3], object_name="compute_score")
read |= {"own": [own(**asked, extra_info={"prompt": list(row["raw_prompt"])}) for row in rows]}
Path(sys.argv[2]).write_text(json.dumps(read), encoding="utf-8")
"""


@pytest.mark.engines
@pytest.mark.timeout(1800)
def test_verl_itself_accepts_the_files(
    written: Path, reward: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its schema, its checks, its data loader and its loader of reward functions, in verl's own environment."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)  # uv asks the web
    python = str(tmp_path / "verl" / "bin" / "python")
    for command in (
        ["uv", "venv", "--quiet", "--python", "3.11", str(tmp_path / "verl")],
        ["uv", "pip", "install", "--quiet", "--python", python, "verl==0.9.1", "-e", str(ROOT / "evaluators")],
    ):
        subprocess.run(command, check=True)
    (tmp_path / "own.py").write_text(
        "from pluralbench import LocalModel, as_reward_function\n"
        f'compute_score = as_reward_function(LocalModel(name={reward.name!r}, device="cpu"), "verl")\n',
        encoding="utf-8",
    )
    subprocess.run(
        [python, "-c", CHECK, str(written), str(tmp_path / "read.json"), str(tmp_path / "own.py")], check=True
    )
    read = json.loads((tmp_path / "read.json").read_text(encoding="utf-8"))
    assert (read["tasks"], read["batch"], read["rate"], read["estimator"]) == (10, 8, 5e-6, "gae")
    assert read["prompts"] == [list(task.messages) for task in TOLD]
    groups = [replace(task.group, responses=["origami"]) for task in TOLD]
    here = [row[0] / 10 for row in load(reward).score(groups).scores]
    assert read["scores"] == pytest.approx(here, abs=1e-5)
    # A file as users write it, with the prompt that the policy reads.
    prompts = [Group("", task.messages, ["origami"]) for task in TOLD]
    assert read["own"] == pytest.approx([row[0] for row in load(reward).score(prompts).scores], abs=1e-5)
    # The command composes the same: `--cfg job` prints it and starts nothing.
    shown = [python, "-m", "verl.trainer.main_ppo", "--config-path", str(written), "--config-name", "optimize"]
    printed = subprocess.run([*shown, "--cfg", "job"], check=True, capture_output=True, text=True).stdout
    assert "train_batch_size: 8" in printed
    assert f"path: {written / 'reward.py'}" in printed
