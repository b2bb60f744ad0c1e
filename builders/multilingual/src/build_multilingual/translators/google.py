"""Translate with Google Cloud Translation v3 (Advanced), through its own client over gRPC.

Texts are sent as plain text: HTML, the default, would lose white space. The client looks up the credentials
(GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, the machine's service account).
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from pluralbench_calls import Answer, CallsError, Request
from pluralbench_runs import Json, one_line
from pluralbench_runs.secrets import redact
from pluralbench_schemas import Language

from build_multilingual.errors import TranslatorError
from build_multilingual.recipe import ConnectionTable, TranslatorTable
from build_multilingual.translators import Translator
from build_multilingual.translators._packing import pack, request_text, translation_answer

PROVIDER = "translate.googleapis.com"
MODEL = "general/nmt"
# Limits of one request (https://cloud.google.com/translate/quotas).
STRINGS, CODE_POINTS = 1024, 30_000
TIMEOUT = 60.0  # seconds for one attempt, until the last byte
MAX_REFUSALS = 8  # consecutive refused single texts, after which the request itself counts as wrong
# gRPC's message, with the status of an unavailable server, if the credentials give no token.
NO_TOKEN = "Getting metadata from plugin failed with error"  # noqa: S105 - a message


class GoogleTranslator(Translator):
    """Translates messages of texts in one language; see `Translator`."""

    provider = PROVIDER
    longest = CODE_POINTS

    def __init__(self, table: TranslatorTable, connection: ConnectionTable) -> None:
        self.model = table.model or MODEL
        self._glossary, self._connection = table.glossary, connection
        self._refused = 0

    def body(self, text: str, language: Language) -> dict[str, Json]:
        """Return the body of a request: plain text from English, and the glossary."""
        body: dict[str, Json] = {"text": text, "source": "en", "target": language.google, "mime_type": "text/plain"}
        return body | ({"glossary": self._glossary} if self._glossary else {})

    def pack(self, requests: Sequence[Request]) -> list[list[Request]]:
        """Pack texts of one target language into messages within Google's limits."""
        return pack(
            requests,
            lambda request: (request.model, request.body["target"], request.body.get("glossary")),
            strings=STRINGS,
            code_points=CODE_POINTS,
        )

    async def __aenter__(self) -> Self:
        """Open the channel.

        Raises:
            TranslatorError: The project is missing.
            CallsError: There are no credentials.
        """
        import grpc
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import translate_v3

        if not self._connection.project:
            raise TranslatorError("Google Cloud Translation needs a project to bill; set `connection.project=...`.")
        transport: Any = translate_v3.TranslationServiceAsyncClient.get_transport_class("grpc_asyncio")
        endpoint = self._connection.endpoint
        try:
            if endpoint and endpoint.startswith("http://"):
                channel = grpc.aio.insecure_channel(endpoint.removeprefix("http://"))
                self._transport = transport(channel=channel)
            else:
                self._transport = transport(host=endpoint or PROVIDER)
            self._client = translate_v3.TranslationServiceAsyncClient(transport=self._transport)
        except GoogleAuthError as error:
            raise CallsError(
                f"Google Cloud credentials are missing ({_message(error)}); run `gcloud auth application-default "
                "login` or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account."
            ) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the channel."""
        await self._transport.close()

    async def send_packed(self, requests: Sequence[Request]) -> AsyncIterator[list[Answer]]:
        """Send one message; if the server refuses it, send its halves until only the refused text is left out.

        Raises:
            CallsError: The server keeps failing, answers with a different number of texts, or refuses the credentials
                or the request itself.
        """
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        try:
            yield await self._translate(requests)
        except exceptions.InvalidArgument as error:
            concerns_all = "language" in error.message.lower()
            if len(requests) > 1 and not concerns_all:
                half = len(requests) // 2
                for part in (requests[:half], requests[half:]):
                    async for answers in self.send_packed(part):
                        yield answers
                return
            self._refused += 1
            if concerns_all or self._refused >= MAX_REFUSALS:
                raise CallsError(f"Google Cloud Translation refuses the request ({_message(error)}).") from None
            yield [Answer.to(requests[0], "error", _message(error), finish_reason="INVALID_ARGUMENT")]
        except (exceptions.GoogleAPIError, GoogleAuthError, OSError) as error:
            raise CallsError(
                f"Google Cloud Translation fails ({_message(error)}); check the project, its quota and the credentials "
                "(`gcloud auth application-default login`)."
            ) from None

    async def _translate(self, requests: Sequence[Request]) -> list[Answer]:
        from google.api_core import exceptions, retry_async
        from google.cloud import translate_v3

        body: dict[str, Any] = dict(requests[0].body)
        parent = f"projects/{self._connection.project}/locations/{self._connection.location}"
        glossary = body.get("glossary")
        message = translate_v3.TranslateTextRequest(
            parent=parent,
            contents=[request_text(request) for request in requests],
            mime_type=body["mime_type"],
            source_language_code=body["source"],
            target_language_code=body["target"],
            model=f"{parent}/models/{self.model}",
            glossary_config=translate_v3.TranslateTextGlossaryConfig(glossary=glossary) if glossary else None,
        )
        kinds = ("ServiceUnavailable", "ResourceExhausted", "DeadlineExceeded", "InternalServerError", "Aborted")
        transient = retry_async.if_exception_type(*(getattr(exceptions, kind) for kind in kinds))
        # The client has no retry of its own for this method.
        retry = retry_async.AsyncRetry(
            lambda error: transient(error) and NO_TOKEN not in str(error),
            initial=0.5,
            timeout=self._connection.retry_seconds,
        )
        response = await self._client.translate_text(message, retry=retry, timeout=TIMEOUT)
        translations = response.glossary_translations if glossary else response.translations
        if len(translations) != len(requests):
            raise CallsError(
                f"Google Cloud Translation answered {len(translations)} texts for {len(requests)} sent; none of them "
                "is recorded."
            )
        self._refused = 0
        return [
            # The name without the project, which is the user's own.
            translation_answer(
                request, translation.translated_text, model=translation.model.rpartition("/models/")[2] or self.model
            )
            for request, translation in zip(requests, translations, strict=True)
        ]


def _message(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error  # why retries ended
    return one_line(redact(str(getattr(cause, "message", None) or cause)))
