"""Tables from the Hub, asked for real: a Hub on loopback, and processes that ask it, as its clients read their settings
when they are imported."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from commands import environment
from hub_server import NO_NETWORK, Hub, card, publish, serving

OLD, NEW, BAD = "a" * 40, "b" * 40, "c" * 40
ASK = """
import json, sys, pluralbench_release as release
for function, words in json.loads(sys.argv[1]):
    try:
        found = getattr(release, function)(words.pop("location"), **words)
    except release.TablesError as error:
        found = {"error": str(error)}
    if isinstance(found, release.Tables):
        rows = {config: frame.rows(named=True) for config, frame in found.frames.items()}
        found = {"location": found.location, "revision": found.revision, "paths": found.paths, "licence": found.licence}
        found |= {"rows": rows}
    print(json.dumps(found))
"""
RANKS = [{f"模型{number}": 1, f"m{number} 🍵": 2} for number in range(200)]


def lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    paths = {"Zen": {"test": "z/test.jsonl"}, "Art": {"test": "data/Art/test.jsonl", "train": "data/Art/train.jsonl"}}
    for commit in (OLD, NEW):
        files = {path: lines({"id": f"{commit[0]} 茶"}) for splits in paths.values() for path in splits.values()}
        publish(folder / "acme/Two-Configs", commit, files, card(paths, "mit"))
    ranks = lines(*({"id": number, "rank": rank} for number, rank in enumerate(RANKS)))
    publish(folder / "acme/plain", OLD, {"data/test-00000-of-00001.jsonl": ranks}, {"license": ["mit", "cc0-1.0"]})
    publish(folder / "acme/bad", BAD, {"test.jsonl": '{"id": "q1"'}, {})
    publish(folder / "acme/cardless", OLD, {"test.csv": "id,n\nq1,7\n"}, None)
    with serving(folder, tmp_path_factory.mktemp("hf_home")) as hub:
        yield hub


def ask(hub: Hub, *questions: tuple[str, dict[str, object]], offline: bool = False) -> list[object]:
    """What these functions give for these arguments, in a process of their own."""
    result = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(questions)],
        env=environment(hub.environment | (NO_NETWORK if offline else {})),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def two(commit: str, *configs: str) -> dict[str, object]:
    """What is read of `acme/Two-Configs`."""
    return {
        "location": "acme/Two-Configs",
        "revision": commit,
        "paths": {config: f"acme/Two-Configs {config}/test" for config in configs},
        "licence": "mit",
        "rows": {config: [{"id": f"{commit[0]} 茶"}] for config in configs},
    }


def test_a_dataset_is_pinned_and_read_at_that_commit(hub: Hub) -> None:
    name = "acme/Two-Configs"
    *answers, found, every = ask(
        hub,
        ("pinned", {"location": name}),
        ("pinned", {"location": f"{name}@main"}),
        ("read_tables", {"location": f"{name}@{NEW}"}),
        ("read_tables", {"location": f"{name}@{OLD}", "configs": ["Art"]}),
        ("read_tables", {"location": name, "configs": ["Art", "Zen"]}),
        ("read_tables", {"location": "acme/plain"}),
        ("read_tables", {"location": name, "split": "all"}),
    )
    assert answers == [f"{name}@{NEW}"] * 2 + [two(NEW, "Zen", "Art"), two(OLD, "Art"), two(NEW, "Zen", "Art")]
    # Mappings with other keys in each row are as in a local file.
    assert isinstance(found, dict)
    assert (found["licence"], found["paths"]) == ("mit, cc0-1.0", {"default": "acme/plain default/test"})
    rows = found["rows"]["default"]
    assert [row["id"] for row in rows] == list(range(200))
    assert rows[7]["rank"] == '{"m7 🍵":2,"模型7":1}'
    assert [json.loads(row["rank"]) for row in rows] == RANKS
    assert isinstance(every, dict)
    assert {config: len(rows) for config, rows in every["rows"].items()} == {"Zen": 1, "Art": 2}
    assert every["paths"]["Art"] == "acme/Two-Configs Art/all"


@pytest.mark.heavy
def test_the_cache_serves_each_commit_without_a_network(hub: Hub) -> None:
    name = "acme/Two-Configs"
    for commit in (NEW, OLD):  # so that the newest in the cache is not the newest on the Hub
        ask(hub, ("read_tables", {"location": f"{name}@{commit}", "configs": ["Art"]}))
    ask(hub, ("read_tables", {"location": "acme/plain"}), ("read_tables", {"location": "acme/cardless"}))
    new, old, cardless, plain, *others = ask(
        hub,
        ("read_tables", {"location": f"{name}@{NEW}", "configs": ["Art"]}),
        ("read_tables", {"location": f"{name}@{OLD}", "configs": ["Art"]}),
        ("read_tables", {"location": f"acme/cardless@{OLD}"}),
        ("read_tables", {"location": f"acme/plain@{OLD}"}),
        ("read_tables", {"location": f"{name}@{OLD}", "configs": ["Zen"]}),
        ("read_tables", {"location": f"{name}@{BAD}", "configs": ["Art"]}),
        ("read_tables", {"location": name}),
        offline=True,
    )
    assert (new, old) == (two(NEW, "Art"), two(OLD, "Art"))
    assert isinstance(cardless, dict)
    assert (cardless["rows"], cardless["licence"]) == ({"default": [{"id": "q1", "n": 7}]}, None)
    assert isinstance(plain, dict)
    assert len(plain["rows"]["default"]) == 200
    mend = "give a local copy, or try again with a network."
    sentences = [found["error"] for found in others if isinstance(found, dict)]
    assert sentences[:2] == [
        f"{name} at {commit[:12]} is not in the cache, and the Hub cannot be asked; {mend}" for commit in (OLD, BAD)
    ]
    assert sentences[2].startswith(f"The Hub cannot be asked for {name} (")
    assert sentences[2].endswith(f"); {mend}")


def test_what_the_hub_does_not_give_is_said_in_a_sentence(hub: Hub) -> None:
    name = "acme/Two-Configs"
    questions: list[tuple[str, dict[str, object], str]] = [
        ("pinned", {"location": "acme/nothing"}, "acme/nothing is neither a directory here nor a dataset on the Hub"),
        ("read_tables", {"location": "acme/nothing"}, "acme/nothing is neither a directory here nor a dataset on the"),
        ("read_tables", {"location": f"acme/no@{OLD}"}, "acme/no is neither a directory here nor a dataset on the Hub"),
        ("pinned", {"location": f"{name}@v9"}, f"The Hub's {name} has no revision 'v9'."),
        (
            "read_tables",
            {"location": name, "configs": ["art"]},
            f"{name} at bbbbbbbbbbbb has no config 'art'; did you mean `Art`? it has Zen, Art.",
        ),
        (
            "read_tables",
            {"location": name, "split": "dev", "configs": ["Art"]},
            f"{name} at bbbbbbbbbbbb has no split 'dev' in Art; it has test, train.",
        ),
        ("read_tables", {"location": f"{name}@{BAD}"}, f"The Hub's {name} has no revision '{BAD}'."),
        ("read_tables", {"location": "acme/bad"}, "acme/bad at cccccccccccc cannot be loaded: "),
    ]
    answers = ask(hub, *((function, words) for function, words, _ in questions))
    for found, (_, _, sentence) in zip(answers, questions, strict=True):
        assert isinstance(found, dict)
        assert found["error"].startswith(sentence)
        assert found["error"].endswith(".")
        assert "\n" not in found["error"]
