"""Google Cloud Translation v3 on loopback, made of the client's own messages, with a translator that a test chooses."""

import math
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.cloud import translate_v3

STRINGS, CODE_POINTS = 1024, 30_000
SERVICE = "google.cloud.translation.v3.TranslationService"
PROJECT_NUMBER = "123456789"  # the real service names the model by the number of the project, not by its name

Translate = Callable[[Sequence[str], str, str], Sequence[str]]
"""From texts and the codes of their language and the wanted one to the translations."""


@dataclass(frozen=True)
class Fault:
    """What a call is refused with."""

    code: grpc.StatusCode
    message: str


Faults = Callable[[Any, int], Fault | None]
"""From a `TranslateTextRequest` and its number (from 0) to a fault, or None where it is to be answered."""


@dataclass
class TranslationServer:
    """endpoint: for the client. requests: each as it came in. answered: those of them that were not refused.

    metadata: the headers of each request. faults: the codes that were sent instead of an answer.
    """

    endpoint: str = ""
    requests: list[Any] = field(default_factory=list)
    answered: list[Any] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)
    faults: set[grpc.StatusCode] = field(default_factory=set)

    def texts(self, target: str | None = None) -> list[str]:
        """Every text that was translated (into `target`), once for each time that it was."""
        return [
            text
            for request in self.answered
            if target in {None, request.target_language_code}
            for text in request.contents
        ]


UNAVAILABLE = Fault(grpc.StatusCode.UNAVAILABLE, "The service is currently unavailable.")
QUOTA = Fault(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    "Quota exceeded for quota metric 'v3 and v3beta general model characters' and limit 'v3 and v3beta general model "
    "characters per minute per project' of service 'translate.googleapis.com'.",
)
BAD_TEXT = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Request contains an invalid argument.")
BAD_LANGUAGE = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Target language: xx is not supported.")


@contextmanager
def serve(
    translate: Translate, faults: Faults | None = None, *, credentials: grpc.ServerCredentials | None = None
) -> Iterator[TranslationServer]:
    """Serve `translate` on a free loopback port, with TLS where there are `credentials`."""
    server = TranslationServer()
    lock = threading.Lock()

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        with lock:
            number = len(server.requests)
            server.requests.append(request)
            server.metadata.append({key: str(value) for key, value in context.invocation_metadata()})
        fault = _over_limits(request) or (faults(request, number) if faults else None)
        if fault is not None:
            server.faults.add(fault.code)
            context.abort(fault.code, fault.message)
        source, target = request.source_language_code, request.target_language_code
        texts = translate(list(request.contents), source, target)
        with lock:
            server.answered.append(request)
        model = request.model.replace(request.parent.split("/")[1], PROJECT_NUMBER, 1)
        plain = [translate_v3.Translation(translated_text=text, model=model) for text in texts]
        if not request.glossary_config.glossary:
            return translate_v3.TranslateTextResponse(translations=plain)
        glossed = [
            translate_v3.Translation(
                translated_text=text.replace("casa", "CASA"), model=model, glossary_config=request.glossary_config
            )
            for text in texts
        ]
        return translate_v3.TranslateTextResponse(translations=plain, glossary_translations=glossed)

    method = grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=translate_v3.TranslateTextRequest.deserialize,
        response_serializer=translate_v3.TranslateTextResponse.serialize,
    )
    with ThreadPoolExecutor(8) as threads:
        running = grpc.server(threads, options=[("grpc.so_reuseport", 0)])
        running.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"TranslateText": method}),))
        if credentials is None:
            server.endpoint = f"http://127.0.0.1:{running.add_insecure_port('127.0.0.1:0')}"
        else:
            server.endpoint = f"localhost:{running.add_secure_port('127.0.0.1:0', credentials)}"
        running.start()
        try:
            yield server
        finally:
            running.stop(grace=None).wait()


def in_order(*script: Fault | None) -> Faults:
    """The faults of the first calls, in order; None lets a call through, and so does the end."""
    return lambda _, number: script[number] if number < len(script) else None


def refusing(text: str) -> Faults:
    """Refuse every request that has this text."""
    return lambda request, _: BAD_TEXT if text in request.contents else None


def least_messages(texts: Sequence[str]) -> int:
    """The fewest messages within Google's limits that these texts of one language could be sent in."""
    return max(math.ceil(len(texts) / STRINGS), math.ceil(sum(map(len, texts)) / CODE_POINTS))


def _over_limits(request: Any) -> Fault | None:
    if len(request.contents) > STRINGS:
        return Fault(grpc.StatusCode.INVALID_ARGUMENT, f"Too many text segments: the maximum is {STRINGS}.")
    if sum(map(len, request.contents)) > CODE_POINTS:
        return Fault(grpc.StatusCode.INVALID_ARGUMENT, "Text is too long.")
    return None


# ---- Translators

WORDS = {
    "es": "la casa para pero cuando porque también muchos nosotros ciudad mañana tiempo siempre puede hacer años "
    "mejor después entonces algunos trabajo gente mundo donde nuestra",
    "de": "das Haus für aber wenn weil auch viele wir Stadt morgen Zeit immer kann machen Jahre besser nachher dann "
    "einige Arbeit Leute Welt wo unsere",
    "hi": "पुस्तकालय परिवार समाचार जानकारी अध्यापक लेकिन क्योंकि हमेशा अखबार सप्ताह बरसात शहर नगरपालिका समय करना सरकार "
    "बेहतर मतलब अचानक दरवाज़ा बचपन पर्वत हवाईजहाज़ रसोईघर",
}
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def by_words(texts: Sequence[str], source: str, target: str) -> list[str]:
    """Each word as a word of the language (always the same one), the rest as it is: reads as the language, means
    nothing."""
    assert source == "en"
    words = WORDS[target].split()
    return [WORD.sub(lambda word: words[zlib.crc32(word[0].encode()) % len(words)], text) for text in texts]
