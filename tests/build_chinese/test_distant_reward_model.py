"""The reward model of distant supervision: trained once, recorded, and known by what it learned from."""

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from build_chinese import reward_model
from build_chinese.rankings import Row, ranked_pairs, resolve_rows
from build_chinese.recipe import RewardTable
from build_chinese.reward_model import TrainingRows, rankings_of, rewards, with_base_digest, with_ranked_pairs
from chat_server import ChatServer, serve
from chinese_project import annotated, judge, read_rows, unlabeled, write_rows, write_taxonomy
from pluralbench_calls import Ledger, read_ledger
from pluralbench_calls.errors import PermanentError
from pluralbench_release import LEDGER, RECIPE, rebuild, verify
from pluralbench_release.errors import SourceError
from pluralbench_rewards import Group

Run = Callable[..., tuple[int, str]]
SIZES: dict[str, Any] = {"num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 32, "head_dim": 8}
TRAINING: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 10,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-3,
    "max_length": 500,
}
HUMAN = resolve_rows([annotated(number) for number in range(6)])[0]
ROWS = [unlabeled(number) for number in range(10, 14)]
VARIANTS = ["human", "judge", "judge + length", "judge + distant", "judge + distant + length"]
VARIANTS += ["judge + distant + length + human"]


@pytest.fixture(scope="module", autouse=True)
def _one_quiet_thread() -> Iterator[None]:
    pytest.importorskip("torch", reason="needs the extra `train`")
    from reward_models import one_quiet_thread

    with one_quiet_thread():
        yield


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny language model, not to be changed."""
    from reward_models import save_language_model

    return save_language_model(tmp_path_factory.mktemp("models") / "base", **SIZES)


@pytest.fixture
def base(language_model: str, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(language_model, tmp_path / "base"))


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folder of each training that was begun."""
    begun: list[Path] = []
    real = reward_model.train_base

    def counted(taught: TrainingRows, reward: RewardTable, folder: Path) -> Path:
        begun.append(folder)
        return real(taught, reward, folder)

    monkeypatch.setattr(reward_model, "train_base", counted)
    return begun


def table(base: Path, **changes: Any) -> RewardTable:
    values = {"base": str(base), "training": TRAINING, "device": "cpu", "least_pairs": 1}
    return with_base_digest(RewardTable(**values | changes))


def scored(
    reward: RewardTable, ledger: Ledger, work: Path, *, human: list[Row] = HUMAN, replaying: bool = False
) -> pl.DataFrame:
    work.mkdir(exist_ok=True)
    return rewards(ROWS, with_ranked_pairs(human), reward, ledger, work, replaying=replaying)


def test_what_is_missing_alone_is_scored(base: Path, tmp_path: Path, trainings: list[Path]) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        first = rewards(ROWS[:2], with_ranked_pairs(HUMAN), table(base), ledger, tmp_path / "one", replaying=False)
        found = scored(table(base), ledger, tmp_path / "two")
        assert found[:10].equals(first)
        assert len(ledger) == 20
        assert len(trainings) == 2  # the first model is gone with its work; a CPU trains the same again
        twice = [ROWS[0] | {"id": "same text"}, ROWS[0]]
        same = rewards(twice, with_ranked_pairs(HUMAN), table(base), ledger, tmp_path / "three", replaying=True)
        assert same["reward"].to_list()[:5] == same["reward"].to_list()[5:]


def keys(reward: RewardTable, tmp_path: Path, human: list[Row] = HUMAN) -> set[str]:
    """The keys under which rewards are looked for."""
    with Ledger(tmp_path / "empty.sqlite") as ledger, pytest.raises(PermanentError) as missing:
        scored(reward, ledger, tmp_path / "work", human=human, replaying=True)
    return {str(missing.value).partition("key ")[2][:12]}


def test_rewards_are_known_by_base_training_and_human_part(base: Path, tmp_path: Path) -> None:
    from reward_models import change_config, save_language_model

    reward = table(base, name="m")
    same = [reward, table(Path(shutil.copytree(base, tmp_path / "moved")), name="m")]
    same += [reward.model_copy(update={name: 2}) for name in ("margin", "least_pairs")]
    assert len({key for one in same for key in keys(one, tmp_path)}) == 1
    found = [keys(reward, tmp_path)]
    found.append(keys(reward.model_copy(update={"training": TRAINING | {"epochs": 3}}), tmp_path))
    found.append(keys(reward, tmp_path, HUMAN[:5]))
    changed = [*HUMAN[:5], HUMAN[5] | {"rank": dict.fromkeys(HUMAN[5]["rank"], 1)}]
    found.append(keys(reward, tmp_path, changed))
    texts = [response | {"content": response["content"] + "！"} for response in HUMAN[5]["responses"]]
    found.append(keys(reward, tmp_path, [*HUMAN[:5], HUMAN[5] | {"responses": texts}]))
    models = [response | {"model": "another"} for response in HUMAN[5]["responses"]]
    assert keys(reward, tmp_path, [*HUMAN[:5], HUMAN[5] | {"responses": models}]) == found[0]
    change_config(str(base), note="changed")
    found.append(keys(table(base, name="m"), tmp_path))
    for name in ("chat_template.jinja", "vocab.txt", "tokenizer.model"):
        (base / name).write_text("changed", encoding="utf-8")
        found.append(keys(table(base, name="m"), tmp_path))
    save_language_model(base, seed=1, **SIZES)
    found.append(keys(table(base, name="m"), tmp_path))
    assert len({key for one in found for key in one}) == len(found)


def test_the_base_has_to_be_a_folder_with_a_model(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is not a model: it has neither weights nor a configuration\."):
        table(tmp_path)


def test_a_base_that_is_not_the_pinned_one_is_refused(base: Path, tmp_path: Path, trainings: list[Path]) -> None:
    reward = table(base)
    (base / "chat_template.jinja").write_text("{{ messages[-1]['content'] }}", encoding="utf-8")
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(SourceError) as failed:
            scored(reward, ledger, tmp_path / "work")
        assert len(ledger) == 0
    assert str(failed.value) == (
        f"{base} has no model, or not that of the recipe's `reward.digest` (another weight, configuration, tokenizer "
        "or chat template); use that model, or remove `digest`."
    )
    assert len(trainings) == 1


def test_rows_become_rankings_of_the_responses_in_a_pair() -> None:
    ranks = {"rank": {"n1-a": 2, "n1-c": 1, "n1-d": 2}, "order": [["n1-c", "n1-a"], ["n1-c", "n1-d"]]}
    row = annotated(1, count=4) | ranks | {"sys_prompt": "只说中文。"}
    [whole] = rankings_of(with_ranked_pairs([row]))
    assert [message["role"] for message in whole.prompt] == ["system", "user"]
    texts = [response["content"] for response in row["responses"]]
    assert whole.responses == [texts[0], texts[2], texts[3]]
    assert (whole.rank, sorted(whole.pairs or [])) == ([2, 1, 2], [(1, 0), (1, 2)])
    [chosen] = rankings_of(TrainingRows([row], [[("n1-c", "n1-d")]]))
    assert (chosen.responses, chosen.rank, chosen.pairs) == ([texts[2], texts[3]], [1, 2], [(0, 1)])


@pytest.fixture
def project(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[list[object], ChatServer]]:
    """The options of a build with a judge and the base, in a folder where they hold, and the judge's server."""
    monkeypatch.chdir(tmp_path)
    # Each build draws a figure, which takes longer than a model here; no test of these looks at it.
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **__: path.touch())
    monkeypatch.setenv("JUDGE_KEY", "sk-planted")
    configs = ["open", "human"] * 2 + ["preference"] * 6
    write_rows(tmp_path / "annotated.jsonl", [annotated(number, config) for number, config in enumerate(configs)])
    write_rows(tmp_path / "more.jsonl", [unlabeled(number) for number in range(10, 18)])
    write_taxonomy(tmp_path)
    (tmp_path / "recipe.toml").write_text(
        f'[reward]\nbase = "{base}"\ndevice = "cpu"\nleast_pairs = 11\n[reward.training]\n'
        + "".join(f"{name} = {value}\n" for name, value in TRAINING.items()),
        encoding="utf-8",
    )
    words: list[object] = ["preference", "--recipe", "recipe.toml", "--annotated", "annotated.jsonl"]
    words += ["--prompts", "more.jsonl", "--taxonomy", "taxonomy.toml", "--judge", "gpt"]
    with serve(judge) as server:
        yield [*words, "--base-url", server.base_url, "--api-key-env", "JUDGE_KEY"], server


Project = tuple[list[object], ChatServer]


@pytest.mark.heavy
def test_a_build_trains_once_and_a_rebuild_not_at_all(
    run: Run, project: Project, base: Path, tmp_path: Path, trainings: list[Path]
) -> None:
    words, server = project
    status, said = run(*words, "--out", "out")
    assert (status, "120 recorded calls, 120 of them new" in said) == (0, True), said
    status, said = run(*words, "--out", "out")
    assert (status, "120 recorded calls, 0 of them new" in said) == (0, True), said
    assert (len(trainings), len(server.requests)) == (1, 80)
    recorded = read_ledger(tmp_path / "out" / LEDGER)
    assert dict(recorded.group_by("kind").len().iter_rows()) == {"chat": 80, "reward": 40}
    made = pl.read_parquet(tmp_path / "out/data/preference/train.parquet").filter(annotated_by="gpt")
    values = {
        label.split(": ")[1]: float(text)
        for label, text in recorded.filter(kind="reward").select("label", "text").iter_rows()
    }
    assert all(values[better] > values[worse] for row in made["annotations"] for better, worse, _ in row)
    assert not list(tmp_path.glob("*.work"))
    status, said = run(*words, "--replay", "out", "--out", "replayed")
    assert status == 0, said
    digest = tomllib.loads((tmp_path / "out" / RECIPE).read_text(encoding="utf-8"))["reward"]["digest"]
    shutil.rmtree(base)
    assert verify(tmp_path / "out") == []
    assert not any(rebuild(tmp_path / "out", tmp_path / "again"))
    assert run("--recipe", f"out/{RECIPE}", "--replay", "out", "--out", "third")[0] == 0
    assert len(trainings) == 1
    assert digest == pin_of(tmp_path / "third")


def pin_of(release: Path) -> str:
    return str(tomllib.loads((release / RECIPE).read_text(encoding="utf-8"))["reward"]["digest"])


def test_a_missing_extra_is_told_before_anything_is_asked(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, server = project
    monkeypatch.setattr(reward_model, "find_spec", lambda _: None)
    status, said = run(*words, "--out", "out")
    assert (status, "needs an extra: `uv sync --inexact --package build-chinese --extra train`" in said) == (2, True)
    assert server.requests == []


def test_a_judge_that_cannot_be_called_is_noticed_before_the_training(
    run: Run, project: Project, trainings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, server = project
    monkeypatch.delenv("JUDGE_KEY")
    status, said = run(*words, "--out", "out")
    assert (status, "needs a key; set the environment variable JUDGE_KEY" in said) == (2, True), said
    assert (trainings, server.requests) == ([], [])


@pytest.mark.heavy
def test_every_variant_is_trained_and_measured(
    run: Run, project: Project, trainings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, server = project
    assert run(*words, "--out", "out")[0] == 0
    real = reward_model.train_base

    def killed(*values: Any) -> Path:
        if len(trainings) == 1 + 3:
            raise KeyboardInterrupt
        return real(*values)

    with monkeypatch.context() as patch:
        patch.setattr(reward_model, "train_base", killed)
        assert run(*words, "--out", "out", "--ablate")[0] != 0
    assert not Path("out-ablation").exists()
    assert len(trainings) == 1 + 3
    status, said = run(*words, "--out", "out", "--ablate")
    assert (status, "Ablation (out-ablation/ablation.json)" in said) == (0, True), said
    assert not list(Path().glob("*.work"))
    finished = len(trainings)
    assert run(*words, "--out", "out", "--ablate")[0] == 0
    assert len(trainings) == finished, "a finished ablation is not made again"
    rows: list[Row] = json.loads(Path("out-ablation/ablation.json").read_text(encoding="utf-8"))
    assert [row["variant"] for row in rows] == VARIANTS
    sizes = {row["variant"]: row["pairs"] for row in rows}
    assert (len(trainings), len(server.requests)) == (1 + sum(size >= 11 for size in sizes.values()), 80)
    assert len(trainings) > 5
    human = sum(len(ranked_pairs(row)) for row in HUMAN)
    assert (sizes["human"], sizes["judge"]) == (human, 80) == (60, 80)
    made = pl.read_parquet("out/data/preference/train.parquet").filter(annotated_by="gpt")
    assert sizes["judge + distant + length"] == made["annotations"].list.len().sum()
    assert sizes["judge + distant + length + human"] == sizes["judge + distant + length"] + human
    assert [row["training"]["epochs"] for row in rows] == [2, 1, 1, 1, 1, 1]
    assert rows[0]["configs"]["open"]["prompts"] == 2
    trained = {row["variant"].replace(" + ", "-") for row in rows if "not_trained" not in row}
    assert {folder.name for folder in Path("out-ablation/models").iterdir()} == trained
    assert f"pluralbench score {Path('out-ablation/models/VARIANT')} --benchmark reward-bench" in said
    for row in rows:
        if "not_trained" not in row:
            found = {config: cell["accuracy"] for config, cell in row["configs"].items()}
            cells = row["configs"].values()
            assert row["overall"] == pytest.approx(sum(cell["accuracy"] + cell["exact_match"] for cell in cells) / 4)
            low, high = row["interval"]
            assert low <= row["overall"] <= high
            assert found == pytest.approx(accuracies(Path("out-ablation/models") / row["variant"].replace(" + ", "-")))


def accuracies(model: Path) -> dict[str, float]:
    """The share of pairs of a benchmark that a kept model orders as its ranks; each has one category."""
    found = {}
    for config in ("open", "human"):
        rows = [row for row in resolve_rows(read_rows(Path("annotated.jsonl")))[0] if row["config"] == config]
        right = []
        for row in rows:
            [values] = reward_model.scores_of(
                model, [Group(row["id"], reward_model.messages_of(row), [one["content"] for one in row["responses"]])]
            )
            both = zip(row["responses"], values, strict=True)
            score = {one["id"]: value for one, (value, _) in both if value is not None}
            right += [score[a] > score[b] for a, b in permutations(score, 2) if row["rank"][a] < row["rank"][b]]
        found[config] = sum(right) / len(right)
    return found


@pytest.mark.heavy
def test_a_variant_that_cannot_be_trained_leaves_the_others(run: Run, project: Project) -> None:
    words, _ = project
    status, said = run(*words, "--limit", "2", "--out", "out", "--ablate")
    assert (status, "Ablation (out-ablation/ablation.json)" in said) == (0, True), said
    rows: list[Row] = json.loads(Path("out-ablation/ablation.json").read_text(encoding="utf-8"))
    assert [row["variant"] for row in rows] == VARIANTS
    trained = {row["variant"].replace(" + ", "-") for row in rows if "not_trained" not in row}
    assert {folder.name for folder in Path("out-ablation/models").iterdir()} == trained
    assert 0 < len(trained) < len(VARIANTS)
    for row in rows:
        if "not_trained" in row:
            assert f"{row['variant']} was not trained: " in said
    assert "was not trained: fewer than " in said


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"training": {"gradient_accumulation_steps": 64, "epochs": 1}}, "the warm-up takes all steps (1)"),
        (
            {"base": "nowhere", "digest": "0" * 64},
            "nowhere has no model, or not that of the recipe's `reward.digest`",
        ),
        ({"least_pairs": 999}, "The human part has 60 pairs of 6 prompts; training a reward model needs 999"),
    ],
)
def test_an_ablation_that_cannot_train_is_refused_before_any_vote(
    run: Run, project: Project, tmp_path: Path, option: dict[str, Any], sentence: str
) -> None:
    words, server = project
    place = words.index("--recipe") + 1
    values = tomllib.loads(Path(str(words[place])).read_text(encoding="utf-8"))
    reward = values["reward"] | option
    (tmp_path / "other.toml").write_text(tomli_w.dumps(values | {"reward": reward}), encoding="utf-8")
    words = [*words[:place], str(tmp_path / "other.toml"), *words[place + 1 :]]
    status, said = run(*words, "--no-distant", "--out", "out", "--ablate")
    assert (status, sentence in " ".join(said.split())) == (2, True), said
    assert server.requests == []


def test_an_ablation_needs_a_benchmark(run: Run, project: Project) -> None:
    words, _ = project
    write_rows(Path("annotated.jsonl"), [annotated(number, "preference") for number in range(6)])
    status, said = run(*words, "--limit", "1", "--out", "out", "--ablate")
    assert status == 2
    assert "no benchmark to evaluate on" in said.rpartition("Error: ")[2]
    assert not Path("out-ablation").exists()


def test_a_replay_needs_no_model(base: Path, tmp_path: Path, trainings: list[Path]) -> None:
    reward = table(base)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        found = scored(reward, ledger, tmp_path / "work")
        shutil.rmtree(base)
        assert with_base_digest(reward) == reward
        assert scored(reward, ledger, tmp_path / "work", replaying=True).equals(found)
        with pytest.raises(PermanentError, match=r"no answer for reward of n10: n10-a .*a replay sends nothing"):
            scored(reward, ledger, tmp_path / "work", human=HUMAN[:5], replaying=True)
        missing = r"base has no model, or not that of the recipe's `reward\.digest`"
        with pytest.raises(SourceError, match=missing):
            scored(reward, ledger, tmp_path / "work", human=HUMAN[:5])
    assert len(trainings) == 2
