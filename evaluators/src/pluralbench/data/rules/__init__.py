"""Rules of the overall number. A benchmark names its rule by `overall`."""

from pluralbench.data.benchmarks import Benchmark
from pluralbench.data.credits import CREDITS
from pluralbench.data.rules.by_category import BY_CATEGORY
from pluralbench.data.rules.first_error import FIRST_ERROR
from pluralbench.data.rules.macro import MACRO
from pluralbench.data.rules.micro import MICRO
from pluralbench.data.rules.rule import Rule

RULES = {rule.name: rule for rule in (MICRO, MACRO, BY_CATEGORY, FIRST_ERROR)}


def rule_of(benchmark: Benchmark) -> Rule:
    """Return the rule of a benchmark's overall number."""
    return RULES[benchmark.overall]


def check_names(benchmark: Benchmark) -> None:
    """Raise `ValueError` unless a description names rules that exist, and sets only what its rule reads."""
    for key, names, known in (("overall", [benchmark.overall], RULES), ("credit", benchmark.credit.values(), CREDITS)):
        for name in names:
            if name not in known:
                raise ValueError(f"`{key}` must be one of {', '.join(known)}; it is `{name}`")
    for rule in RULES.values():
        for column in rule.columns:
            if (getattr(benchmark.columns, column) is not None) != (rule.name == benchmark.overall):
                raise ValueError(f'`columns.{column}` and `overall = "{rule.name}"` require each other')
        for option in rule.options if rule.name != benchmark.overall else ():
            value = getattr(benchmark, option)
            if value != Benchmark.model_fields[option].default:
                raise ValueError(f'`{option}={value}` requires `overall = "{rule.name}"`')


def overall_rule(benchmark: Benchmark) -> str:
    """Return the rule of the overall number, as a phrase, and how items count, the rule of most subsets first."""
    words = {pattern: CREDITS[benchmark.credit[pattern]].words for pattern in sorted(benchmark.credit, key="*".__ne__)}
    counted = [text if pattern == "*" else f"in {pattern}, {text}" for pattern, text in words.items()]
    return "; ".join([rule_of(benchmark).words(benchmark), *counted])
