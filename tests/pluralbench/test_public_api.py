"""What `pluralbench` offers, and what importing it costs."""

import inspect
import subprocess
import sys

import pluralbench
from commands import environment

NAMES = [
    "AspectMatching",
    "Benchmark",
    "BenchmarkError",
    "ChatConnection",
    "Cluster",
    "Columns",
    "Correlation",
    "Data",
    "DataError",
    "Downstream",
    "DownstreamPrompt",
    "EvaluationError",
    "Finding",
    "Group",
    "Items",
    "Judging",
    "LocalModel",
    "ModelRecord",
    "OptimizeOptions",
    "Outcome",
    "Person",
    "PersonaData",
    "PersonaJudging",
    "PersonalOptions",
    "Personalized",
    "Personalizing",
    "PlannerOptions",
    "Planning",
    "Plans",
    "Prompt",
    "RewardModel",
    "Run",
    "RunComparison",
    "RunError",
    "Running",
    "Sampling",
    "Scored",
    "Scoring",
    "ServedModel",
    "Serving",
    "Study",
    "Synthesis",
    "Synthesizing",
    "TrainingOptions",
    "UserError",
    "best_of_n",
    "check_submission",
    "compare",
    "correlate",
    "find_benchmark",
    "judge",
    "judge_personas",
    "known_benchmarks",
    "load_items",
    "load_run",
    "merge",
    "optimize",
    "personalize",
    "plan",
    "render",
    "report_frame",
    "score",
    "study",
    "synthesize",
    "train",
    "train_planner",
    "verdict_rows",
    "write_site",
]


def test_the_public_names_are_these() -> None:
    assert pluralbench.__all__ == NAMES
    for name in NAMES:
        one = getattr(pluralbench, name)
        assert inspect.getdoc(getattr(one, "__origin__", one)), name


def test_the_benchmarks_are_these() -> None:
    known = pluralbench.known_benchmarks()
    judged = ["persona-judge"]
    scored = ["personalized", "multilingual", "reward-bench", "chinese", "pairs", "rankings", "pandalm"]
    with_users = ["arena-personalized", "prism-personalized", "personalized-training"]
    sampled = ["prompts"]
    assert sorted(known) == sorted(scored + with_users + judged + sampled)
    assert [name for name, benchmark in known.items() if benchmark.prompts] == sampled
    assert [name for name, benchmark in known.items() if benchmark.personas] == judged
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
