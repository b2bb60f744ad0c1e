"""The second segment of encoders that embed whether a token is of the first text or of the second, such as BERT.

A chat template writes both texts, so the tokenizer sees one; its encoding of pairs says what the second one gets.
"""

from dataclasses import replace
from typing import Any

from transformers import PretrainedConfig

from pluralbench_local.conversations import Template
from pluralbench_local.errors import LocalError

QUESTION, RESPONSE = "origami", "drumming"


def with_segments(template: Template, config: PretrainedConfig) -> Template:
    """Return the template with the separator before the response, if the model embeds segments and it writes two.

    Raises `LocalError` if the tokenizer encodes pairs otherwise than as two segments, the second after a separator.
    """
    tokenizer: Any = template.tokenizer
    separator = tokenizer.sep_token_id
    if getattr(config.get_text_config(), "type_vocab_size", 0) < 2 or separator is None or not tokenizer.chat_template:
        return template
    text = template.conversation([{"role": "user", "content": QUESTION}], RESPONSE)
    before, _, after = text.rpartition(RESPONSE)
    if str(tokenizer.sep_token) not in before.rpartition(QUESTION)[2]:
        return template  # one segment, all of whose tokens have type 0
    [end] = template.encode([after])
    template = replace(template, separator=(separator, list(end).count(separator)))
    pair = tokenizer(QUESTION, RESPONSE, verbose=False)
    types = pair.get("token_type_ids")
    if types is None:
        return replace(template, separator=None)
    second = replace(template, separator=(separator, 1)).second_segment(pair["input_ids"])
    if second is None or types != [0] * second + [1] * (len(types) - second):
        raise LocalError(
            "The chat template writes two segments, which this tokenizer encodes in an unknown way; give one that "
            "writes one segment as `chat_template=...`."
        )
    return template
