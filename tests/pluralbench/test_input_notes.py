"""What explains most differences from published numbers is recorded for each run, and noted where it is unusual."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pluralbench import load_run, merge
from pluralbench.reports.runs import details, overview
from pluralbench.results import Run
from reward_models import BOS, ENDS_WITH_EOS, EOS, TEMPLATE, make_tokenizer, save_classifier
from verbs import scoring, work
from written_tables import write

Rows = list[dict[str, Any]]
BEGIN = "{{ bos_token }}"
TWO = "Inputs that begin with two BOS tokens: 12."
NONE = "Inputs without the tokenizer's BOS token: 12."


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(6))


def with_template(folder: Path, text: str) -> Path:
    path = folder / "template.jinja"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_ordinary_run_records_its_inputs_and_warns_of_nothing(
    score: Callable[..., Run], model: str, data: Path
) -> None:
    run = score("pairs", data, by=model)
    assert (scoring(run).inputs_with_two_bos, scoring(run).inputs_without_bos) == (0, 0)
    assert work(run).attention == "pluralbench_packed"
    recorded = run.result.model
    assert not any("BOS" in note or "place of" in note for note in overview([run]).notes)
    expected = (
        f"Inputs: template {str(recorded.chat_template_digest)[:8]}, dtype float32, attention pluralbench_packed, at "
        f"most 1,024 tokens, model {str(recorded.digest)[:8]}, data {run.config.data.digest[:8]}."
    )
    assert expected in details([run]).notes


@pytest.mark.parametrize(
    ("template", "counts", "note"),
    [
        (BEGIN + TEMPLATE, (12, 0), TWO),
        pytest.param(BOS + BEGIN + TEMPLATE, (12, 0), TWO, marks=pytest.mark.heavy),
        (TEMPLATE.removeprefix(BEGIN), (0, 12), NONE),
    ],
)
def test_two_bos_tokens_and_none_are_counted_and_noted(
    score: Callable[..., Run], model: str, data: Path, tmp_path: Path, template: str, counts: tuple[int, int], note: str
) -> None:
    run = score("pairs", data, by=model, chat_template=with_template(tmp_path, template))
    assert (scoring(run).inputs_with_two_bos, scoring(run).inputs_without_bos) == counts
    notes = overview([run]).notes
    assert note in notes
    assert f"Set in place of the model's own: chat template {str(run.result.model.chat_template_digest)[:8]}." in notes


def test_inputs_are_noted_that_end_with_the_padding_token(
    score: Callable[..., Run], data: Path, tmp_path: Path
) -> None:
    folder = save_classifier(
        tmp_path / "model", tokenizer=make_tokenizer(pad=EOS, template=ENDS_WITH_EOS), pad_token_id=1
    )
    run = score("pairs", data, by=folder)
    assert scoring(run).inputs_ending_in_padding == 12
    note = "Read at the token before the padding token that ends the input, as the model's class does: 12."
    assert note in overview([run]).notes
    last = score("pairs", data, by=folder, read="last", out=tmp_path / "last")
    assert "Set in place of the model's own: token to read last." in overview([last]).notes


def test_a_cut_prompt_loses_its_bos_and_chosen_settings_are_noted(
    score: Callable[..., Run], model: str, data: Path
) -> None:
    run = score("pairs", data, by=model, max_length=20, on_overflow="truncate-left", dtype="bfloat16")
    assert scoring(run).inputs_without_bos == 2 * scoring(run).items_truncated > 0
    assert "Set in place of the model's own: dtype bfloat16, maximum length 20 tokens." in overview([run]).notes


def test_shards_add_up_and_earlier_runs_do_not_say(
    score: Callable[..., Run], model: str, data: Path, tmp_path: Path
) -> None:
    template = with_template(tmp_path, BEGIN + TEMPLATE)
    shards = [
        score("pairs", data, by=model, chat_template=template, shard=f"{n}/2", out=tmp_path / f"{n}") for n in (1, 2)
    ]
    merged = merge([shard.path for shard in shards], out=tmp_path / "merged")
    assert scoring(merged).inputs_with_two_bos == 12
    file = merged.path / "run.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    for name in ("inputs_with_two_bos", "inputs_without_bos"):
        del values["result"][name]
    del values["result"]["work"]["attention"]
    file.write_text(json.dumps(values), encoding="utf-8")
    earlier = load_run(merged.path)
    assert scoring(earlier).inputs_with_two_bos is None
    assert not any("BOS" in note or "attention" in note for note in details([earlier]).notes)
