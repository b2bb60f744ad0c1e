"""An option means one thing in all commands: one explanation, one type, one placeholder."""

from command_options import commands, options
from pluralbench_runs.canonical import MAX_SEED

DIFFERENT = {
    "--batch-size": "a step of a personalized reward model has pairs, a batch of another one responses",
    "--benchmark": "who scores or judges finds it in the data's manifest, other verbs have a benchmark of their own",
    "--column": "a training set has prompts, responses and conversations, a benchmark the fields of its items",
    "--data": "the data of a run that is shown may have moved",
    "--engine": "a reward model is behind servers, a policy is trained by a library",
    "--format": "a command has the formats that fit what it prints",
    "--held-out": "a planner is measured on a share of the people, a reward model on other items too",
    "--import": "studies come back in a folder, calls in files",
    "--judge": "the benchmarks have stand-ins of their own for a judge",
    "--learning-rate": "the rate of a reward model falls, that of a policy does not",
    "--limit": "builders count what their source has, `show` the items of all configs",
    "--max-length": "what is trained has a limit of its own, what is scored the model's",
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
    "--split": "profiles are ranked for what is learned from, so that without it they are those of the train split",
    "--temperature": "a policy is trained on samples, so that 0 is refused there",
    "--max-steps": "a planner is trained for so many steps, a policy for so many in place of epochs",
    "--source": "builders have sources of their own",
}


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


def test_seeds_and_counts_of_repetitions_are_bounded_alike() -> None:
    bounds: dict[str, set[object]] = {"seed": set(), "attempts": set(), "epochs": set(), "seeds": set()}
    for _, command in commands():
        for option in command.params:
            kind = option.opts[0].rpartition("-")[2]
            if kind in bounds:
                info = option.type_descriptor.parameter_info
                bounds[kind].add((info.min, info.max))
    assert bounds == {"seed": {(0, MAX_SEED)}, "attempts": {(1, 100)}, "epochs": {(1, 10_000)}, "seeds": {(1, 1_000)}}
