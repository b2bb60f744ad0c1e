"""Process rewards of every published form are read as these publish it, and what would be misread is refused."""

import re
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from case_marks import heavy
from pluralbench_calls.loops import run
from pluralbench_local import LocalError, LocalModel, ServedModel, load, score
from pluralbench_local.served.scoring import load as load_served
from pluralbench_local.step_rewards import PROCESS_REWARDS
from pluralbench_rewards import Group, Mode, ScoringConfig
from pluralbench_rewards.served.engine import ServerError, ServingConfig
from pluralbench_runs import UserError
from process_models import (
    PROCESS_MODELS,
    REWARDS,
    answers_in_steps,
    plain_ids,
    published_steps,
    save_process_model,
)
from reward_models import (
    TEMPLATE,
    Folders,
    change_config,
    differences,
    load_classifier,
    save_language_model,
    user,
    work_of,
)
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

PADDED = {"trl-encoder", "trl-modernbert"}


MODES: tuple[Mode, ...] = ("fast", "exact")
SMOKE = ("qwen", "rlhflow")


@pytest.mark.parametrize(
    ("name", "dtype", "close"),
    [
        *((name, "float32", 1e-4) for name in SMOKE),
        *heavy(*((name, "float32", 1e-4) for name in PROCESS_MODELS if name not in SMOKE)),
        *heavy(*((name, "bfloat16", 0.05) for name in [*PROCESS_MODELS][::2])),
    ],
)
def test_steps_are_read_as_their_program_reads_them(tmp_path: Path, name: str, dtype: str, close: float) -> None:
    """The second computation: `process_models`, one conversation in a forward pass of its own."""
    saved = PROCESS_MODELS[name]
    groups = answers_in_steps(1, 3, saved.between)
    folder = save_process_model(tmp_path / "model", name, dtype=dtype)
    model = load_classifier(folder, **saved.options)
    aggregation = model.record().settings["aggregation"]
    steps = [published_steps(folder, name, group, dtype) for group in groups]
    expected = [[REWARDS[aggregation](scores) for scores in row] for row in steps]
    assert len({round(value, 3) for row in expected for value in row}) > 3
    for mode in MODES:
        scored = score(model, groups, mode=mode)
        assert max(differences(scored.scores, expected)) < close
        strategy = "padded" if name in PADDED else mode
        assert (work_of(scored).strategy, bool(work_of(scored).unpackable)) == (strategy, name in PADDED)
    single = score(model, groups, token_budget=1)  # batches as small as can be
    assert max(differences(single.scores, expected)) < close
    assert model.record().kind == "process"
    assert str(model.network.dtype) == f"torch.{dtype}"


@pytest.mark.parametrize("aggregation", list(REWARDS))
def test_a_probability_of_zero_moves_no_step(tmp_path: Path, aggregation: str) -> None:
    """The card's helper drops zeros by value; a head this large gives 0.0 and 1.0 exactly."""
    folder = save_process_model(tmp_path / "model", "qwen", scale=40.0)
    groups = answers_in_steps(2, 3)
    steps = [published_steps(folder, "qwen", group, "float32") for group in groups]
    values = [value for row in steps for scores in row for value in scores]
    assert 0.0 in values
    assert any(value > 0.5 for value in values)
    expected = [[REWARDS[aggregation](scores) for scores in row] for row in steps]
    scored = score(load_classifier(folder, aggregation=aggregation), groups)
    assert max(differences(scored.scores, expected)) < 1e-4


def test_an_answer_with_the_mark_in_its_text_has_no_more_steps(tmp_path: Path) -> None:
    folder = save_process_model(tmp_path / "model", "qwen")
    [group] = answers_in_steps(3, 1)
    steps = group.responses[1].split("\n\n")
    both = Group("q", group.prompt, ["\n\n".join(steps), f"{steps[0]}<extra_0>{steps[1]}"])
    [[apart, together]] = score(load_classifier(folder, aggregation="mean"), [both]).scores
    [[first, second], [_, last]] = published_steps(
        folder, "qwen", Group("q", group.prompt, [both.responses[0]] * 2), "float32"
    )
    assert apart == pytest.approx((first + second) / 2, abs=1e-5)
    assert together == pytest.approx(last, abs=1e-5)


def test_a_mark_of_several_tokens_is_found_in_a_text(tmp_path: Path) -> None:
    """Without a token of its own, the mark ends with the last byte of its last character."""
    folder = save_language_model(tmp_path / "model", num_hidden_layers=2)
    model = load_classifier(folder, process_reward="math-shepherd")
    steps = ["walking 走路", "origami", "काम"]
    assert model.template.steps is not None
    [tokens] = model.template.steps([("q", user("why?"), "\n".join(steps))], model.template)
    tokenizer = model.template.tokenizer
    read = [tokenizer.decode(tokens.ids[: mark + 1].tolist()) for mark in tokens.marks]
    lines = [f"{step} ки" for step in steps]
    assert read == ["<s>why? " + "\n".join(lines[: number + 1]) for number in range(3)]


def test_what_is_read_is_recorded_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_process_model(tmp_path / "model", "qwen")
    settings = load(folder, device="cpu", aggregation="min").record().settings
    assert settings == {
        "aggregation": "min",
        "steps": "at blank lines",
        "mark": "'<extra_0>' as token",
        "step score": "softmax:1",
    }
    assert "mark '<extra_0>' as token; step score softmax:1; aggregation min" in capsys.readouterr().err


def test_a_label_changes_the_score_of_a_step(tmp_path: Path) -> None:
    folder = save_process_model(tmp_path / "model", "qwen")
    groups = answers_in_steps(1, 1)
    right, wrong, logit = (
        score(load_classifier(folder, aggregation="last", label=label), groups).scores[0]
        for label in ("softmax:1", "softmax:0", "logit:1")
    )
    assert [one + other for one, other in zip(right, wrong, strict=True)] == pytest.approx([1.0] * len(right))
    assert right == score(load_classifier(folder, aggregation="last"), groups).scores[0]
    assert len({*logit} & {*right, *wrong}) == 0
    with pytest.raises(LocalError, match=r"The label 'softmax:2' does not fit the head of .*, which has 2 logits"):
        load_classifier(folder, aggregation="last", label="softmax:2")


def test_published_ways_that_name_a_reward_need_no_option() -> None:
    named = {name for name, way in PROCESS_REWARDS.items() if way.aggregation}
    assert named == {"math-shepherd", "rlhflow-prm"}


REFUSED = [
    (
        {"kind": "process"},
        r"The files of HERE do not say what marks the steps of an answer; give `step_mark=\.\.\.`, .*",
    ),
    (
        {"kind": "process", "step_mark": "\n"},
        r"No publication names how the scores of steps make a reward of HERE; give `aggregation=\.\.\.` "
        r"\(min, product, mean, last\)\.",
    ),
    (
        {"step_mark": "\n", "aggregation": "min"},
        r"HERE has no reward head; a language model says with tokens whether a step is right: give .*",
    ),
    (
        {"step_mark": "\n", "aggregation": "min", "positive_token": "origami folder", "negative_token": "-"},
        r"'origami folder' is not a single token \(.*\); give another one\.",
    ),
    (
        {"step_mark": "\n", "aggregation": "min", "positive_token": "+", "negative_token": "+"},
        r"The positive and the negative token are the same \(id \d+\); give two tokens\.",
    ),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_the_files_do_not_tell_is_asked_for(language_models: Folders, options: dict[str, Any], said: str) -> None:
    folder = language_models(num_hidden_layers=1)
    with pytest.raises(LocalError) as failed:
        load(folder, device="cpu", **options)
    assert re.fullmatch(said, str(failed.value).replace(folder, "HERE")), str(failed.value)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "classifier", "step_mark": "\n"},
        {"kind": "process", "positive_token": "+"},
        {"kind": "process", "positive_token": "+", "negative_token": "-", "label": "softmax:1"},
        {"kind": "process", "question": "Right?"},
        {"kind": "process", "step_split": ""},
    ],
)
def test_fields_that_do_not_go_together(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        load("model", **options)


@pytest.fixture
def shepherd(language_models: Folders) -> Any:
    """A language model that is read as Math-Shepherd."""
    return load_classifier(language_models(num_hidden_layers=1), process_reward="math-shepherd")


def test_an_answer_without_steps(shepherd: Any) -> None:
    with pytest.raises(LocalError) as failed:
        score(shepherd, [Group("q7", user("why?"), ["so", " \n "])])
    assert str(failed.value) == ("An answer to the prompt q7 has no step, so it has no process reward; leave it out.")


def test_steps_beyond_the_length(shepherd: Any) -> None:
    groups = [Group("q7", user("why?"), ["\n".join(["origami"] * 30)])]
    with pytest.raises(LocalError, match=r"q7 lose steps that are beyond 40 tokens"):
        score(shepherd, groups, max_length=40, on_overflow="truncate-left")
    long_prompt = [Group("q7", user("walking " * 60), ["origami\nand"])]
    whole, cut = score(shepherd, long_prompt), score(shepherd, long_prompt, max_length=60, on_overflow="truncate-left")
    assert cut.tokens_cut[0] > 0
    assert whole.scores != cut.scores
    assert score(shepherd, groups, max_length=40, on_overflow="drop").scores == [[]]


@pytest.mark.parametrize(
    ("template", "options", "said"),
    [
        (
            TEMPLATE.replace("<|assistant|>\n{% endif %}", "<|helper|>\n{% endif %}"),
            {"process_reward": "rlhflow-prm"},
            r"The chat template does not open replies where a finished conversation has them, .*",
        ),
        (
            TEMPLATE.replace("message['content'] }}", "message['content'] | upper }}"),
            {"process_reward": "math-shepherd"},
            r"The chat template changes an answer with marked steps; .*",
        ),
    ],
)
def test_a_template_that_moves_the_mark(
    language_models: Folders, written: Any, template: str, options: dict[str, Any], said: str
) -> None:
    model = load_classifier(language_models(num_hidden_layers=1), chat_template=written(template), **options)
    with pytest.raises(LocalError) as failed:
        score(model, answers_in_steps(1, 1))
    assert re.fullmatch(said, str(failed.value)), str(failed.value)


CODE = """
import torch
from transformers import LlamaModel, LlamaPreTrainedModel

class OwnStepModel(LlamaPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.judge = torch.nn.Linear(config.hidden_size, 2)
        self.post_init()

    def forward(self, input_ids, attention_mask=None):
        states = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
        return (self.judge(torch.tanh(states)),)
"""


@pytest.mark.parametrize("budget", [None, 1])
def test_a_model_that_scores_tokens_by_its_own_code(tmp_path: Path, budget: int | None) -> None:
    folder = Path(save_process_model(tmp_path / "model", "trl"))
    (folder / "modeling_own.py").write_text(CODE, encoding="utf-8")
    change_config(str(folder), architectures=["OwnStepModel"], auto_map={"AutoModel": "modeling_own.OwnStepModel"})
    tensors = load_file(folder / "model.safetensors")
    judge = {"judge.weight": tensors.pop("score.weight"), "judge.bias": tensors.pop("score.bias")}
    save_file(tensors | judge, folder / "model.safetensors", metadata={"format": "pt"})
    options: dict[str, Any] = {"process_reward": "trl-prm", "aggregation": "mean", "trust_remote_code": True}
    model = load_classifier(str(folder), **options)
    groups = answers_in_steps(4, 2)
    scored = score(model, groups, token_budget=budget)
    assert "its own code" in work_of(scored).unpackable
    own: Any = model.network.model
    tokenizer = model.template.tokenizer
    for group, scores in zip(groups, scored.scores, strict=True):
        for response, reward in zip(group.responses, scores, strict=True):
            ids, marks = [0, *plain_ids(tokenizer, group.prompt[-1]["content"])], []
            for step in response.split("\n\n"):
                ids += [*plain_ids(tokenizer, step), *plain_ids(tokenizer, "\n")]
                marks.append(len(ids) - 1)
            with torch.inference_mode():
                [logits] = own(torch.tensor([ids]))
            assert reward == pytest.approx(float(logits[0, marks].softmax(-1)[:, 1].mean()), abs=1e-4)


def test_a_model_of_steps_is_known_by_its_architecture(tmp_path: Path) -> None:
    folder = save_process_model(tmp_path / "model", "skywork")
    assert (
        load(folder, device="cpu", aggregation="last").record()
        == load(LocalModel(name=folder, device="cpu", kind="process", aggregation="last")).record()
    )


def test_skywork_marks_every_line_as_it_stands(tmp_path: Path) -> None:
    """Its `prepare_input` splits at each newline, and leaves in empty lines and spaces."""
    folder = save_process_model(tmp_path / "model", "skywork")
    model = load_classifier(folder, aggregation="mean")
    answers = ["origami\n\n  drumming with a dog\n", "\norigami", "  origami", "origami"]
    group = Group("q", user("a quiet hobby"), answers)
    [rewards] = score(model, [group]).scores
    published = [sum(steps) / len(steps) for steps in published_steps(folder, "skywork", group, "float32")]
    assert rewards == pytest.approx(published, abs=1e-4)
    with pytest.raises(LocalError, match=r"^An answer to the prompt q has no step"):
        score(model, [Group("q", user("a quiet hobby"), ["\n \n"])])


def in_steps(number: int, between: str) -> list[Group]:
    """The first answer of each prompt up to each of its steps, with these steps."""
    groups = []
    for group in answers_in_steps(6, number, between):
        steps = group.responses[0].split(between)
        answers = [between.join(steps[: place + 1]) for place in range(len(steps))]
        groups.append(Group(group.id, group.prompt, answers, steps=steps))
    return groups


@pytest.mark.parametrize(("name", "mode"), [("qwen", "fast"), *heavy(*((name, "exact") for name in PROCESS_MODELS))])
def test_the_steps_of_an_answer_are_scored_in_one_pass(tmp_path: Path, name: str, mode: str) -> None:
    saved = PROCESS_MODELS[name]
    folder = save_process_model(tmp_path / "model", name)
    model = load_classifier(folder, **saved.options | {"aggregation": "last"})
    groups = in_steps(3, saved.between)
    scored = score(model, groups, mode=mode)
    published = [
        published_steps(folder, name, replace(group, responses=group.responses[-1:]), "float32")[0] for group in groups
    ]
    assert max(differences(scored.scores, published)) < 1e-4
    assert work_of(scored).conversations == len(groups)
    assert [len(own) for own in scored.tokens] == [len(group.steps) for group in groups]
    if name not in PADDED:  # a causal model reads no later step
        prefixes = score(model, [replace(group, steps=()) for group in groups], mode=mode)
        assert work_of(prefixes).conversations > len(groups)
        assert max(differences(scored.scores, prefixes.scores)) < 1e-5
    # A step with the text between steps is one step, with one mark.
    of_lines = replace(groups[0], steps=[f"{step}{saved.between}origami" for step in groups[0].steps])
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    lines = saved.scores(Path(folder), tokenizer, [*groups[0].prompt], of_lines.steps, "float32")
    assert max(differences(score(model, [of_lines], mode=mode).scores, [lines])) < 1e-4
    measured = replace(model, measures_tolerance=True).score(groups)
    assert measured.tolerance is None or measured.tolerance < 1e-4
    assert model.tolerance(groups, scored) < 1e-4


def test_steps_that_would_be_misread_are_refused(tmp_path: Path, shepherd: Any) -> None:
    qwen = load_classifier(save_process_model(tmp_path / "model", "qwen"), aggregation="last")
    steps = ["walking", "<extra_0>origami", "ки"]
    [group] = in_steps(1, "\n\n")
    for model, number, mark in ((qwen, 1, "<extra_0>"), (shepherd, 2, "ки")):
        with pytest.raises(LocalError, match=rf"^Step {number} of the answer to the prompt q0 contains .* '{mark}';"):
            score(model, [replace(group, steps=steps)])
    with pytest.raises(LocalError, match=r"^Step 1 of the answer to the prompt q0 is empty;"):
        score(qwen, [replace(group, steps=["walking", " \n"])])
    with pytest.raises(LocalError, match=r"Some prompts have the steps of one answer and others do not"):
        score(qwen, [group, replace(group, steps=())])


def test_no_server_scores_steps(tmp_path: Path) -> None:
    serving = ServingConfig(server=("http://127.0.0.1:9",))
    sentence = r".* scores the steps of answers, which is done in this process; leave out `server=\.\.\.`\."
    named = ServedModel(model=LocalModel(name=str(tmp_path), kind="process"), serving=serving)
    with pytest.raises(ServerError, match=sentence):
        run(connected(named))
    recognized = LocalModel(name=save_process_model(tmp_path / "model", "qwen"), aggregation="min")
    with pytest.raises(ServerError, match=sentence):
        load_served(ServedModel(model=recognized, serving=serving), ScoringConfig())


async def connected(model: ServedModel) -> None:
    async with AsyncExitStack() as stack:
        await model.open_servers(stack)
