"""Translate with NLLB-200 through transformers (the extra `nllb`), sentence by sentence; line breaks are kept.

The paper uses the model with 3.3 billion parameters; the authors' script defaults to the distilled one with 600
million. Decoding is greedy, as in the script.
"""

from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from typing import Any, Self

from pluralbench_calls import Answer, Request
from pluralbench_calls.model_checks import check_model
from pluralbench_runs import Json, install_command, one_line, public_location
from pluralbench_schemas import ENGLISH, LANGUAGES, Language

from build_multilingual.errors import TranslatorError, UnsupportedLanguage
from build_multilingual.pieces import sentences
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import pack, request_text, translation_answer

MODEL = "facebook/nllb-200-3.3B"
MAX_TOKENS = 512  # of a sentence and of its translation
BATCH_SIZE = 16  # sentences


class Nllb(Translator):
    """NLLB model, loaded when first needed; see `Translator`."""

    provider = "transformers"
    longest = 100_000
    concurrency: int | None = 1

    def __init__(self, table: TranslatorTable, connection: ConnectionTable) -> None:
        del connection
        if table.glossary:
            raise TranslatorError("NLLB has no glossaries; remove it.")
        self._location = table.model or MODEL
        self.model = public_location(self._location)
        self._network: Any = None

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Return the body of a request, with FLORES-200 codes."""
        return {"text": text, "source": LANGUAGES[ENGLISH].nllb, "target": language.nllb, "max_tokens": MAX_TOKENS}

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Pack few texts into a message, to show progress and lose little in an interruption."""
        return pack(requests, lambda request: request.body["target"], strings=8, code_points=8_000)

    async def __aenter__(self) -> Self:
        """Load the model once; raise `TranslatorError` if it or its libraries cannot be loaded."""
        if self._network is None:
            if not all(map(find_spec, ("torch", "transformers"))):
                raise TranslatorError(f"NLLB needs an extra: {install_command('build-multilingual', 'nllb')}.")
            try:
                check_model(self._location, TranslatorError)  # first, since importing the libraries takes seconds
                import torch
                from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

                self._tokenizer = AutoTokenizer.from_pretrained(
                    self._location, src_lang=LANGUAGES[ENGLISH].nllb, trust_remote_code=False
                )
                network = AutoModelForSeq2SeqLM.from_pretrained(self._location, trust_remote_code=False)
            except TranslatorError:
                raise
            except Exception as error:  # noqa: BLE001 - several libraries read the files and raise their own errors
                raise TranslatorError(
                    f"The translation model {self._location} cannot be loaded: {one_line(error)}."
                ) from None
            self._network = network.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        return self

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Translate the sentences of all texts in batches, longest first, and join them."""
        target = str(requests[0].body["target"])
        token = self._tokenizer.convert_tokens_to_ids(target)
        if not isinstance(token, int) or token == self._tokenizer.unk_token_id:
            raise UnsupportedLanguage(f"The translation model {self._location} does not support {target}.")
        texts = [self._split(request_text(request)) for request in requests]
        unique = sorted({core for text in texts for core, _ in text if core}, key=lambda core: (-len(core), core))
        translations: dict[str, tuple[str, bool]] = {}
        for start in range(0, len(unique), BATCH_SIZE):
            batch = unique[start : start + BATCH_SIZE]
            translations |= dict(zip(batch, self._generate(batch, token), strict=True))
        answers = []
        for request, text in zip(requests, texts, strict=True):
            translated = "".join((translations[core][0] if core else "") + space for core, space in text)
            complete = all(translations[core][1] for core, _ in text if core)
            answers.append(translation_answer(request, translated, complete=complete))
        yield answers

    def _split(self, text: str) -> list[tuple[str, str]]:
        """Split a text into sentences and the white space after each; sentences over the model's limit are halved."""
        parts: list[tuple[str, str]] = []
        for sentence in sentences(text):
            start = len(sentence) - len(sentence.lstrip())
            core = sentence.strip()
            if start:
                parts.append(("", sentence[:start] if core else sentence))
            if core:
                *halves, last = self._halve(core)
                parts += [(half, " ") for half in halves]
                parts.append((last, sentence[start + len(core) :]))
        return parts

    def _halve(self, sentence: str) -> list[str]:
        if len(self._tokenizer(sentence)["input_ids"]) <= MAX_TOKENS:
            return [sentence]
        words = sentence.split(" ")
        if len(words) == 1:
            middle = len(sentence) // 2
            return [*self._halve(sentence[:middle]), *self._halve(sentence[middle:])]
        middle = len(words) // 2
        return [*self._halve(" ".join(words[:middle])), *self._halve(" ".join(words[middle:]))]

    def _generate(self, batch: Sequence[str], token: int) -> list[tuple[str, bool]]:
        """Return the translations, and whether each reached its end."""
        import torch

        inputs = self._tokenizer(list(batch), return_tensors="pt", padding=True).to(self._network.device)
        with torch.inference_mode():
            generated = self._network.generate(
                **inputs, forced_bos_token_id=token, max_new_tokens=MAX_TOKENS, num_beams=1, do_sample=False
            )
        end = self._tokenizer.eos_token_id
        # The first token is the decoder's start, which is also the end token in these models.
        texts = self._tokenizer.batch_decode(generated, skip_special_tokens=True)
        return [(text.strip(), end in ids[1:].tolist()) for text, ids in zip(texts, generated, strict=True)]
