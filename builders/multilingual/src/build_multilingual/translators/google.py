"""Google Cloud Translation v3 (Advanced), through its own client over gRPC.

Texts go as plain text: in HTML, its default, white space would be lost. Credentials are found as the client finds them
(GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, the machine's service account).
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from pluralbench_calls import AccessDenied, Answer, CallsError, ConnectionFailed, ModelNotServed, Request
from pluralbench_runs import Json, one_line
from pluralbench_runs.secrets import redact
from pluralbench_schemas import Language

from build_multilingual.errors import TranslatorError
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import answer_to, pack, text_of

PROVIDER = "translate.googleapis.com"
MODEL = "general/nmt"
# https://cloud.google.com/translate/quotas, of one request.
STRINGS, CODE_POINTS = 1024, 30_000
TIMEOUT = 60.0  # seconds of one try, to its last byte
MOST_BYTES = 4 * 2**20  # of a message that comes back; 30,000 characters are 120 KB at most
CHANNEL = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", MOST_BYTES)]
TOO_LONG = "message larger than max"  # what gRPC says of a longer one, with the status of a spent quota
REFUSED_IN_A_ROW = 8  # single texts refused before it is the request, not the text, that is taken to be wrong
# What gRPC says, as if the server were not there, when the credentials give it no token.
TOKENLESS = "Getting metadata from plugin failed with error"
HOST = re.compile(r"[\w.:\[\]-]+")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def translator(table: TranslatorTable, connection: ConnectionTable) -> "GoogleTranslator":
    """The translator of a recipe."""
    return GoogleTranslator(table, connection)


class GoogleTranslator(Translator):
    """Messages of texts in one language; see `Translator`."""

    provider = PROVIDER
    longest = CODE_POINTS

    def __init__(self, table: TranslatorTable, connection: ConnectionTable) -> None:
        self.model = table.model or MODEL
        self._glossary, self._connection = table.glossary, connection
        self._refused = 0

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Plain text from English; the glossary is part of what is asked."""
        asked: dict[str, Json] = {"text": text, "source": "en", "target": language.google, "mime_type": "text/plain"}
        return asked | ({"glossary": self._glossary} if self._glossary else {})

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Messages within Google's limits, of one target language each."""
        return pack(
            requests,
            lambda request: (request.model, request.body["target"], request.body.get("glossary")),
            strings=STRINGS,
            code_points=CODE_POINTS,
        )

    async def __aenter__(self) -> Self:
        """Open the channel. Raises `TranslatorError` for no project and `AccessDenied` for no credentials."""
        import grpc  # noqa: PLC0415 - a second that a replay saves
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - the same
        from google.cloud import translate_v3  # noqa: PLC0415 - the same

        if not self._connection.project:
            raise TranslatorError("Google Cloud Translation wants a project to bill: give --project.")
        transport: Any = translate_v3.TranslationServiceAsyncClient.get_transport_class("grpc_asyncio")
        endpoint = self._connection.endpoint
        if endpoint:
            _check(endpoint)
        try:
            if endpoint and endpoint.startswith("http://"):
                channel = grpc.aio.insecure_channel(endpoint.removeprefix("http://"), options=CHANNEL)
                self._transport = transport(channel=channel)
            else:
                self._transport = transport(host=endpoint or PROVIDER, channel=_bounded(transport.create_channel))
            self._client = translate_v3.TranslationServiceAsyncClient(transport=self._transport)
        except GoogleAuthError as error:
            raise AccessDenied(
                f"Google Cloud has no credentials here ({_line(error)}); run `gcloud auth application-default login` "
                "or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account."
            ) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the channel."""
        await self._transport.close()

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """One message. Where the server refuses it, its halves, until the text that it refuses stands alone.

        Raises `ConnectionFailed` when the server keeps failing or answers another number of texts than were sent.
        """
        from google.api_core import exceptions  # noqa: PLC0415 - the same
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        try:
            yield await self._translate(requests)
        except exceptions.InvalidArgument as error:
            if "language" in error.message.lower():  # of all texts alike
                raise ModelNotServed(f"Google Cloud Translation refuses what is asked ({_line(error)}).") from None
            if len(requests) > 1:
                half = len(requests) // 2
                for part in (requests[:half], requests[half:]):
                    async for answers in self.send_packed(part):
                        yield answers
                return
            self._refused += 1
            if self._refused >= REFUSED_IN_A_ROW:
                raise ModelNotServed(f"Google Cloud Translation refuses what is asked ({_line(error)}).") from None
            yield [Answer.to(requests[0], "error", _line(error), finish_reason="INVALID_ARGUMENT")]
        except (exceptions.Unauthenticated, exceptions.PermissionDenied, GoogleAuthError) as error:
            raise AccessDenied(f"Google Cloud Translation does not accept the credentials ({_line(error)}).") from None
        except exceptions.NotFound as error:
            raise ModelNotServed(f"Google Cloud Translation does not know what is asked ({_line(error)}).") from None
        except (exceptions.GoogleAPIError, OSError) as error:
            raise self._failure(error) from None

    async def _translate(self, requests: Sequence[Request]) -> list[Answer]:
        from google.api_core import exceptions, retry_async  # noqa: PLC0415 - the same
        from google.cloud import translate_v3  # noqa: PLC0415

        body: dict[str, Any] = dict(requests[0].body)
        parent = f"projects/{self._connection.project}/locations/{self._connection.location}"
        glossary = body.get("glossary")
        message = translate_v3.TranslateTextRequest(
            parent=parent,
            contents=[text_of(request) for request in requests],
            mime_type=body["mime_type"],
            source_language_code=body["source"],
            target_language_code=body["target"],
            model=f"{parent}/models/{self.model}",
            glossary_config=translate_v3.TranslateTextGlossaryConfig(glossary=glossary) if glossary else None,
        )
        passing = retry_async.if_exception_type(
            exceptions.ServiceUnavailable,
            exceptions.ResourceExhausted,
            exceptions.DeadlineExceeded,
            exceptions.InternalServerError,
            exceptions.Aborted,
        )
        # The client has no retry of its own for this method.
        again = retry_async.AsyncRetry(
            predicate=lambda error: passing(error) and not any(words in str(error) for words in (TOKENLESS, TOO_LONG)),
            initial=0.5,
            maximum=60.0,
            multiplier=2.0,
            timeout=self._connection.retry_seconds,
        )
        response = await self._client.translate_text(message, retry=again, timeout=TIMEOUT)
        found = response.glossary_translations if glossary else response.translations
        if len(found) != len(requests):
            raise ConnectionFailed(
                f"Google Cloud Translation answered {len(found)} texts for {len(requests)} sent, so which is which "
                "cannot be told, and none of them is recorded."
            )
        self._refused = 0
        return [
            # The project is the builder's own, and no part of what translated.
            answer_to(
                request, translation.translated_text, model=translation.model.rpartition("/models/")[2] or self.model
            )
            for request, translation in zip(requests, found, strict=True)
        ]

    def _failure(self, error: Exception) -> CallsError:
        from google.api_core import exceptions  # noqa: PLC0415 - the same

        cause = error.cause if isinstance(error, exceptions.RetryError) and error.cause else error
        if TOKENLESS in str(cause):
            why = _line(cause).partition(TOKENLESS)[2].strip(": ")
            return AccessDenied(
                f"Google Cloud's credentials cannot be used ({why}); run `gcloud auth application-default login` again."
            )
        if TOO_LONG in str(cause):
            said = f"sent more than {MOST_BYTES:,} bytes for one message, which are not read"
        elif isinstance(cause, exceptions.ResourceExhausted):
            said = f"keeps refusing for its quota ({_line(cause)})"
        else:
            said = f"keeps failing ({_line(cause)})"
        return ConnectionFailed(f"Google Cloud Translation {said}.")


def _bounded(create: Callable[..., Any]) -> Callable[..., Any]:
    """The maker of a channel that takes no endless message, as the client's own does."""
    return lambda *place, **options: create(*place, **{**options, "options": CHANNEL})


def _check(endpoint: str) -> None:
    """Raise `TranslatorError` for what is no host; what it says does not repeat it, since it may hold a secret."""
    plain = endpoint.startswith("http://")
    try:
        address = urlsplit(endpoint if plain else f"//{endpoint}")
        well_formed = bool(HOST.fullmatch(address.netloc)) and bool(address.hostname) and address.port != 0
    except ValueError:
        well_formed = False
    if not well_formed or address.path.strip("/") or address.query or address.fragment:
        raise TranslatorError(
            "The endpoint is neither a host such as translate-eu.googleapis.com nor http://127.0.0.1:PORT."
        )
    if plain and address.hostname not in LOOPBACK:
        raise TranslatorError(
            f"http://{address.hostname} would send texts unencrypted; http:// is for a server on this machine alone."
        )


def _line(error: BaseException) -> str:
    # Errors of google.auth carry their cause beside the message.
    words = [part for part in error.args if isinstance(part, str)]
    message = getattr(error, "message", None) or (words[0] if words else type(error).__name__)
    return one_line(redact(str(message)))
