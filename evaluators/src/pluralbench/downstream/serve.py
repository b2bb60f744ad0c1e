"""`serve`: answer requests of trainers and of other programs with the rewards of a model."""

import os
import socket
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pluralbench_policies.reward_functions import BatchedRewards
from pluralbench_rewards import ScoresRendered, ScoringConfig
from pluralbench_runs import install_command, log_status, unannounced_interrupts
from pluralbench_runs.options import Options

from pluralbench.config import ExactScoringConfig, RewardServerConfig
from pluralbench.downstream.rollout import default_model_name, scoring_config
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import Scorable, as_local_model, reward_loader

STOP_SECONDS = 30  # for requests that have begun when the server is to stop
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def serve(
    model: Scorable,
    *,
    scoring: Annotated[ExactScoringConfig | ScoringConfig | None, Options("Reward model")] = None,
    listen: Annotated[RewardServerConfig | None, Options("Server")] = None,
) -> None:
    """Serve a reward model to trainers and other programs until Ctrl-C or SIGTERM.

    Answers `/classify` of vLLM, `/get_reward` of OpenRLHF, `/health` and `/metrics`. Requests that arrive while a batch
    is computed are computed together, and have the rewards of `score --mode exact`. Requires the extra `serve`; in a
    clone: uv sync --inexact --package pluralbench --extra serve.

    Args:
        model: Reward model, as `pluralbench.score` takes it. Directory, ORG/NAME on the Hub, or `local` (small embedded
            model).
        scoring: How a model in this process runs. Default: `ExactScoringConfig()`.
        listen: Address, key and limits. Default: `RewardServerConfig()`, which is port 8000 of this machine alone.

    Raises:
        UserError: The model cannot be used, the address is not free, uvicorn is missing, or there is no key.

    Examples:
        pluralbench serve ./my-model --port 8000
        PLURALBENCH_API_KEY=... pluralbench serve ORG/NAME --host 0.0.0.0 --client-key-env PLURALBENCH_API_KEY
    """
    if find_spec("uvicorn") is None:
        raise EvaluationError(f"`serve` needs an extra: {install_command('pluralbench', 'serve')}.")
    listen, scoring = listen or RewardServerConfig(), scoring or scoring_config(model, ExactScoringConfig())
    key = _read_key(listen.client_key_env)
    load = reward_loader(model, scoring, "`serve`")
    with _bind(listen.host, listen.port) as bound:
        import uvicorn

        from pluralbench.downstream.http_limits import TimedProtocol
        from pluralbench.downstream.reward_server import RewardServer

        loaded = load()
        named = str(model) if isinstance(model, str | Path) else default_model_name(model)
        local = as_local_model(model)
        name = listen.served_name or (named if local is None else local.name)
        limit = loaded.max_tokens() if isinstance(loaded, ScoresRendered) else None
        app = RewardServer(BatchedRewards(lambda: loaded), name, listen, key, limit)
        plain: dict[str, Any] = dict.fromkeys(("access_log", "proxy_headers"), False) | {"log_config": None}
        plain |= {"lifespan": "off", "ws": "none", "http": TimedProtocol, "loop": "asyncio"}
        plain |= {"timeout_graceful_shutdown": STOP_SECONDS, "log_level": "critical"}
        bound.listen()  # from now on, requests wait for the server instead of being refused
        host, port = bound.getsockname()[:2]
        where = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        log_status(f"Serving {name} at {where} (/classify, /get_reward, /health, /metrics). Ctrl-C stops it.")
        if not key and listen.host not in LOOPBACK:
            log_status(f"Anyone who reaches {host} can use it, because it asks for no key.")
        # KeyboardInterrupt follows SIGTERM, too; uvicorn has finished what it had begun.
        with unannounced_interrupts(), suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, **plain)).run(sockets=[bound])
        app.traffic.print_line()
        log_status("Stopped.")


def _read_key(variable: str | None) -> str:
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise EvaluationError(f"The server needs a key; set the environment variable {variable}.")
    if not (key.isascii() and key.isprintable()):
        raise EvaluationError(f"The value of the environment variable {variable} is not a key.")
    return key


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as stack:
            bound = stack.enter_context(socket.socket(family, kind))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            stack.pop_all()
    except OSError as error:
        raise EvaluationError(
            f"{host}:{port} cannot be listened at ({error.strerror or error}); choose another `port=...` or `host=...`."
        ) from None
    return bound
