"""What `pluralbench` offers, and what importing it costs."""

import inspect
import subprocess
import sys

import pluralbench
from commands import environment


def test_every_public_name_is_there_and_documented() -> None:
    for name in pluralbench.__all__:
        one = getattr(pluralbench, name)
        assert inspect.getdoc(getattr(one, "__origin__", one)), name


def test_the_benchmarks_are_these() -> None:
    known = pluralbench.known_benchmarks()
    judged = ["persona-judge"]
    scored = ["personalized", "multilingual", "reward-bench", "chinese", "pairs", "rankings", "pandalm"]
    with_users = ["arena-personalized", "prism-personalized", "personalized-training"]
    sampled = ["prompts"]
    assert sorted(known) == sorted(scored + with_users + judged + sampled)
    assert [name for name, benchmark in known.items() if benchmark.prompts_only] == sampled
    assert [name for name, benchmark in known.items() if benchmark.persona_items] == judged
    assert known["personalized"].data == "QiyaoMa/Personalized-RewardBench"
    assert known["multilingual"].data == "CohereLabsCommunity/multilingual-reward-bench"
    assert (known["reward-bench"].data, known["reward-bench"].split) == ("allenai/reward-bench", "filtered")
    assert [name for name, benchmark in known.items() if benchmark.is_ranking] == ["chinese", "rankings"]
    assert all(benchmark.title for benchmark in known.values())


def test_importing_the_command_loads_no_torch() -> None:
    code = (
        "import sys, pluralbench, pluralbench.commands.app\n"
        "print([name for name in ('torch', 'transformers', 'datasets', 'xllamacpp') if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert shown.stdout == "[]\n"
