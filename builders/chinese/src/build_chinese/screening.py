"""Screening rules that drop unusable responses before annotation (CHEEMS, section 3.1 and appendix A).

The paper names two rules, abnormal length and too many non-Chinese characters, without thresholds, and lets annotators
discard garbled text. Polars matches all patterns in time linear in the length of a text.
"""

import statistics
from collections.abc import Mapping, Sequence

import polars as pl

from build_chinese.language import HAN, KANA, LETTER, is_option, prose_of, requests_of, share_of, without_code
from build_chinese.recipe import Screening

EMPTY, GARBLED, REPEATED, REFUSAL = "empty", "garbled", "repeated", "refusal"
LONG, LONG_FOR_PROMPT = "longer than the set", "longer than the prompt's others"
NOT_CHINESE, JAPANESE = "not Chinese", "Japanese"
TOO_FEW = "too few responses"
RULES = (EMPTY, GARBLED, LONG, REPEATED, REFUSAL, NOT_CHINESE, JAPANESE, LONG_FOR_PROMPT, TOO_FEW)
DROPS = pl.Schema({"prompt": pl.String, "response": pl.String, "rule": pl.String, "value": pl.String})

WINDOW = 20
OPENING = 80


BROKEN = (
    r"[\x{FFFD}\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F\x{E000}-\x{F8FF}\x{FDD0}-\x{FDEF}\x{FFFE}\x{FFFF}]",
    # UTF-8 read as Latin-1 or Windows-1252: two or more characters of three bytes each.
    r"(?:[ã-é][\x{A0}-\x{BF}€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\x{FFFD}\x{80}-\x{9F}]{1,2}){2,}",
    # Replacement characters and uninitialized memory read as GBK, and typical results of reading UTF-8 as GBK.
    r"锟斤拷|锟斤|烫烫烫+|屯屯屯+|[鐨銆鈥]",
)

REFUSING = "(?:回答|回复|回应|提供|协助|帮|满足|完成|处理|讨论|给出|继续|生成|参与|发表|评论|支持|执行|透露|分享|解答)"
UNABLE = "(?:无法|不能|不便|不方便|没法|没办法|没有办法|不可以|不会|拒绝)"
ENGLISH_UNABLE = r"(?:can[’']?t|cannot|can not|unable to|not able to|won[’']?t|not comfortable)"
# Fixed words begin here, which spelling rules leave alone.
ENGLISH_REFUSING = (
    r"(?:assist|help|provid|answer|respond|comply|fulfil|discuss|continu|complet|do that|generat|creat|engag|shar)"
)
# Fixed words end here.
REFUSALS = (
    rf"(?:抱歉|对不起|不好意思|很遗憾)[^。！？!?\n]{{0,20}}{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"作为[^。！？!?\n]{{0,15}}(?:AI|人工智能|模型|助手)[^。！？!?\n]{{0,25}}{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"\A我{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"(?i)\b(?:sorry|apologi[sz]e|unfortunately|as an ai)\b.{{0,50}}{ENGLISH_UNABLE}.{{0,20}}{ENGLISH_REFUSING}",
    rf"(?i)\Ai(?: am|[’']m)? {ENGLISH_UNABLE} {ENGLISH_REFUSING}",
)


def screen(prompts: pl.DataFrame, rules: Screening) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Drop responses that break a rule, and prompts with too few responses left.

    Args:
        prompts: `id`, `input`, `category` (main, sub), `responses` (structs of `id`, `content` and more). Other columns
            are kept.
        rules: Thresholds of the rules.

    Returns:
        The remaining prompts and responses, in their order; and the dropped responses, with columns of `DROPS`: the
        first of `RULES` that the response breaks, and the measured `value`. A dropped prompt is a row without
        `response`.
    """
    requests = requests_of(pl.col("input"), rules.chinese)
    rows = prompts.select("input", "category", prompt="id", requests=requests, answer="responses")
    rows = rows.explode("answer").drop_nulls("answer")
    content = pl.col("answer").struct.field("content").fill_null("")
    rows = rows.with_columns(text=content.str.strip_chars()).with_columns(length=pl.col("text").str.len_chars())
    checked = rows.select("prompt", "answer", violation=pl.coalesce(_violations(rows, rules)))
    passed = checked.filter(pl.col("violation").is_null()).group_by("prompt", maintain_order=True)
    remaining = prompts.drop("responses").join(
        passed.agg(responses="answer"), left_on="id", right_on="prompt", how="left", maintain_order="left"
    )
    count = pl.col("responses").list.len().fill_null(0)
    dropped = checked.filter(pl.col("violation").is_not_null()).select(
        "prompt",
        pl.col("answer").struct.field("id").alias("response"),
        *(pl.col("violation").struct.field(name) for name in ("rule", "value")),
    )
    too_few = remaining.filter(count < rules.least_responses).select(
        prompt="id", response=pl.lit(None, dtype=pl.String), rule=pl.lit(TOO_FEW), value=count.cast(pl.String)
    )
    enough = remaining.filter(count >= rules.least_responses).select(prompts.columns)
    return enough, pl.concat([dropped, too_few], how="vertical_relaxed")


def dropped_by(dropped: pl.DataFrame, categories: Mapping[str, str]) -> pl.DataFrame:
    """Count the responses that each rule dropped in each main category, largest counts first.

    Those of a dropped prompt (`TOO_FEW`) broke no rule themselves.
    """
    main = pl.col("prompt").replace_strict(categories, default="", return_dtype=pl.String).alias("category")
    left = pl.col("value").cast(pl.UInt32, strict=False)
    number = pl.when(pl.col("rule") == TOO_FEW).then(left).otherwise(1).sum().alias("responses")
    counts = dropped.group_by("rule", main).agg(number).filter(pl.col("responses") > 0)
    return counts.sort("responses", "rule", "category", descending=[True, False, False])


def _violations(rows: pl.DataFrame, rules: Screening) -> list[pl.Expr]:
    """For each rule a struct of `rule` and `value` if a row breaks it, else null, in the order of `RULES`."""
    text, length = pl.col("text"), pl.col("length")
    outlier = (length > rules.always_fine) & ~_in(rules.long_allowed)
    violations = [_violation(EMPTY, length == 0, pl.lit(""))]

    characters = pl.sum_horizontal(text.str.extract_all(pattern).list.join("").str.len_chars() for pattern in BROKEN)
    broken = (characters / length).clip(upper_bound=1)
    violations.append(_violation(GARBLED, broken > rules.garbled, _percent(broken)))

    if rules.longest and rows.height:
        lengths = [size for size in rows["length"] if size]
        longest = statistics.fmean(lengths or [0]) + rules.longest * statistics.pstdev(lengths or [0])
        violations.append(_violation(LONG, outlier & (length > longest), _beyond(length, pl.lit(longest))))

    repeated = pl.lit(pl.Series([_repeated_share(value) for value in rows["text"]], dtype=pl.Float64))
    loop = (repeated > rules.repeated) & ~_in(rules.repeated_allowed)
    violations.append(_violation(REPEATED, loop, _percent(repeated)))

    if rules.refusals:
        opening = text.str.slice(0, OPENING)
        words = pl.coalesce(opening.str.extract(f"({pattern})") for pattern in REFUSALS)
        refused = (length <= rules.refusal_length) & words.is_not_null() & ~_in(rules.refusals_allowed)
        violations.append(_violation(REFUSAL, refused, words))

    violations += _language_violations(rules)

    if rules.longest_for_prompt:
        limit = rules.longest_for_prompt * length.filter(length > 0).median().over("prompt")
        violations.append(_violation(LONG_FOR_PROMPT, outlier & (length > limit), _beyond(length, limit)))
    return violations


def _language_violations(rules: Screening) -> list[pl.Expr]:
    text, requests = pl.col("text"), pl.col("requests").struct
    prose = prose_of(text)
    no_code = without_code(prose)
    chinese = share_of(prose, HAN)
    mostly_code = requests.field("code") & (2 * no_code.str.len_chars() < prose.str.len_chars())
    exempt = [
        no_code.str.count_matches(LETTER) < rules.few_letters,
        _in(rules.other_languages),
        *[requests.field("language")] * rules.asked_language,
        *[mostly_code] * rules.asked_code,
        *[requests.field("options") & is_option(text, pl.col("input"))] * rules.asked_options,
    ]
    # Lines of code may contain Chinese, so they are left out only if that favors the response.
    foreign = chinese.is_not_nan() & (chinese < rules.chinese) & (share_of(no_code, HAN) < rules.chinese)
    kana = prose.str.count_matches(KANA) / prose.str.count_matches(f"{KANA}|{HAN}")
    japanese = kana.is_not_nan() & (kana > rules.kana)
    applies = ~pl.any_horizontal(*exempt)
    return [
        _violation(NOT_CHINESE, foreign & applies, _percent(chinese)),
        _violation(JAPANESE, japanese & applies, _percent(kana)),
    ]


def _in(categories: Sequence[str]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(value=False), *(pl.col("category").list.contains(name) for name in categories))


def _violation(rule: str, broken: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(broken).then(pl.struct(rule=pl.lit(rule), value=value))


def _percent(share: pl.Expr) -> pl.Expr:
    return pl.format("{} %", (100 * share).round(1))


def _beyond(length: pl.Expr, limit: pl.Expr) -> pl.Expr:
    return pl.format("{} characters, more than {}", length, limit.floor().cast(pl.Int64))


def _repeated_share(text: str) -> float:
    """The share of windows that occurred earlier in the text; 0 for short texts."""
    text = " ".join(text.split())
    windows = len(text) - WINDOW + 1
    if windows < 3 * WINDOW:
        return 0.0
    return 1 - len({text[start : start + WINDOW] for start in range(windows)}) / windows
