"""`pluralbench synthesize`: whose personas are written, what lies in its directory, and who reads it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from chat_server import ChatServer, Reply, serve
from pluralbench import ConnectionConfig, PromptConfig, synthesize
from pluralbench.data.personas import PERSONAS_FILE
from pluralbench.errors import DataError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.evaluation.synthesize import iter_people
from pluralbench.results import Synthesis
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
ROLES = ["train"] * 5 + ["test"] * 2


def answer(body: dict[str, Any], _: int) -> Reply:
    """A model that predicts and judges that longer is better, which is right about everybody but `bo`."""
    system, asked = (message["content"] for message in body["messages"])
    if '"persona"' in system:
        return Reply(json.dumps({"persona": ["I like it long."]}))
    first, second = ("first_answer", "second_answer") if '"preference"' in system else ("response_a", "response_b")
    longer = len(asked.split(f"<{first}>")[1].split("</")[0]) > len(asked.split(f"<{second}>")[1].split("</")[0])
    if '"preference"' in system:
        said = {"reasoning": "They take the longer one.", "preference": "First" if longer else "Second"}
        return Reply(json.dumps(said))
    return Reply("[[A]]" if longer else "[[B]]")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = []
    for user in ("ana", "bo"):
        for place, role in enumerate(ROLES):
            answers = [f"Long, and longer still, no. {place}.", f"Short {place}."][:: 1 if user == "ana" else -1]
            rows.append(
                {
                    "user_id": user,
                    "split": role,
                    "context": [{"role": "user", "content": f"Question {place} of {user}?"}],
                    "chosen": answers[0],
                    "rejected": answers[1],
                }
            )
    return write(tmp_path / "arena.jsonl", rows)


def made(data: Path, out: Path, script: Any = answer, **options: Any) -> tuple[Synthesis, ChatServer]:
    with serve(script) as server:
        connection = ConnectionConfig(base_url=server.base_url)
        benchmark = options.pop("benchmark", "arena-personalized")
        done = synthesize("m", benchmark=benchmark, data=str(data), connection=connection, out=out, **options)
        return done, server


def lines(done: Synthesis) -> dict[str, Any]:
    return {
        row["id"]: row for row in map(json.loads, (done.path / PERSONAS_FILE).read_text(encoding="utf-8").splitlines())
    }


def test_each_person_has_a_line_that_judges_read(data: Path, tmp_path: Path) -> None:
    done, _ = made(data, tmp_path / "out")
    written = lines(done)
    assert {name: row["from"] for name, row in written.items()} == {"ana": "choices", "bo": "posts"}
    ana, record = written["ana"], done.result
    assert (ana["kept"], ana["predicted"], ana["accuracy"], ana["validated"]) == (3, 3, 1.0, 2)
    assert (record.people, record.from_choices, record.from_posts, record.correct, record.predicted) == (2, 1, 1, 3, 6)
    assert record.accuracy == 0.5
    calls = pl.read_parquet(done.path / "ledger.parquet")
    assert ana["call"] in calls["key"].to_list()
    assert record.calls == calls.height
    prompt = PromptConfig(profile="persona", personas=done.path)
    loaded = load_benchmark("arena-personalized", str(data), prompt)
    assert all("I like it long." in group.context[0] for group in loaded.groups())


def test_where_more_is_known_later_each_item_has_a_persona_of_its_own(data: Path) -> None:
    rows = [json.loads(line) for line in data.read_text(encoding="utf-8").splitlines()]
    people = list(iter_people(load_benchmark("arena-personalized", str(data), None)))
    assert [(person.id, len(person.earlier)) for person in people] == [("ana", 5), ("bo", 5)]
    later = write(
        data.with_name("later.jsonl"), [row | {"id": f"r{n}", "prompt": row["context"]} for n, row in enumerate(rows)]
    )
    people = list(iter_people(load_benchmark("personalized-training", str(later), None)))
    assert [person.id for person in people] == [f"r{n}" for n in range(14)]
    assert [len(person.earlier) for person in people] == [*range(7), *range(7)]


def test_posts_are_enough_and_nothing_is_refused(
    people: Callable[..., Rows], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    done, server = made(write(tmp_path / "people.jsonl", people(2)), tmp_path / "out", benchmark="personalized")
    assert {row["from"] for row in lines(done).values()} == {"posts"}
    assert len(server.requests) == 2
    assert "secret" not in str(server.requests)
    with pytest.raises(DataError, match=r"p\.jsonl has no earlier pairs and no posts to write personas from"):
        made(write(tmp_path / "p.jsonl", pairs(2)), tmp_path / "none", benchmark="pairs")
    assert not (tmp_path / "none.work").exists()


def test_the_command_says_what_it_found_and_what_reads_it(run: Command, data: Path, tmp_path: Path) -> None:
    words = ["synthesize", "m", "--benchmark", "arena-personalized", "--data", data, "--price", "1/1"]
    with serve(answer) as server:
        status, said, _ = run(*words, "--base-url", server.base_url, "--out", tmp_path / "out")
    told = " ".join(said.split())
    assert status == 0
    assert "2 personas of 2 users, 1 from their choices and 1 from their posts." in told
    assert "3 of 6 predictions about earlier pairs were correct." in told
    assert "$0.00" in told or "at 1/1 per million" in told
    assert f"--profile persona --personas {tmp_path / 'out' / 'personas.jsonl'}" in said.replace("\n", "")


def test_personal_reward_bench_counts_each_order_by_itself(data: Path, tmp_path: Path) -> None:
    """Right about `ana` in both orders; of `bo` wrong in one, and nothing that can be read in the other."""

    def judges(body: dict[str, Any], _: int) -> Reply:
        asked = body["messages"][1]["content"]
        if "of ana?" in asked:
            return answer(body, 0)
        return Reply("Hm." if asked.index("Long") < asked.index("Short") else "[[A]]")

    with serve(judges) as server:
        options: dict[str, Any] = {"base_url": server.base_url, "attempts": 1}
        run = verbs.judge("m", benchmark="arena-personalized", data=data, out=tmp_path / "run", **options)
    found = run.estimate("accuracy_over_orders")
    assert (found.value, found.n) == (0.75, 8), "four right verdicts of ana, and two of bo in one order"
    assert run.headline.value == 0.75, "the benchmark counts each order by itself"
