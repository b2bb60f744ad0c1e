"""Rules that take out responses nobody should have to compare (CHEEMS, section 3.1 and appendix A).

The paper names two, abnormal length and too many non-Chinese characters, without thresholds, and has annotators discard
what is garbled. All patterns are matched by polars, in a time that grows with the length of a text and no faster.
"""

import statistics
from collections.abc import Mapping, Sequence

import polars as pl

from build_chinese.language import HAN, KANA, LETTER, asked_of, is_option, prose_of, share_of, without_code
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
    # Replacement characters and uninitialised memory read as GBK, and what UTF-8 often becomes when it is.
    r"锟斤拷|锟斤|烫烫烫+|屯屯屯+|[鐨銆鈥]",
)

REFUSING = "(?:回答|回复|回应|提供|协助|帮|满足|完成|处理|讨论|给出|继续|生成|参与|发表|评论|支持|执行|透露|分享|解答)"
UNABLE = "(?:无法|不能|不便|不方便|没法|没办法|没有办法|不可以|不会|拒绝)"
ENGLISH_UNABLE = r"(?:can[’']?t|cannot|can not|unable to|not able to|won[’']?t|not comfortable)"
ENGLISH_REFUSING = (
    r"(?:assist|help|provid|answer|respond|comply|fulfil|discuss|continu|complet|do that|generat|creat|engag|shar)"
)
REFUSALS = (
    rf"(?:抱歉|对不起|不好意思|很遗憾)[^。！？!?\n]{{0,20}}{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"作为[^。！？!?\n]{{0,15}}(?:AI|人工智能|模型|助手)[^。！？!?\n]{{0,25}}{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"\A我{UNABLE}[^。！？!?\n]{{0,8}}{REFUSING}",
    rf"(?i)\b(?:sorry|apologi[sz]e|unfortunately|as an ai)\b.{{0,50}}{ENGLISH_UNABLE}.{{0,20}}{ENGLISH_REFUSING}",
    rf"(?i)\Ai(?: am|[’']m)? {ENGLISH_UNABLE} {ENGLISH_REFUSING}",
)


def screen(prompts: pl.DataFrame, rules: Screening) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The prompts with the responses that stay, in their order, and what was dropped (columns of `DROPS`).

    prompts: `id`, `input`, `category` (main, sub), `responses` (structs of `id`, `content` and more); others are kept.
    A response is dropped by the first of `RULES` that it breaks, and `value` says what the rule saw. A prompt that goes
    for lack of responses is a row without `response`.
    """
    asked = asked_of(pl.col("input"), rules.chinese)
    rows = prompts.select("input", "category", prompt="id", asked=asked, answer="responses")
    rows = rows.explode("answer").drop_nulls("answer")
    content = pl.col("answer").struct.field("content").fill_null("")
    rows = rows.with_columns(text=content.str.strip_chars()).with_columns(length=pl.col("text").str.len_chars())
    judged = rows.select("prompt", "answer", found=pl.coalesce(_faults(rows, rules)))
    stay = judged.filter(pl.col("found").is_null()).group_by("prompt", maintain_order=True).agg(responses="answer")
    left = prompts.drop("responses").join(stay, left_on="id", right_on="prompt", how="left", maintain_order="left")
    count = pl.col("responses").list.len().fill_null(0)
    dropped = judged.filter(pl.col("found").is_not_null()).select(
        "prompt",
        pl.col("answer").struct.field("id").alias("response"),
        *(pl.col("found").struct.field(name) for name in ("rule", "value")),
    )
    few = left.filter(count < rules.least_responses).select(
        prompt="id", response=pl.lit(None, dtype=pl.String), rule=pl.lit(TOO_FEW), value=count.cast(pl.String)
    )
    kept = left.filter(count >= rules.least_responses).select(prompts.columns)
    return kept, pl.concat([dropped, few], how="vertical_relaxed")


def dropped_by(dropped: pl.DataFrame, categories: Mapping[str, str]) -> pl.DataFrame:
    """How many responses each rule dropped in each main category: `rule`, `category`, `responses`; the most first.

    dropped: columns of `DROPS`; prompts that went for lack of responses are rows of `TOO_FEW`. categories: of prompts.
    """
    main = pl.col("prompt").replace_strict(categories, default="", return_dtype=pl.String).alias("category")
    counts = dropped.group_by("rule", main).agg(pl.len().alias("responses"))
    return counts.sort("responses", "rule", "category", descending=[True, False, False])


def _faults(rows: pl.DataFrame, rules: Screening) -> list[pl.Expr]:
    """For each rule what it finds in a row (a struct of `rule` and `value`) or null, in the order of `RULES`."""
    text, length = pl.col("text"), pl.col("length")
    outlier = (length > rules.always_fine) & ~_in(rules.long_allowed)
    faults = [_fault(EMPTY, length == 0, pl.lit(""))]

    found = pl.sum_horizontal(text.str.extract_all(pattern).list.join("").str.len_chars() for pattern in BROKEN)
    broken = (found / length).clip(upper_bound=1)
    faults.append(_fault(GARBLED, broken > rules.garbled, _percent(broken)))

    if rules.longest and rows.height:
        lengths = [size for size in rows["length"] if size]
        limit = statistics.fmean(lengths or [0]) + rules.longest * statistics.pstdev(lengths or [0])
        faults.append(_fault(LONG, outlier & (length > limit), _beyond(length, pl.lit(limit))))

    repeated = pl.lit(pl.Series([_repeated(value) for value in rows["text"]], dtype=pl.Float64))
    loop = (repeated > rules.repeated) & ~_in(rules.repeated_allowed)
    faults.append(_fault(REPEATED, loop, _percent(repeated)))

    if rules.refusals:
        opening = text.str.slice(0, OPENING)
        words = pl.coalesce(opening.str.extract(f"({pattern})") for pattern in REFUSALS)
        refused = (length <= rules.refusal_length) & words.is_not_null() & ~_in(rules.refusals_allowed)
        faults.append(_fault(REFUSAL, refused, words))

    faults += _of_language(rules)

    if rules.longest_for_prompt:
        usual = rules.longest_for_prompt * length.filter(length > 0).median().over("prompt")
        faults.append(_fault(LONG_FOR_PROMPT, outlier & (length > usual), _beyond(length, usual)))
    return faults


def _of_language(rules: Screening) -> list[pl.Expr]:
    """What the rules of language find in a row."""
    text, asked = pl.col("text"), pl.col("asked").struct
    prose = prose_of(text)
    bare = without_code(prose)
    chinese = share_of(prose, HAN)
    coded = asked.field("code") & (2 * bare.str.len_chars() < prose.str.len_chars())
    excused = [
        bare.str.count_matches(LETTER) < rules.few_letters,
        _in(rules.other_languages),
        *[asked.field("language")] * rules.asked_language,
        *[coded] * rules.asked_code,
        *[asked.field("options") & is_option(text, pl.col("input"))] * rules.asked_options,
    ]
    # Lines of code may hold Chinese too, so they are left out only where that is in favour of the response.
    foreign = chinese.is_not_nan() & (chinese < rules.chinese) & (share_of(bare, HAN) < rules.chinese)
    kana = prose.str.count_matches(KANA) / prose.str.count_matches(f"{KANA}|{HAN}")
    japanese = kana.is_not_nan() & (kana > rules.kana)
    judged = ~pl.any_horizontal(*excused)
    return [
        _fault(NOT_CHINESE, foreign & judged, _percent(chinese)),
        _fault(JAPANESE, japanese & judged, _percent(kana)),
    ]


def _in(categories: Sequence[str]) -> pl.Expr:
    return pl.any_horizontal(pl.lit(value=False), *(pl.col("category").list.contains(name) for name in categories))


def _fault(rule: str, broken: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(broken).then(pl.struct(rule=pl.lit(rule), value=value))


def _percent(share: pl.Expr) -> pl.Expr:
    return pl.format("{} %", (100 * share).round(1))


def _beyond(length: pl.Expr, limit: pl.Expr) -> pl.Expr:
    return pl.format("{} characters, more than {}", length, limit.floor().cast(pl.Int64))


def _repeated(text: str) -> float:
    """The share of the windows of a text that stood in it before; 0 for texts of less than a few windows."""
    text = " ".join(text.split())
    windows = len(text) - WINDOW + 1
    if windows < 3 * WINDOW:
        return 0.0
    return 1 - len({text[start : start + WINDOW] for start in range(windows)}) / windows
