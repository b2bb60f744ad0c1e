"""Backend for endpoints with OpenAI's chat protocol."""

from collections.abc import Collection
from typing import Any

from pluralbench_calls.backends.completions import (
    MAX_MESSAGE_LENGTH,
    TOO_LONG_REPLY,
    Rejection,
    drop_parameters,
    parse_completion,
)
from pluralbench_calls.backends.endpoint import Endpoint
from pluralbench_calls.errors import CallsError, PermanentError, RequestFailed
from pluralbench_calls.records import Answer, Request


class OpenAIChat(Endpoint):
    """Chat completions from `base_url`, with the client's own retries (429, 5xx, timeouts; honors Retry-After).

    A parameter that a model refuses is renamed or left out (see `REPLACEMENTS`) in all later requests of this object.
    `Answer.adapted` records it; the key stays that of the request.
    """

    async def send(self, request: Request) -> Answer:
        """Send one chat request. A rejection (status 400, 413 or 422) becomes an answer of outcome "error"."""
        import openai

        from pluralbench_calls.backends.bounded import AnswerTooLong

        known_refused = self._refused.setdefault(request.model, set())
        refused = frozenset(known_refused)  # a concurrent request may add more
        body = drop_parameters(request, refused)
        messages = body.pop("messages")
        try:
            completion = await self.client.chat.completions.create(
                model=request.model,
                messages=[],
                # `extra_body` also sends fields that the client does not know, and replaces `messages`, whose types the
                # client would compare for milliseconds.
                extra_body=body | {"messages": messages},
                extra_headers=self.headers,
            )
        except AnswerTooLong:
            return TOO_LONG_REPLY.answer(request, refused)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            rejection = Rejection.from_error(error)
            parameter = rejection.refused_parameter
            if parameter in body:
                known_refused.add(parameter)
                return await self.send(request)
            return self._rejected(request, rejection, refused)
        except openai.APIError as error:
            if isinstance(error, openai.APIStatusError):
                rejection = Rejection.from_error(error)
                if error.status_code == 413 or rejection.concerns_logprobs(request):
                    return self._rejected(request, rejection, refused)
            raise self.failure(error, f"has no model {request.model!r} at this base URL") from None
        except Exception as error:  # noqa: BLE001 - parsing raises errors of several libraries
            raise self._no_completion(str(error)) from None
        return self._answer(request, completion, refused)

    def _answer(self, request: Request, completion: Any, refused: Collection[str]) -> Answer:
        error = getattr(completion, "error", None)
        if error:
            raise RequestFailed(f"{self.host} sent an error with a success status ({self.clean(error)}).")
        reply = parse_completion(completion)
        if reply is None:
            raise self._no_completion(str(completion))
        return reply.answer(request, refused, self.secrets)

    def _rejected(self, request: Request, rejection: Rejection, refused: Collection[str]) -> Answer:
        message = self.clean(rejection.message, MAX_MESSAGE_LENGTH)
        problem = rejection.problem(request, self.clean(message))
        if problem is not None:
            kind = PermanentError if rejection.concerns_logprobs(request) else CallsError
            raise kind(f"{self.host} {problem}.") from None
        return rejection.to_reply(message).answer(request, refused, self.secrets)

    def _no_completion(self, content: str) -> CallsError:
        content = self.clean(content, 120)
        return RequestFailed(f"{self.host} sent something that is not a chat completion ({content}); check the URL.")
