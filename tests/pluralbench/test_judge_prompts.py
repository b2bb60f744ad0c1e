"""Runs of `judge` with a prompt from a file: what is sent, how replies are read, and what the run records."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from batch_results import work_through
from case_marks import heavy
from chat_server import Reply, Script, serve
from pluralbench import check_submission, load_run, merge
from pluralbench.config import JudgeConfig
from pluralbench.reports.items import item_page
from pluralbench.results import Run
from pluralbench.results.examples import examples, read_texts, selected
from pluralbench_calls import CallsError
from pluralbench_rewards.prompts import load_prompt
from pluralbench_rewards.prompts.files import SHIPPED
from pluralbench_runs import OutputError, UserError
from rich.console import Console
from verbs import judging
from written_tables import write

Rows = list[dict[str, Any]]


def judged(script: Script, data: Path, out: Path, **options: Any) -> tuple[Run, list[dict[str, Any]]]:
    """A run on pairs and the requests that it made."""
    with serve(script) as server:
        run = verbs.judge("judge-1", benchmark="pairs", data=str(data), base_url=server.base_url, out=out, **options)
        return run, server.requests


def arena() -> Rows:
    """Rows as Chatbot Arena is published, each user's in the order of time."""
    return [
        {
            "user_id": user,
            "split": "train" if place in {1, 3} else "test",
            "context": [{"role": "user", "content": f"Question {place} of {user}?"}],
            "chosen": {"role": "assistant", "content": f"Good {place}."},
            "rejected": {"role": "assistant", "content": f"Bad {place}."},
            "chosen_score": 1.0,
        }
        for place in range(1, 5)
        for user in ("ana", "bo")
    ]


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    rows = pairs(6)
    for row in rows:
        row["chosen"] += " right"
    return write(tmp_path / "p.jsonl", rows)


def knows(body: dict[str, Any], _: int) -> Reply:
    """A judge that knows what is right and says so after its reasons."""
    asked = body["messages"][-1]["content"]
    first = "right" in asked.split("Answer A:")[1].split("Answer B:")[0]
    return Reply(f"<think>[[B]] or [[A]]?</think>Answer A or B.\n[[{'A' if first else 'B'}]]")


def test_a_shipped_prompt_is_sent_read_and_recorded(data: Path, tmp_path: Path) -> None:
    run, requests = judged(knows, data, tmp_path / "run", prompt="letter")
    assert (run.headline.value, judging(run).calls, len(requests)) == (1.0, 12, 12)
    system, user = requests[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "[[A]]" in user["content"]
    config = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["config"]
    assert config["judging"]["prompt"]["messages"][0]["text"] == system["content"]
    assert config["judging"]["prompt"]["name"] == "letter"
    assert config["prompts_digest"] == load_prompt("letter").digest


def test_a_run_is_read_again_without_the_file_of_its_prompt(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text((SHIPPED / "letter.toml").read_text(encoding="utf-8"), encoding="utf-8")
    run, requests = judged(knows, data, tmp_path / "run", prompt=path)
    again, repeated = judged(knows, data, tmp_path / "run", prompt=str(path))
    assert (len(requests), len(repeated), again.items.equals(run.items)) == (12, 0, True)
    path.write_text(path.read_text(encoding="utf-8").replace("[verdict]", "[sampling]\ntop_p = 0.5\n\n[verdict]"))
    with pytest.raises(OutputError, match=r"other settings \(.*top_p none, now 0\.5"):
        judged(knows, data, tmp_path / "run", prompt=path)
    path.unlink()
    assert check_submission(load_run(tmp_path / "run")).state == "checked"
    document = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    document["config"]["judging"]["prompt"]["verdict"]["values"] = {"A": "B", "B": "A"}
    (tmp_path / "run/run.json").write_text(json.dumps(document), encoding="utf-8")
    assert check_submission(load_run(tmp_path / "run")).state != "checked"


def scored(by: Callable[[str], int]) -> Script:
    """A judge that scores every answer it sees in one box, and one alone between tags."""

    def reply(body: dict[str, Any], _: int) -> Reply:
        text = body["messages"][-1]["content"]
        if "<score>" in text:
            return Reply(f"<score>{by(text.split('Answer:')[1])}</score>")
        answers = re.split(r"Answer \d+:", text)[1:]
        return Reply(f"\\boxed{{{', '.join(str(by(answer)) for answer in answers)}}}")

    return reply


def ranked(folder: Path, count: int = 8) -> Path:
    ranks = [[1, 2, 3], [1, 1, 2], [2, 1, 2]]
    rows = [
        {
            "id": f"q{number}",
            "prompt": f"Question {number}?",
            "responses": [f"{number}.{place} quality {4 - rank}" for place, rank in enumerate(ranks[number % 3])],
            "rank": ranks[number % 3],
        }
        for number in range(count)
    ]
    return write(folder / "r.jsonl", rows)


def quality(answer: str) -> int:
    return int(answer.partition("quality ")[2][0])


@pytest.mark.parametrize("prompt", ["score-tag", *heavy("boxed-list", "boxed-pair")])
def test_scores_rank_all_answers_in_any_protocol(tmp_path: Path, prompt: str) -> None:
    data = ranked(tmp_path)

    def make(**options: Any) -> Run:
        with serve(scored(quality)) as server:
            where = {"base_url": server.base_url, "benchmark": "rankings", "data": str(data)}
            return verbs.judge("judge-1", prompt=prompt, **where, **options)

    run = make(out=tmp_path / "run")
    assert run.headline.value == 1.0
    assert (run.count("ties"), run.count("invalid")) == (0, 0)
    assert judging(run).calls == {"boxed-list": 8, "boxed-pair": 38, "score-tag": 24}[prompt]
    assert check_submission(run).state == "checked"
    shards = [make(shard=f"{number}/2", out=tmp_path / f"mine-shard-{number}-of-2").path for number in (1, 2)]
    merged = merge(shards, out=tmp_path / "merged")
    assert merged.items.equals(run.items)
    assert merged.metrics.equals(run.metrics)
    if prompt == "boxed-list":
        assert (run.count("picks"), run.count("rated")) == (5, 0), "lists in which several are best are no picks"


def test_lists_of_scores_decide_pairs_by_the_mean_of_their_samples(data: Path, tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def script(body: dict[str, Any], _: int) -> Reply:
        """Right answers get 6, 6 and 9, others 7, 7 and 2: the majority is wrong, and the mean is right."""
        text = body["messages"][-1]["content"]
        number = seen[text] = seen.get(text, -1) + 1
        right, wrong = ((6, 7), (6, 7), (9, 2))[number]
        scores = [right if "right" in answer else wrong for answer in re.split(r"Answer \d+:", text)[1:]]
        return Reply(f"\\boxed{{{scores[0]}, {scores[1]}}}")

    options = {"prompt": "boxed-list", "samples": 3, "temperature": 0.7}
    run, requests = judged(script, data, tmp_path / "run", **options, vote="mean", concurrency=1)
    assert (run.headline.value, len(requests)) == (1.0, 18)
    assert check_submission(run).state == "checked"


def test_what_is_unreadable_never_wins(data: Path, tmp_path: Path) -> None:
    replies = ["[[A]]", "[[A]] or [[B]]", "", "[[C]]", "<think>[[A]]", "A"]

    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply(replies[len(body["messages"][-1]["content"]) % 6])

    run, _ = judged(script, data, tmp_path / "run", prompt="letter", attempts=1)
    letters = [*run.items["verdict_chosen_first"], *run.items["verdict_rejected_first"]]
    texts = dict(pl.read_parquet(tmp_path / "run/ledger.parquet").select("key", "text").iter_rows())
    calls = [*run.items["calls_chosen_first"], *run.items["calls_rejected_first"]]
    assert letters == ["A" if texts[keys[-1]] == "[[A]]" else "invalid" for keys in calls]
    assert run.count("wins") == 0, "a verdict for A in both orders is a tie"
    half = sum({"A": 1.0, "invalid": 0.5}[letter] for letter in run.items["verdict_chosen_first"])
    half += sum({"A": 0.0, "invalid": 0.5}[letter] for letter in run.items["verdict_rejected_first"])
    assert verbs.value(run, "accuracy_with_invalid_as_half") == half / 12
    assert sum(judging(run).invalid_reasons.values()) == run.items["reason"].drop_nulls().len()
    assert judging(run).readings == {}


def test_the_sampling_of_a_prompt_applies_unless_the_command_says_otherwise(data: Path, tmp_path: Path) -> None:
    verdict = "[The Begin of Ranking Score]\n\\boxed{1}"
    _, own = judged(lambda *_: Reply(verdict), data, tmp_path / "own", prompt="two-turns", orders="one")
    options = {"temperature": 0.0, "max_tokens": 64, "extra": {"top_k": 1}}
    _, others = judged(lambda *_: Reply(verdict), data, tmp_path / "b", prompt="two-turns", orders="one", **options)
    names = ("temperature", "top_p", "top_k", "max_tokens")
    assert {tuple(body[name] for name in names) for body in own} == {(1.0, 0.95, 20, 8192)}
    assert {tuple(body[name] for name in names) for body in others} == {(0.0, 0.95, 1, 64)}
    assert len(own) == 12, "two turns each"
    page = shown_replies(load_run(tmp_path / "own"), data)
    assert page == ["Turn 1:", "Reply:"]
    recorded = json.loads((tmp_path / "b/run.json").read_text(encoding="utf-8"))["config"]
    assert recorded["judging"]["temperature"] == recorded["model"]["temperature"] == 0.0


def shown_replies(run: Run, data: Path) -> list[str]:
    """The names of the replies on the first item, as `show` prints them."""
    [example] = examples(run, selected(run)[:1], read_texts(run, str(data)))
    page = [line.plain.strip() for line in item_page(example, Console(width=80))]
    return [
        line
        for line in page
        if line.endswith(":") and line.partition(" ")[0].rstrip(":") in {"Reply", "Turn", "Rubric"}
    ]


def test_a_rubric_comes_from_a_second_server_or_from_the_data(data: Path, tmp_path: Path) -> None:
    with serve(lambda *_: Reply("1. Be right. [Hard Rule]")) as writer:
        options = {"prompt": "rubric-winner", "rubric_model": "w", "rubric_base_url": writer.base_url}
        run, requests = judged(lambda *_: Reply("Winner: Response A"), data, tmp_path / "run", **options)
    assert (len(writer.requests), len(requests), judging(run).calls) == (6, 12, 18)
    assert shown_replies(run, data) == ["Rubric:", "Reply:"] * 2
    assert all("1. Be right. [Hard Rule]" in body["messages"][0]["content"] for body in requests)
    assert check_submission(run).state == "checked"
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    other = write(tmp_path / "q.jsonl", [row | {"rules": ["Be kind.", "Be brief."], "gold": "Chess."} for row in rows])
    columns = {"columns": {"rubric": "rules", "reference": "gold"}}
    run, requests = judged(lambda *_: Reply("[RESULT] A"), other, tmp_path / "c", prompt="result-letter", **columns)
    assert all("Be kind.\nBe brief." in body["messages"][1]["content"] for body in requests)
    assert all("A good answer:\nChess." in body["messages"][1]["content"] for body in requests)
    assert check_submission(run).state == "checked"
    hidden = {"prompt": "result-letter", "rubric": "none"}
    run, requests = judged(lambda *_: Reply("[RESULT] A"), other, tmp_path / "d", **hidden, **columns)
    assert not any("Be kind." in body["messages"][1]["content"] for body in requests)
    assert check_submission(run).state == "checked"


def test_every_item_gets_the_rubric_of_a_file_in_place_of_its_own(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    other = write(tmp_path / "q.jsonl", [row | {"rules": "Be kind."} for row in rows])
    path = tmp_path / "our-rules.txt"
    path.write_text("\ufeffपहले सच बोलो.\nBe {brief}.\n", encoding="utf-8")
    options: dict[str, Any] = {"prompt": "rubric-winner", "rubric": path, "columns": {"rubric": "rules"}}
    run, requests = judged(lambda *_: Reply("Winner: Response A"), other, tmp_path / "run", **options)
    texts = [body["messages"][0]["content"] for body in requests]
    assert len(texts) == 12, "no second model writes a rubric"
    assert all("पहले सच बोलो.\nBe {brief}." in text and "Be kind." not in text for text in texts)
    assert run.config.judge_setting("rubric") == "our-rules"
    config = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["config"]
    assert config["judging"]["rubric"] == {"name": "our-rules", "text": "पहले सच बोलो.\nBe {brief}."}
    assert config["prompts_digest"] != load_prompt("rubric-winner").digest
    _, repeated = judged(lambda *_: Reply(""), other, tmp_path / "run", **options | {"rubric": str(path)})
    assert repeated == []
    path.write_text("Be long.", encoding="utf-8")
    with pytest.raises(OutputError, match=r"rubric.text पहले सच बोलो\. Be {brief}\., now Be long"):
        judged(lambda *_: Reply(""), other, tmp_path / "run", **options)
    path.unlink()
    assert check_submission(load_run(tmp_path / "run")).state == "checked"


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (None, "There is no rubric '.*rules.txt'; give data"),
        (b" \n", "rules.txt is empty"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_rubric_that_is_absent_empty_or_no_text_is_refused(tmp_path: Path, content: bytes | None, names: str) -> None:
    if content is not None:
        (tmp_path / "rules.txt").write_bytes(content)
    with pytest.raises(UserError, match=names):
        JudgeConfig(prompt="rubric-winner", rubric=tmp_path / "rules.txt")


def test_persona_and_earlier_choices_are_shown(tmp_path: Path) -> None:
    data = write(tmp_path / "a.jsonl", arena())
    scores = '<JSON_START>{"better_response": {"response_1": 2, "response_2": 1}}<JSON_END>'
    with serve(lambda *_: Reply(scores)) as server:
        where = {"base_url": server.base_url, "data": str(data), "benchmark": "arena-personalized"}
        verbs.judge("judge-1", prompt="history-scores", out=tmp_path / "run", profile="raw", **where)
    systems = {body["messages"][0]["content"] for body in server.requests}
    users = {body["messages"][1]["content"] for body in server.requests}
    shown = {tuple(re.findall(r"They chose: Good (\d)\.\nThey did not choose: Bad \1\.", text)) for text in systems}
    assert shown == {("1", "3")}
    assert any("About the person who asks:\nPosts I wrote earlier:" in text for text in users)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"prompt": "score-tag", "protocol": "pairwise"}, "score-tag is pointwise; leave out `protocol="),
        ({"prompt": "letter", "criterion": "person"}, "`criterion=...` changes our own prompt"),
        ({"prompt": "letter", "reply_format": "brief"}, "`reply_format=...` changes our own prompt"),
        ({"prompt": "letter", "rubric_model": "w"}, "`rubric_model=...` requires a `prompt=...` with a rubric"),
        ({"prompt": "letter", "rubric": "none"}, '`rubric="none"` requires a `prompt=...` that shows a rubric'),
        ({"prompt": "letter", "rubric": __file__}, '`rubric="test_judge_prompts"` requires'),
        ({"prompt": "rubric-winner", "rubric": "none"}, "rubric-winner needs a rubric; name the model"),
        ({"prompt": "rubric-winner", "rubric": "none", "rubric_model": "w"}, '`rubric="none"` excludes'),
        ({"prompt": "rubric-winner", "rubric_base_url": "http://x/v1"}, "requires `rubric_model=...`"),
        ({"prompt": "rubric-winner", "rubric_model": "w", "oracle": "titles"}, "both give the rubric"),
        ({"prompt": "rubric-winner"}, "rubric-winner needs a rubric; name the model"),
        ({"prompt": "nemotron-genrm", "profile": "raw"}, "does not show the user context of `profile="),
        ({"prompt": "letter", "oracle": "titles"}, "does not show the rubric aspects"),
        ({"prompt": "nemotron-principle"}, r"shows \{rubric\}, which the item .* does not have"),
        ({"prompt": "pick-letter"}, "has pairs, which"),
        ({"prompt": "nothing"}, "There is no prompt 'nothing'"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_call(
    data: Path, tmp_path: Path, options: dict[str, Any], names: str
) -> None:
    with pytest.raises(UserError, match=names), serve(lambda *_: Reply("[[A]]")) as server:
        verbs.judge(
            "judge-1", benchmark="pairs", data=str(data), base_url=server.base_url, out=tmp_path / "run", **options
        )
    assert server.requests == []


def test_a_pick_cannot_rank_several_right_answers(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pick-letter picks one response, but not every item"):
        verbs.judge(
            "judge-1",
            benchmark="rankings",
            data=str(ranked(tmp_path)),
            prompt="pick-letter",
            base_url="http://127.0.0.1:9/v1",
        )


def test_the_command_takes_a_prompt_and_names_what_is_wrong(
    run: Callable[..., tuple[int, str, str]], data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    text = (SHIPPED / "letter.toml").read_text(encoding="utf-8")
    path.write_text(text.replace("{question}", "{qestion}"), encoding="utf-8")
    where = ("--benchmark", "pairs", "--data", str(data), "--out", str(tmp_path / "run"))
    status, _, errors = run("judge", "judge-1", "--prompt", str(path), *where)
    assert (status, "there is no variable {qestion}" in errors) == (2, True)
    both = ("--rubric-model", "w", "--oracle", "titles")
    status, _, errors = run("judge", "judge-1", "--prompt", "rubric-winner", *both)
    assert (status, "--rubric-model" in errors, "--oracle" in errors) == (2, True, True)


def test_a_rubric_and_its_verdicts_go_through_files_one_after_the_other(data: Path, tmp_path: Path) -> None:
    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply("1. Be kind. [Hard Rule]" if body["model"] == "w" else "Winner: Response A")

    models, results = [], [tmp_path / f"results{number}.jsonl" for number in range(2)]
    for number in range(2):
        with pytest.raises(CallsError, match="are written to"):
            judge_by_files(data, tmp_path, calls := tmp_path / f"calls{number}.jsonl", results[:number])
        models.append({json.loads(line)["body"]["model"] for line in calls.read_text(encoding="utf-8").splitlines()})
        work_through(calls, results[number], script)
    run = judge_by_files(data, tmp_path, tmp_path / "none.jsonl", results)
    assert models == [{"w"}, {"judge-1"}]
    assert judging(run).calls == 18


def judge_by_files(data: Path, folder: Path, calls: Path, results: list[Path]) -> Run:
    where = {"benchmark": "pairs", "data": str(data), "base_url": "http://127.0.0.1:9/v1", "out": folder / "run"}
    files = {"pending": calls, "results": tuple(results)}
    return verbs.judge("judge-1", prompt="rubric-winner", rubric_model="w", **where, **files)
