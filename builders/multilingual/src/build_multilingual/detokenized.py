"""Tokenised translations as running text.

A machine translation and its post-edit are written the same way, so that no scorer can tell them apart by spaces,
quotation marks or, in Chinese, by the width of punctuation: MLQE-PE's machine translations end with "." in 4 of 10
sentences, and their post-edits hardly ever do.
"""

import re

CHINESE = {"zh", "zho", "cmn", "yue"}
SAME = str.maketrans(dict.fromkeys("“”„‟«»＂", '"') | dict.fromkeys("‘’‚‛＇", "'") | {"＆": "&", "＃": "#"})
WIDE = r"·\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
IS_WIDE = re.compile(f"[{WIDE}]")
FULL_WIDTH = dict(zip(",;:!?", "，；：！？", strict=True))
HALF_WIDTH = {wide: narrow for narrow, wide in FULL_WIDTH.items()}
MARK = re.compile(f" ?([{''.join(FULL_WIDTH)}{''.join(HALF_WIDTH)}]) ?")


def detokenize(tokens: str, direction: str | None) -> str:
    """A tokenised translation of a direction such as `en-zh` as running text."""
    target = (direction or "").partition("-")[2]
    tokens = tokens.translate(SAME)
    # What stands in a Chinese translation without a Chinese character was not translated.
    return _joined_chinese(tokens) if target in CHINESE and HAN.search(tokens) else _joined(tokens, target)


def _joined(tokens: str, language: str) -> str:
    from sacremoses import MosesDetokenizer  # noqa: PLC0415 - half a second that other sources save

    tokens = re.sub(r"(?<=\w) ' s\b", "'s", tokens)
    if tokens.count(" ' ") == 1:  # an apostrophe, which Moses would take for a quotation mark
        tokens = re.sub(r"(?<=[sxz]) ' (?=\w)", "' ", tokens)
        tokens = re.sub(r"(?<=\w) ' (?=\w)", "'", tokens)
    return str(MosesDetokenizer(lang=language).detokenize(tokens.split())).strip()


def _joined_chinese(tokens: str) -> str:
    """Words without spaces, spaces between Latin words, full-width punctuation beside Chinese.

    Chinese is tokenised with jieba, which keeps a space of the text as a token: so one space is none, several are one.
    """
    text = re.sub(r"(?<![A-Za-z0-9 ]) (?! )|(?<! ) (?![A-Za-z0-9 ])", "", tokens)
    text = re.sub(r" {2,}", " ", text)
    text = re.sub(r"(?:[-–—] ?){2,}|—", "——", text)
    text = MARK.sub(_mark, text)
    text = text.replace("(", "（").replace(")", "）")
    text = re.sub(r"(?<!\.)\.(?=[\"'）》]*$)", "。", text)
    text = re.sub(rf"(?<=[{WIDE}])\.(?!\.)", "。", text)
    return re.sub(rf"(?<=[{WIDE}]) +| +(?=[{WIDE}])", "", text).strip()


def _mark(match: re.Match[str]) -> str:
    """A mark in full width, unless Latin letters or digits stand on both of its sides."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    if not before or not after or IS_WIDE.match(before) or IS_WIDE.match(after):
        return FULL_WIDTH.get(match[1], match[1])
    mark = HALF_WIDTH.get(match[1], match[1])
    tight = before.isdigit() and after.isdigit() and match[0] == mark
    return mark if tight else f"{mark} "
