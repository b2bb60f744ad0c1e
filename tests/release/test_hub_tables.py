"""Tables from the Hub, asked for real: a Hub on loopback that the clients of this process ask."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_hub import Hub, live_hub, point_clients
from pluralbench_release import Tables, TablesError, pinned, read_tables

RANKS = [{f"模型{number}": 1, f"m{number} 🍵": 2} for number in range(200)]
NAME, PLAIN, CARDLESS = "acme/Two-Configs", "acme/plain", "acme/cardless"
BAD = "c" * 40
PATHS = {"Zen": {"test": "z/test.jsonl"}, "Art": {"test": "data/Art/test.jsonl", "train": "data/Art/train.jsonl"}}


def lines(*rows: object) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture(scope="module")
def commits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Hub, str, str]]:
    """A Hub, and the older and the newer commit of a dataset of two configs."""
    with live_hub() as hub:
        old, new = (
            hub.publish(
                NAME,
                {path: lines({"id": f"{age} 茶"}) for splits in PATHS.values() for path in splits.values()},
                PATHS,
                license="mit",
            )
            for age in ("old", "new")
        )
        ranks = lines(*({"id": number, "rank": rank} for number, rank in enumerate(RANKS)))
        hub.publish(PLAIN, {"data/test-00000-of-00001.jsonl": ranks}, license=["mit", "cc0-1.0"])
        hub.publish("acme/bad", {"test.jsonl": '{"id": "q1"'})
        hub.publish(CARDLESS, {"test.csv": "id,n\nq1,7\n"})
        yield hub, old, new


@pytest.fixture
def asked(
    commits: tuple[Hub, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, Callable[[], None]]:
    """The two commits, and what takes the network away."""
    hub, old, new = commits
    point_clients(monkeypatch, hub, tmp_path / "home")

    def unplug() -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)

    return old, new, unplug


def two(commit: str, age: str, *configs: str) -> dict[str, Any]:
    """What is read of `acme/Two-Configs`."""
    return {
        "location": NAME,
        "revision": commit,
        "paths": {config: f"{NAME} {config}/test" for config in configs},
        "license": "mit",
        "rows": {config: [{"id": f"{age} 茶"}] for config in configs},
    }


def read(location: str, **words: Any) -> dict[str, Any]:
    found: Tables = read_tables(location, **words)
    rows = {config: frame.rows(named=True) for config, frame in found.frames.items()}
    about = {name: getattr(found, name) for name in ("location", "revision", "paths", "license")}
    return about | {"rows": rows}


def test_a_dataset_is_pinned_and_read_at_that_commit(asked: tuple[str, str, object]) -> None:
    old, new, _ = asked
    assert pinned(NAME) == pinned(f"{NAME}@main") == f"{NAME}@{new}"
    assert read(f"{NAME}@{new}") == two(new, "new", "Zen", "Art")
    assert read(f"{NAME}@{old}", configs=["Art"]) == two(old, "old", "Art")
    every = read(NAME, split="all")
    assert {config: len(rows) for config, rows in every["rows"].items()} == {"Zen": 1, "Art": 2}
    assert every["paths"]["Art"] == f"{NAME} Art/all"
    # Mappings with other keys in each row are as in a local file.
    found = read(PLAIN)
    assert (found["license"], found["paths"]) == ("mit, cc0-1.0", {"default": f"{PLAIN} default/test"})
    rows = found["rows"]["default"]
    assert [row["id"] for row in rows] == list(range(200))
    assert rows[7]["rank"] == '{"m7 🍵":2,"模型7":1}'
    assert [json.loads(row["rank"]) for row in rows] == RANKS


def test_the_cache_serves_each_commit_without_a_network(asked: tuple[str, str, Callable[[], None]]) -> None:
    old, new, unplug = asked
    for commit in (new, old):  # so that the newest in the cache is not the newest on the Hub
        read(f"{NAME}@{commit}", configs=["Art"])
    cardless = pinned(CARDLESS)
    read(cardless)
    unplug()
    assert read(f"{NAME}@{new}", configs=["Art"]) == two(new, "new", "Art")
    assert read(f"{NAME}@{old}", configs=["Art"]) == two(old, "old", "Art")
    found = read(cardless)
    assert (found["rows"], found["license"]) == ({"default": [{"id": "q1", "n": 7}]}, None)
    fix = r"use a local copy, or try again online\.$"
    for commit, config in ((old, "Zen"), (BAD, "Art")):
        message = f"^{NAME} at {commit[:12]} is not in the cache, and the Hub cannot be reached; {fix}"
        with pytest.raises(TablesError, match=message):
            read(f"{NAME}@{commit}", configs=[config])
    with pytest.raises(TablesError, match=rf"^The Hub cannot be reached for {NAME} \(.*\); {fix}"):
        read(NAME)


def test_what_the_hub_does_not_give_is_said_in_a_sentence(asked: tuple[str, str, object]) -> None:
    _, new, _ = asked
    refusals: list[tuple[str, dict[str, Any], str]] = [
        ("acme/nothing", {}, "acme/nothing is neither a local directory nor a dataset on the Hub"),
        (f"acme/no@{BAD}", {}, "acme/no is neither a local directory nor a dataset on the Hub"),
        (f"{NAME}@v9", {}, f"{NAME} on the Hub has no revision 'v9'."),
        (f"{NAME}@{BAD}", {}, f"{NAME} on the Hub has no revision '{BAD}'."),
        (NAME, {"configs": ["art"]}, f"{NAME} at {new[:12]} has no config 'art'; did you mean `Art`? it has Zen, Art."),
        (
            NAME,
            {"split": "dev", "configs": ["Art"]},
            f"{NAME} at {new[:12]} has no split 'dev' in Art; it has test, train.",
        ),
        ("acme/bad", {}, f"acme/bad at {pinned('acme/bad').partition('@')[2][:12]} cannot be loaded: "),
    ]
    for location, words, sentence in refusals:
        with pytest.raises(TablesError) as refused:
            read_tables(location, **words)
        message = str(refused.value)
        assert message.startswith(sentence)
        assert message.endswith(".")
        assert "\n" not in message


def test_a_dataset_of_another_commit_than_asked_for_is_not_read(
    commits: tuple[Hub, str, str], asked: tuple[str, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, _ = asked
    cardless = pinned(CARDLESS).partition("@")[2]
    monkeypatch.setattr(commits[0], "serves", "main")
    assert read(NAME) == read(f"{NAME}@main") == two(new, "new", "Zen", "Art")
    # Of an abbreviation that has only digits, which may be a name, any commit is right; 39 digits are not met.
    for name, revision, came in ((NAME, old, new), (NAME, old[:39], new), (CARDLESS, BAD, cardless)):
        with pytest.raises(TablesError, match=f"commit {came[:12]} of {name}, not {revision[:12]} "):
            read_tables(f"{name}@{revision}")
