"""An option means one thing in all commands: one explanation, one type, one placeholder."""

from command_options import commands, options
from pluralbench_runs.canonical import MAX_SEED

DIFFERENT = {
    "--batch-size": "a step of a personalized reward model has pairs, a batch of another one responses",
    "--benchmark": "who scores or judges finds it in the data's manifest, other verbs have a benchmark of their own",
    "--column": "a training set has prompts, responses and conversations, a benchmark the fields of its items",
    "--data": "the data of a run that is shown may have moved",
    "--format": "a command has the formats that fit what it prints",
    "--held-out": "a planner is measured on a share of the people, a reward model on other items too",
    "--import": "studies come back in a folder, calls in files",
    "--judge": "the benchmarks have stand-ins of their own for a judge",
    "--learning-rate": "the rate of a reward model falls, that of a policy does not",
    "--limit": "builders count what their source has, `show` the items of all configs",
    "--max-length": "what is trained has a limit of its own, what is scored the model's",
    "--max-tokens": "the prompt of a judge may have its own",
    "--on-overflow": "training cannot truncate a response",
    "--out": "what is written is a run, a release, a model, a folder of tasks or a file",
    "--policy": "a policy that answers may be served, one that is trained may not",
    "--micro-batch-size": "a planner reads items, a policy completions",
    "--profile-size": "some are embedded, others a persona is written from",
    "--price": "translations are paid by the character",
    "--profile": "personalize trains with and without one, other verbs choose which",
    "--prompts": "annotators are given responses apart from the prompts, judges with them",
    "--recipe": "builders have recipes of their own",
    "--rescore": "a verifier draws items at random, `agree` takes those that differ most",
    "--reward": "a policy is optimized against one reward model",
    "--seed": "a verifier's draw is another each time",
    "--served-name": "a server names its model, a client chooses one of several",
    "--split": "profiles are ranked for what is learned from, so that without it they are those of the train split",
    "--temperature": "a policy is trained on samples, so that 0 is refused there",
    "--max-steps": "a planner is trained for so many steps, a policy for so many in place of epochs",
    "--wide": "a comparison shows the intervals of parts anyway",
    "--source": "builders have sources of their own",
}

ENDED_OTHERWISE = {
    "the data: no more is taken than there is": """
        --check-items --closest --examples --history-size --items --limit --max-demonstrations --min-posts --ngram
        --per-level --profile-size --rescore --respondents --review-rows --size --verify-items
    """,
    "the data: a part has no more rows than there are": "--batch-size --gradient-accumulation-steps --token-budget",
    "the batch, of which it is a part": "--micro-batch-size --mini-batch-size",
    "the number of steps, of which some are chosen": "--eval-steps --kl-steps --save-steps --warmup-steps",
    "the model's context": "--max-length --max-prompt-tokens --max-tokens --judge-max-tokens --sample-max-tokens",
    "the size of the server's reply": "--max-answer-bytes --judge-max-answer-bytes --policy-max-answer-bytes",
    "the annotators, who are named": "--annotators-per-item",
    "a number by which values are multiplied": "--lora-alpha",
}
"""Options that need no maximum, by what ends their work."""


def test_an_option_means_one_thing_in_all_commands() -> None:
    differing = {flag: dict(kinds) for flag, kinds in options().items() if len(kinds) > 1}
    assert {flag: kinds for flag, kinds in differing.items() if flag not in DIFFERENT} == {}
    assert differing.keys() == DIFFERENT.keys(), "an exception that is none any more"


def test_a_flag_is_never_also_a_switch() -> None:
    names = [name for flag in options() for name in flag.split("/")]
    assert len(names) == len(set(names))


def test_every_option_is_explained() -> None:
    unexplained = {flag for flag, kinds in options().items() if any(not what[0] for what in kinds)}
    assert unexplained == set()


def test_what_repeats_work_or_takes_memory_has_a_maximum() -> None:
    bounds: dict[str, set[tuple[object, object]]] = {}
    for _, command in commands():
        for option in command.params:
            info, kind = option.type_descriptor.parameter_info, option.type_descriptor.annotation
            if kind is int and option.opts[0].startswith("-"):
                bounds.setdefault(option.opts[0], set()).add((info.min, info.max))
    unbounded = {flag for flag, own in bounds.items() if any(highest is None for _, highest in own)}
    listed = [flag for flags in ENDED_OTHERWISE.values() for flag in flags.split()]
    assert unbounded == set(listed), "give the field a maximum, or say what else ends it"
    assert len(listed) == len(set(listed))
    alike = {"seed": (0, MAX_SEED), "attempts": (1, 100), "epochs": (1, 10_000), "seeds": (1, 1_000)}
    found = {flag: own for flag, own in bounds.items() if flag.rpartition("-")[2] in alike}
    assert found == {flag: {alike[flag.rpartition("-")[2]]} for flag in found}
    assert {flag.rpartition("-")[2] for flag in found} == alike.keys()
