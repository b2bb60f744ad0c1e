"""Any endpoint that speaks OpenAI's chat protocol."""

from collections.abc import Collection
from typing import Any, Self, cast

from pluralbench_calls.backends.completions import LONGEST_MESSAGE, Rejection, adapted, body_without, said_by
from pluralbench_calls.backends.endpoint import MAX_ANSWER_BYTES, Endpoint
from pluralbench_calls.errors import ConnectionFailed, NotServed
from pluralbench_calls.records import TOO_LONG, Answer, Outcome, Request


class OpenAIChat:
    """Chat completions from `base_url`, with the client's own retries (429, 5xx, time-outs; Retry-After honoured).

    A parameter that a model refuses (see `INSTEAD`) is sent as the model takes it or left out, from then on for as long
    as this object lives; the answer says so in `adapted`, and its key stays that of the request.

    api_key_env: the environment variable that holds the key; None sends no key, for servers that want none.
    timeout: seconds for one try, to the last byte of the answer. max_answer_bytes: of an answer's body as it is sent,
    decompressed; a longer one is not read to its end, and is an answer without text of outcome "length".
    max_retries: further tries; a server that has never answered gets one more connection at most.
    """

    concurrency: int | None = None

    def __init__(
        self,
        base_url: str,
        *,
        api_key_env: str | None = None,
        timeout: float = 120.0,
        max_retries: int = 6,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._endpoint = Endpoint(
            base_url,
            api_key_env=api_key_env,
            timeout=timeout,
            max_retries=max_retries,
            max_answer_bytes=max_answer_bytes,
        )
        self._refused: dict[str, set[str]] = {}  # by model, the parameters that it refuses

    async def __aenter__(self) -> Self:
        """Open the connections. Raises `AccessDenied` when the environment holds no key."""
        await self._endpoint.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self._endpoint.close()

    async def send(self, request: Request) -> Answer:
        """One chat completion. A request that the server rejects (400, 413, 422) is an answer of outcome "error"."""
        refused = self._refused.setdefault(request.model, set())
        while True:
            before = set(refused)  # another request may learn more while this one is out
            try:
                return await self._complete(request, before)
            except _Refusal as refusal:
                refused.add(refusal.parameter)

    async def _complete(self, request: Request, refused: Collection[str]) -> Answer:
        """Send the request without what the model refuses. Raises `_Refusal` when it refuses one thing more."""
        import openai  # noqa: PLC0415 - a second that a command's --help saves

        from pluralbench_calls.backends.bounded import AnswerTooLong  # noqa: PLC0415

        body = body_without(request, refused)
        messages = cast("Any", body.pop("messages"))
        try:
            completion = await self._endpoint.client.chat.completions.create(
                model=request.model,
                messages=messages,
                # As an extra body, fields that only this server knows go out too.
                extra_body=body,
                extra_headers=self._endpoint.headers,
            )
        except AnswerTooLong:
            return self._recorded(request, "length", "", finish_reason=TOO_LONG, adapted=adapted(request, refused))
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            rejection = Rejection.of(error)
            parameter = rejection.refused
            if parameter in body:
                raise _Refusal(parameter) from None
            return self._rejected(request, rejection, refused)
        except openai.APIError as error:
            if isinstance(error, openai.APIStatusError) and error.status_code == 413:
                return self._rejected(request, Rejection.of(error), refused)
            raise self._endpoint.failure(error, f"has no model {request.model!r} at this base URL") from None
        except Exception as error:  # noqa: BLE001 - several libraries read what came, each with errors of its own
            raise self._no_completion(str(error)) from None
        return self._answer(request, completion, adapted(request, refused))

    def _answer(self, request: Request, completion: Any, adapted: str) -> Answer:
        failed = getattr(completion, "error", None)
        if failed:
            shown = self._endpoint.line(failed)
            raise ConnectionFailed(f"{self._endpoint.host} sent an error as if it were an answer ({shown}).")
        said = said_by(completion)
        if said is None:
            raise self._no_completion(str(completion))
        return self._recorded(
            request,
            said.outcome,
            said.text,
            model=said.model,
            finish_reason=said.finish_reason,
            tokens=said.tokens,
            adapted=adapted,
        )

    def _recorded(self, request: Request, outcome: Outcome, text: str, **said: Any) -> Answer:
        return Answer.to(request, outcome, text, secrets=self._endpoint.secrets, **said)

    def _rejected(self, request: Request, rejection: Rejection, refused: Collection[str]) -> Answer:
        if rejection.of_the_key:
            raise self._endpoint.denied(self._endpoint.line(rejection.sentence)) from None
        sentence = self._endpoint.line(rejection.sentence, LONGEST_MESSAGE)
        if rejection.of_the_schema(request):
            said = self._endpoint.line(sentence)
            raise NotServed(
                f"{self._endpoint.host} takes no JSON schema ({said}); set `structured_output` of the model to false."
            ) from None
        outcome, reason = rejection.recorded_as()
        return self._recorded(request, outcome, sentence, finish_reason=reason, adapted=adapted(request, refused))

    def _no_completion(self, shown: str) -> ConnectionFailed:
        shown = self._endpoint.line(shown, 120)
        return ConnectionFailed(
            f"{self._endpoint.host} sent something that is no chat completion ({shown}); is the URL right?"
        )


class _Refusal(Exception):
    """The model refuses this parameter of a request, and takes another in its place or none."""

    def __init__(self, parameter: str) -> None:
        super().__init__(parameter)
        self.parameter = parameter
