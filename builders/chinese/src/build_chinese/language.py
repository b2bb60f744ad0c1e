"""Detect whether a response is in Chinese by its letters, and whether the prompt asks for something else.

Polars matches all patterns in time linear in the length of a text.
"""

from collections.abc import Sequence

import polars as pl

# Fenced code (to the end of the text if the fence is not closed), inline code, formulas, URLs.
NON_PROSE = (
    r"(?s)```.*?(?:```|\z)",
    r"(?s)~~~.*?(?:~~~|\z)",
    r"`[^`\n]+`",
    r"(?s)\$\$.*?\$\$",
    r"(?s)\\\[.*?\\\]",
    r"(?s)\\\(.*?\\\)",
    r"(?s)\\begin\{.*?\\end\{[a-z*]*\}",
    r"\$[^$\n]+\$",
    r"(?i)(?:https?://|www\.)[!-~]+",
)
# Lines of code without a fence: by their ending, a keyword or sign at the beginning, an assignment or a call.
KEYWORD = (
    "def|class|if|elif|else|for|while|try|except|finally|with|return|switch|case|do|function|public|private|protected|"
    "static|void|int|long|float|double|char|bool|string|var|let|const|struct|func|fn|foreach|print"
)
UNFENCED = (
    r"(?m)^.*[;{}]\s*(?://[^\n]*|#[^\n]*)?$",
    rf"(?m)^\s*(?:@|(?:(?:{KEYWORD})\b[^\n]*[:(\[,)]))\s*(?:#[^\n]*)?$",
    r"(?m)^\s*(?:import\s+[\w.*, ]+|from\s+[\w.]+\s+import\b[^\n]*|return\b[^\n]{0,60}|package\s+[\w.]+)$",
    r"(?m)^\s*(?:#\s*include|#\s*define|//|/\*|\*/|\*\s|<!--|--\s|>>>|\$\s|#!)[^\n]*$",
    r"(?m)^\s*[\w.$\[\]\x27\x22, ]{1,60}\s*(?:[-+*/|&]?=|:=|<-)[^=\n][^\n]*$",
    r"(?m)^\s*[\w.$]+\([^\n]*\)[.\w()]*\s*(?:#[^\n]*)?$",
    r"(?m)^\s*</?[A-Za-z!][^\n]*>\s*$",
    r"(?m)^\s*(?:SELECT|FROM|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|WHERE|GROUP BY|ORDER BY|HAVING|LIMIT|"
    r"VALUES|SET|(?:INNER |LEFT |RIGHT )?JOIN)\b[^\n\p{Han}]*$",
    r"(?m)^\s*(?:sudo|pip3?|npm|git|apt(?:-get)?|docker|cd|conda)\s[^\n\p{Han}]*$",
)
HAN, LETTER, KANA = r"\p{Han}", r"[\p{L}\p{Han}]", r"[\p{Hiragana}\p{Katakana}]"

LANGUAGE = (
    "(?:英|日|法|德|俄|韩|韓|意|葡|泰|越)(?:语|文|語)|(?:西班牙|葡萄牙|意大利|阿拉伯|拉丁|希腊|越南|印尼|土耳其|外)(?:语|文|語)|双语|雙語|"
    "(?i:english|japanese|french|german|russian|korean|spanish|italian|portuguese|arabic)"
)
ASKS_FOR_LANGUAGE = (
    rf"(?:译|譯|翻|改|转|轉|换|換|写|寫)[^。\n]{{0,8}}?(?:成|为|為|到|作|至|出)[^。\n]{{0,6}}?(?:{LANGUAGE})",
    rf"(?:用|以|使用|请说|講|讲)\s*(?:{LANGUAGE})",
    rf"(?:{LANGUAGE})[^。，\n]{{0,8}}?(?:怎么|怎麼|如何|作文|邮件|信|单词|單詞|句子|造句|名字|歌词|诗|对话|文章|翻译|翻譯|回答|表达)",
    r"(?:中|汉|漢)(?:译|譯|翻)(?:英|日|法|德|俄|韩|外)",
    rf"(?i)translat\w*[^.\n]{{0,200}}?\b(?:in)?to\s+(?:{LANGUAGE})",
)
ASKS_FOR_CODE = (
    r"(?i)代码|代碼|编程|編程|程序|程式|脚本|腳本|算法|演算法|正则|正則|命令行|网页|網頁|函数.{0,6}(?:实现|编写)|(?:写|实现|编写|定义).{0,12}函数|"
    r"\b(?:python|java|javascript|typescript|c\+\+|c#|golang|rust|php|ruby|sql|html|css|json|xml|yaml|bash|shell|latex|regex|matlab|"
    r"verilog|react|vue|excel)",
)
OPTION = r"(?m)(?:^|[^A-Za-z]){}\s*[.．、:：)）\]】]"
LETTERS = r"\A(?:\W|答案|正确|正確|选项|選項|选|選|是|为|為|应|應|该|該|故)*(?:[A-Ha-h]\W*){1,8}\z"


def requests_of(prompt: pl.Expr, chinese: float) -> pl.Expr:
    """Detect requests for answers that are not Chinese prose.

    Returns:
        Struct of Booleans: `language` (another language, or a prompt with kana or a share of Chinese below `chinese`),
        `code`, and `options` (multiple choice).
    """
    foreign = (share_of(prose_of(prompt), HAN) < chinese) | prompt.str.contains(KANA)
    return pl.struct(
        language=pl.any_horizontal(foreign, *map(prompt.str.contains, ASKS_FOR_LANGUAGE)),
        code=pl.any_horizontal(*map(prompt.str.contains, ASKS_FOR_CODE)),
        options=pl.all_horizontal(*(prompt.str.contains(OPTION.format(letter)) for letter in "AB")),
    )


def prose_of(text: pl.Expr) -> pl.Expr:
    """Remove marked code, formulas and URLs."""
    return _without(text, NON_PROSE)


def without_code(prose: pl.Expr) -> pl.Expr:
    """Remove lines of code that no fence marks."""
    return _without(prose, UNFENCED)


def share_of(prose: pl.Expr, characters: str) -> pl.Expr:
    """Compute the share of some characters among the letters; NaN without letters."""
    return prose.str.count_matches(characters) / prose.str.count_matches(LETTER)


def is_option(text: pl.Expr, prompt: pl.Expr) -> pl.Expr:
    """Whether an answer consists of letters of options, or of a letter and words of the prompt."""
    rest = text.str.replace(r"\A\W*[A-H]\s*[.．、:：)）\]】]?\s*", "")
    # `contains` compiles the answer of a frame of one row as a pattern, which takes minutes for a long one.
    return text.str.contains(LETTERS) | ((rest != "") & (prompt.str.split(rest).list.len() > 1))


def _without(text: pl.Expr, patterns: Sequence[str]) -> pl.Expr:
    for pattern in patterns:
        text = text.str.replace_all(pattern, " ")
    return text
