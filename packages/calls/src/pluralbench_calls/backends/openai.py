"""Any endpoint that speaks OpenAI's chat protocol."""

from collections.abc import Collection
from typing import Any, cast

from pluralbench_calls.backends.completions import LONGER, LONGEST_MESSAGE, Rejection, drop_parameters, parse_completion
from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.errors import ConnectionFailed, ModelNotServed
from pluralbench_calls.records import Answer, Request


class OpenAIChat(Endpoint):
    """Chat completions from `base_url`, with the client's own retries (429, 5xx, time-outs; Retry-After honoured).

    A parameter that a model refuses (see `INSTEAD`) is sent as the model takes it or left out, from then on for as long
    as this object lives; the answer says so in `adapted`, and its key stays that of the request.
    """

    async def send(self, request: Request) -> Answer:
        """One chat completion. A request that the server rejects (400, 413, 422) is an answer of outcome "error"."""
        import openai  # noqa: PLC0415 - a second that a command's --help saves

        from pluralbench_calls.backends.bounded import AnswerTooLong  # noqa: PLC0415

        learned = self._refused.setdefault(request.model, set())
        refused = frozenset(learned)  # another request may learn more while this one is out
        body = drop_parameters(request, refused)
        messages = cast("Any", body.pop("messages"))
        try:
            completion = await self.client.chat.completions.create(
                model=request.model,
                messages=messages,
                # As an extra body, fields that only this server knows go out too.
                extra_body=body,
                extra_headers=self.headers,
            )
        except AnswerTooLong:
            return LONGER.answer(request, refused)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            rejection = Rejection.of(error)
            parameter = rejection.refused
            if parameter in body:
                learned.add(parameter)
                return await self.send(request)
            return self._rejected(request, rejection, refused)
        except openai.APIError as error:
            if isinstance(error, openai.APIStatusError) and error.status_code == 413:
                return self._rejected(request, Rejection.of(error), refused)
            raise self.failure(error, f"has no model {request.model!r} at this base URL") from None
        except Exception as error:  # noqa: BLE001 - several libraries read what came, each with errors of its own
            raise self._no_completion(str(error)) from None
        return self._answer(request, completion, refused)

    def _answer(self, request: Request, completion: Any, refused: Collection[str]) -> Answer:
        failed = getattr(completion, "error", None)
        if failed:
            raise ConnectionFailed(f"{self.host} sent an error as if it were an answer ({self.line(failed)}).")
        said = parse_completion(completion)
        if said is None:
            raise self._no_completion(str(completion))
        return said.answer(request, refused, self.secrets)

    def _rejected(self, request: Request, rejection: Rejection, refused: Collection[str]) -> Answer:
        if rejection.of_the_key:
            raise self.denied(self.line(rejection.sentence)) from None
        sentence = self.line(rejection.sentence, LONGEST_MESSAGE)
        if rejection.of_the_schema(request):
            said = self.line(sentence)
            raise ModelNotServed(
                f"{self.host} takes no JSON schema ({said}); set `structured_output` of the model to false."
            ) from None
        return rejection.recorded_as(sentence).answer(request, refused, self.secrets)

    def _no_completion(self, shown: str) -> ConnectionFailed:
        shown = self.line(shown, 120)
        return ConnectionFailed(f"{self.host} sent something that is no chat completion ({shown}); is the URL right?")
