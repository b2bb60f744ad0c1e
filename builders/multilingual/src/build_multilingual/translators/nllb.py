"""NLLB-200 through transformers (the extra `nllb`), sentence by sentence; line breaks are kept.

The paper translates with the model of 3.3 billion parameters; the authors' script defaults to the distilled one of 600
million. Decoding is greedy, as there.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from pluralbench_calls import Answer, Request
from pluralbench_runs import Json, install_command, one_line, public_location
from pluralbench_schemas import ENGLISH, LANGUAGES, Language

from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.pieces import sentences
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import answer_to, pack, text_of

MODEL = "facebook/nllb-200-3.3B"
MAX_TOKENS = 512  # of a sentence and of its translation
SENTENCES_AT_ONCE = 16


def translator(table: TranslatorTable, connection: ConnectionTable) -> "Nllb":
    """The translator of a recipe. Raises `TranslatorError` for a glossary, which it has not."""
    del connection
    if table.glossary:
        raise TranslatorError("NLLB has no glossaries; leave it out.")
    return Nllb(table.model or MODEL)


class Nllb(Translator):
    """The model, loaded when first needed; see `Translator`."""

    provider = "transformers"
    longest = 100_000
    concurrency: int | None = 1

    def __init__(self, place: str) -> None:
        self.model, self._place = public_location(place), place
        self._network: Any = None

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """NLLB calls languages by their FLORES-200 codes."""
        return {"text": text, "source": LANGUAGES[ENGLISH].nllb, "target": language.nllb, "max_tokens": MAX_TOKENS}

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """A few texts at a time, so that progress is seen and little is lost by an interruption."""
        return pack(requests, lambda request: request.body["target"], strings=8, code_points=8_000)

    async def __aenter__(self) -> Self:
        """Load the model, once. Raises `TranslatorError` naming the install command."""
        if self._network is None:
            try:
                import torch  # noqa: PLC0415 - an extra
                from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # noqa: PLC0415 - an extra
            except ImportError:
                raise TranslatorError(
                    f"NLLB needs an extra: {install_command('build-multilingual', 'nllb')}."
                ) from None
            try:
                self._tokenizer = AutoTokenizer.from_pretrained(self._place, src_lang=LANGUAGES[ENGLISH].nllb)
                network = AutoModelForSeq2SeqLM.from_pretrained(self._place)
            except Exception as error:  # noqa: BLE001 - several libraries read the files, each with errors of its own
                raise TranslatorError(
                    f"The translation model {self._place} cannot be loaded: {one_line(error)}."
                ) from None
            self._network = network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        return self

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Translate the sentences of all texts in batches, longest first, and put the texts together again."""
        target = str(requests[0].body["target"])
        token = self._tokenizer.convert_tokens_to_ids(target)
        if not isinstance(token, int) or token == self._tokenizer.unk_token_id:
            raise UnsupportedLanguage(f"The translation model {self._place} does not know the language {target}.")
        texts = [self._parts(text_of(request)) for request in requests]
        unique = sorted({core for text in texts for core, _ in text if core}, key=lambda core: (-len(core), core))
        known: dict[str, tuple[str, bool]] = {}
        for start in range(0, len(unique), SENTENCES_AT_ONCE):
            batch = unique[start : start + SENTENCES_AT_ONCE]
            known |= dict(zip(batch, self._generate(batch, token), strict=True))
        answers = []
        for request, text in zip(requests, texts, strict=True):
            translated = "".join((known[core][0] if core else "") + space for core, space in text)
            answers.append(answer_to(request, translated, whole=all(known[core][1] for core, _ in text if core)))
        yield answers

    def _parts(self, text: str) -> list[tuple[str, str]]:
        """The sentences of a text, each with the white space after it; what is over the model's limit is halved."""
        parts: list[tuple[str, str]] = []
        for sentence in sentences(text):
            start = len(sentence) - len(sentence.lstrip())
            core = sentence.strip()
            if start:
                parts.append(("", sentence[:start] if core else sentence))
            if core:
                *halves, last = self._halved(core)
                parts += [(half, " ") for half in halves]
                parts.append((last, sentence[start + len(core) :]))
        return parts

    def _halved(self, sentence: str) -> list[str]:
        if len(self._tokenizer(sentence)["input_ids"]) <= MAX_TOKENS:
            return [sentence]
        words = sentence.split(" ")
        if len(words) == 1:
            middle = len(sentence) // 2
            return [*self._halved(sentence[:middle]), *self._halved(sentence[middle:])]
        middle = len(words) // 2
        return [*self._halved(" ".join(words[:middle])), *self._halved(" ".join(words[middle:]))]

    def _generate(self, batch: Sequence[str], token: int) -> list[tuple[str, bool]]:
        """Translations, and whether each came to its end."""
        import torch  # noqa: PLC0415 - an extra

        inputs = self._tokenizer(list(batch), return_tensors="pt", padding=True).to(self._network.device)
        with torch.inference_mode():
            made = self._network.generate(
                **inputs, forced_bos_token_id=token, max_new_tokens=MAX_TOKENS, num_beams=1, do_sample=False
            )
        end = self._tokenizer.eos_token_id
        # The first token is the decoder's start, which in this family is the end token too.
        return [
            (text.strip(), end in ids[1:].tolist())
            for text, ids in zip(self._tokenizer.batch_decode(made, skip_special_tokens=True), made, strict=True)
        ]
