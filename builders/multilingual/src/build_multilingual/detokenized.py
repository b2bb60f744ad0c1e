"""Convert tokenized translations to running text.

A machine translation and its post-edit get the same format, so that no scorer can distinguish them by spaces, quotation
marks or, in Chinese, the width of punctuation: MLQE-PE's machine translations end with "." in 4 of 10 sentences, their
post-edits hardly ever.
"""

import re

CHINESE = {"zh", "zho", "cmn", "yue"}
NORMALIZED = str.maketrans(dict.fromkeys("“”„‟«»＂", '"') | dict.fromkeys("‘’‚‛＇", "'") | {"＆": "&", "＃": "#"})
WIDE = r"·\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
IS_WIDE = re.compile(f"[{WIDE}]")
FULL_WIDTH = dict(zip(",;:!?", "，；：！？", strict=True))
HALF_WIDTH = {wide: narrow for narrow, wide in FULL_WIDTH.items()}
MARK = re.compile(f" ?([{''.join(FULL_WIDTH)}{''.join(HALF_WIDTH)}]) ?")


def detokenize(tokens: str, direction: str | None) -> str:
    """Convert tokens, separated by spaces, to running text of a direction such as `en-zh`."""
    target = (direction or "").partition("-")[2]
    tokens = tokens.translate(NORMALIZED)
    # A Chinese translation without a Chinese character was not translated.
    return _join_chinese(tokens) if target in CHINESE and HAN.search(tokens) else _join(tokens, target)


def _join(tokens: str, language: str) -> str:
    from sacremoses import MosesDetokenizer

    tokens = re.sub(r"(?<=\w) ' s\b", "'s", tokens)
    if tokens.count(" ' ") == 1:  # an apostrophe, which Moses would treat as a quotation mark
        tokens = re.sub(r"(?<=[sxz]) ' (?=\w)", "' ", tokens)
        tokens = re.sub(r"(?<=\w) ' (?=\w)", "'", tokens)
    return str(MosesDetokenizer(lang=language).detokenize(tokens.split())).strip()


def _join_chinese(tokens: str) -> str:
    """Join Chinese words without spaces and Latin words with spaces; use full-width punctuation next to Chinese.

    Chinese is tokenized with jieba, which keeps a space of the text as a token: one space means none, several mean one.
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
    """Return a punctuation mark in full width, unless Latin letters or digits are on both sides."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    if not before or not after or IS_WIDE.match(before) or IS_WIDE.match(after):
        return FULL_WIDTH.get(match[1], match[1])
    mark = HALF_WIDTH.get(match[1], match[1])
    tight = before.isdigit() and after.isdigit() and match[0] == mark
    return mark if tight else f"{mark} "
