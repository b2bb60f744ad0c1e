"""Work on a Ray cluster: workers that each make one object once, and call its methods with parts of the work.

A worker that was killed, or whose node is gone, is followed by another, and its part is given out again. What comes
back is therefore the result of each part exactly once, in no order.
"""

import asyncio
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.installing import how_to_install
from pluralbench_runs.progress import announce
from pluralbench_runs.recipe import Table
from pluralbench_runs.software import versions

Made = TypeVar("Made")

HERE = "ray"
CLIENT = "ray://"
IN_HAND = 2  # parts of a worker, so that it need not wait for the next
TRIES = 4  # workers that one part may bring down
PATIENCE = 60.0  # seconds for the first worker, after which it is said that it is awaited
LOOK = 0.2  # seconds between two looks for a worker that has started
CONNECT = 10.0  # seconds in which an address is answered
SAME = (
    "pluralbench-runs",
    "pluralbench-calls",
    "pluralbench-rewards",
    "pluralbench-retrieval",
    "pluralbench-local",
    "pluralbench-policies",
    "pluralbench",
    "torch",
    "transformers",
)
"""Distributions on which results depend: a worker has those that are installed here, in the same versions."""

MISSING = f"Work on a Ray cluster needs an extra: {how_to_install('pluralbench-runs', 'ray')}."
NOBODY = "Nobody answers at {address} ({why}); give the address that `ray start` names, or start a cluster there."
NOT_RAY = "What answers at {address} is no Ray cluster that can be used from here ({why}); check the address."
ELSEWHERE = "This process works on the Ray cluster at {there} already; use that one, or start another process."
OTHER = (
    "A worker on {host} has {package} {found}, and this process has {here}; install the same version on every node of "
    "the cluster."
)
LACKING = "A worker of the cluster has no module {module}; install on every node what is installed here."
ENDED = (
    "A worker of the cluster ended {tries} times {when}, as happens where memory runs out; give "
    "a worker less at a time, or more room. What came back before is kept."
)
AT_WORK, AT_START = "at the same part of the work", "before it could begin"
NO_ROOM = "The cluster has no room for a worker, which takes {wanted}: it has {has}."
AWAITED = "No worker is ready after {seconds:.0f} s (each takes {wanted}, and the cluster has {has}); waiting on."
LOST = "The connection to the Ray cluster is lost ({why}); what came back is kept: run the same command again to go on."
# What Ray would write between our lines, and its report to its makers.
QUIET = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_USAGE_STATS_ENABLED": "0",
}


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class ClusterError(UserError):
    """A cluster that cannot be used."""


class Cluster(Table):
    """Where models run: in this process, or in workers on a Ray cluster. Nothing that is found depends on it."""

    on: str | None = Field(
        None,
        description="Run models on a Ray cluster: that of HOST:PORT, by Ray's client that of ray://HOST:PORT, and for "
        "ray the one that RAY_ADDRESS names or that runs here, else one that is started for this command.",
        json_schema_extra={"metavar": "ray|[ray://]HOST:PORT"},
    )
    workers: int = Field(1, ge=1, description="Workers on the cluster; each loads the model once.")
    per_worker_gpus: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="GPUs of a worker; a part such as 0.5 lets two share one."
    )

    @field_validator("on")
    @classmethod
    def _address(cls, on: str | None) -> str | None:
        if on is not None and on != HERE:
            _host_and_port(on)
        return on

    @model_validator(mode="after")
    def _used(self) -> Self:
        if self.on is None and (self.workers != 1 or self.per_worker_gpus):
            raise ValueError("`workers` and `per_worker_gpus` are of a cluster; say by `on` of which")
        return self


def _host_and_port(on: str) -> tuple[str, int]:
    """Of an address. Raises `ValueError`."""
    try:
        parts = urlsplit(f"//{on.removeprefix(CLIENT)}")
        if parts.hostname and parts.port and parts.netloc == on.removeprefix(CLIENT):
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ValueError(f"{on!r} is not ray, HOST:PORT or ray://HOST:PORT")


class Lost(Exception):
    """A worker went, by whatever fault, and with it what it had in hand."""


class Workers(Generic[Made]):
    """Workers of a cluster while work goes on. A context manager.

    make: gives the object that each worker has; it is called there, once in each. It, and what methods are given and
    return, travel by (cloud)pickle. What a method raises is raised here.
    in_hand: calls that a worker is given at once; they overlap where the method is asynchronous.

    A worker that goes is followed by another, wherever there is room, and what it had in hand is given out again.
    """

    def __init__(self, cluster: Cluster, make: Callable[[], Made], *, in_hand: int = IN_HAND) -> None:
        self._cluster, self._make, self._in_hand = cluster, make, in_hand
        self._ray: Any = None
        self._actor: Any = None
        self._given: tuple[Any, ...] = ()
        self._starting: dict[Any, Any] = {}
        self._free: deque[Any] = deque()
        self._there: set[Any] = set()
        self._stillborn = 0

    def __enter__(self) -> Self:
        """Connect, and start the workers; wait for the first. Raises `ClusterError`, and what `make` raises."""
        self._ray = ray = connect(self._cluster)
        self._given = versions(SAME), str(Path.cwd()), ray.cloudpickle.dumps(self._make)
        options = {"num_cpus": 1, "num_gpus": self._cluster.per_worker_gpus, "max_concurrency": self._in_hand}
        # How sums are rounded depends on it, and Ray would give each worker one thread.
        threads = {name: os.environ[name] for name in THREADS if name in os.environ}
        self._actor = ray.remote(_actor()).options(**options, runtime_env={"env_vars": threads})
        try:
            for _ in range(self._cluster.workers):
                self._start()
            if not self._arrived(PATIENCE):
                announce(AWAITED.format(seconds=PATIENCE, **self._room()))
                while not self._arrived(None):
                    pass
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End the workers, whose room others may need."""
        for one in {*self._starting.values(), *self._there}:
            self._end(one)
        self._starting, self._free, self._there, self._stillborn = {}, deque(), set(), 0

    def results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Call the method with each of the parts; its results as they come, with the place of the part.

        Raises what the method raises, and `ClusterError` where a part brings down `TRIES` workers.
        """
        waiting = deque(range(len(parts)))
        doing: dict[Any, tuple[Any, int]] = {}
        tries: Counter[int] = Counter()
        while waiting or doing:
            while self._free and waiting:
                one, place = self._free.popleft(), waiting.popleft()
                doing[one.call.remote(method, *parts[place])] = one, place
            [done], _ = self._ray.wait([*doing, *self._starting], num_returns=1)
            if done not in doing:
                self._arrived(0)
                continue
            one, place = doing.pop(done)
            try:
                value = self._value(done)
            except Lost:
                self._follow(one)
                tries[place] += 1
                if tries[place] == TRIES:
                    raise ClusterError(ENDED.format(tries=TRIES, when=AT_WORK)) from None
                waiting.appendleft(place)
            else:
                self._release(one)
                yield place, value

    async def result(self, method: str, *part: Any) -> Any:
        """Call the method with one part, as soon as a worker can take it. Raises as `results` does."""
        for _ in range(TRIES):
            while not self._arrived(0):  # noqa: ASYNC110 - Ray sets no event
                await asyncio.sleep(LOOK)
            one = self._free.popleft()
            call = one.call.remote(method, *part)
            with suppress(Exception):  # told of by `_value`
                await call
            try:
                value = self._value(call)
            except Lost:
                self._follow(one)
                continue
            self._release(one)
            return value
        raise ClusterError(ENDED.format(tries=TRIES, when=AT_WORK))

    def _start(self) -> None:
        one = self._actor.remote(*self._given)
        self._starting[one.begin.remote()] = one

    def _arrived(self, seconds: float | None) -> bool:
        """Take workers that have started, for at most so many seconds until the first; whether any can take a call."""
        while self._starting:
            done, _ = self._ray.wait([*self._starting], num_returns=1, timeout=seconds)
            if not done:
                break
            seconds = 0
            one = self._starting.pop(done[0])
            self._there.add(one)
            try:
                self._value(done[0])
            except Lost:
                self._stillborn += 1
                if self._stillborn == TRIES:
                    raise ClusterError(ENDED.format(tries=TRIES, when=AT_START)) from None
                self._follow(one)
            else:
                self._stillborn = 0
                self._free.extend([one] * self._in_hand)
        return bool(self._free)

    def _release(self, one: Any) -> None:
        if one in self._there:
            self._free.append(one)

    def _follow(self, one: Any) -> None:
        """Start another worker in place of one that is lost, once."""
        if one in self._there:
            self._there.remove(one)
            self._free = deque(other for other in self._free if other != one)
            self._end(one)
            self._start()

    def _end(self, one: Any) -> None:
        with suppress(Exception):  # it, or the cluster, may be gone
            self._ray.kill(one)

    def _value(self, call: Any) -> Any:
        """What a call returned. Raises what it raised, `Lost`, and `ClusterError`."""
        errors = self._ray.exceptions
        try:
            same, value = self._ray.get(call)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, ModuleNotFoundError):
                raise ClusterError(LACKING.format(module=cause.name)) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError, errors.OutOfMemoryError):
            raise Lost from None
        except (errors.RayError, ConnectionError) as error:
            raise ClusterError(LOST.format(why=one_line(error))) from None
        if not same:
            host, found = value
            here = versions(SAME)
            package = next(name for name in here if found.get(name) != here[name])
            raise ClusterError(
                OTHER.format(host=host, package=package, found=found.get(package, "not at all"), here=here[package])
            )
        return value

    def _room(self) -> dict[str, str]:
        """What a worker takes, and what the cluster has, in words."""
        wanted = {"CPU": 1.0, "GPU": self._cluster.per_worker_gpus}
        has = self._ray.cluster_resources()
        return {
            "wanted": " and ".join(f"{count:g} {name}" for name, count in wanted.items() if count),
            "has": " and ".join(f"{has.get(name, 0):g} {name}" for name in wanted),
        }


def _actor() -> type:
    """The class of a worker. Made in here it travels as code, so a worker without this package can say so."""

    class Worker:
        def __init__(self, same: dict[str, str], place: str, make: bytes) -> None:
            self.same, self.place, self.make, self.made = same, place, make, None

        def ready(self) -> tuple[bool, Any]:
            """Whether all is as where the work comes from, and else what is here."""
            import os  # noqa: PLC0415 - of the worker
            import pickle  # noqa: PLC0415 - the same
            import socket  # noqa: PLC0415 - the same
            from contextlib import suppress  # noqa: PLC0415 - the same
            from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - the same

            if self.made is None:
                found = {}
                for name in self.same:
                    try:
                        found[name] = version(name)
                    except PackageNotFoundError:
                        continue
                if found != self.same:
                    return False, (socket.gethostname(), found)
                with suppress(OSError):  # so that ./model is the same here, where it is
                    os.chdir(self.place)
                self.made = pickle.loads(self.make)()  # noqa: S301 - from the process that started this one
            return True, None

        async def begin(self) -> tuple[bool, Any]:
            return self.ready()

        async def call(self, method: str, *part: Any) -> tuple[bool, Any]:
            import inspect  # noqa: PLC0415 - of the worker

            same, value = self.ready()
            if same:
                value = getattr(self.made, method)(*part)
                if inspect.isawaitable(value):
                    value = await value
            return same, value

    return Worker


def connect(cluster: Cluster) -> Any:
    """Ray, connected to the cluster, or to one that is started here and ends with this process.

    Raises `ClusterError` where nobody answers, and without the extra.
    """
    if find_spec("ray") is None:
        raise ClusterError(MISSING)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS", "") if cluster.on == HERE else cluster.on or ""
    if address and address not in {"auto", "local"}:
        _answered(address)
    import ray  # noqa: PLC0415 - an extra, and seconds

    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address and not address.startswith(CLIENT) and not _alike(address, there):
            raise ClusterError(ELSEWHERE.format(there=there))
        return ray
    import logging  # noqa: PLC0415 - for Ray alone

    quiet: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    try:
        ray.init(address or "auto", **quiet)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, ImportError, TimeoutError) as error:
        if address:
            raise ClusterError(NOT_RAY.format(address=address, why=one_line(error))) from None
        _start(ray, cluster, quiet)
    return ray


def _answered(address: str) -> None:
    """Raises `ClusterError` where nobody answers, or nothing that could be Ray: that would try for minutes."""
    import grpc  # noqa: PLC0415 - of the extra

    try:
        host, port = _host_and_port(address)
        socket.create_connection((host, port), timeout=CONNECT).close()
    except ValueError as error:
        raise ClusterError(f"RAY_ADDRESS: {error}.") from None
    except OSError as error:
        raise ClusterError(NOBODY.format(address=address, why=one_line(error.strerror or error))) from None
    with grpc.insecure_channel(f"{host}:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
        ask = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            ask(b"", timeout=CONNECT)
        except grpc.RpcError as error:  # which is also what Ray answers to a stranger
            if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                raise ClusterError(NOT_RAY.format(address=address, why="it does not speak gRPC")) from None


def _alike(address: str, there: str) -> bool:
    """Whether two addresses are of one cluster: Ray writes this machine's own in another way."""
    return _host_and_port(address)[1] == _host_and_port(there)[1]


def _start(ray: Any, cluster: Cluster, quiet: dict[str, Any]) -> None:
    """A cluster of this machine alone, for as long as this process lasts. Ray lets in whoever has the user's token."""
    cores = max(os.cpu_count() or 1, cluster.workers)
    ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    gpus = ray.cluster_resources().get("GPU", 0)
    if gpus < cluster.per_worker_gpus:
        raise ClusterError(NO_ROOM.format(wanted=f"{cluster.per_worker_gpus:g} GPU", has=f"{gpus:g} GPU"))
