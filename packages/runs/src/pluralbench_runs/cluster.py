"""Work on a Ray cluster: workers that each make one object once, and call its methods with parts of the work.

A worker that was killed, or whose node is gone, is followed by another, and its part is given out again. What comes
back is therefore the result of each part exactly once, in no order.
"""

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
from pluralbench_runs.install_hints import install_command
from pluralbench_runs.progress import log_status
from pluralbench_runs.recipe import FrozenModel
from pluralbench_runs.software import versions

Made = TypeVar("Made")

HERE = "ray"
CLIENT = "ray://"
TRIES = 4  # workers that one part may bring down
PATIENCE = 60.0  # seconds for the first worker, after which it is said that it is awaited
CONNECT = 10.0  # seconds in which an address is answered
SAME = (
    "pluralbench-runs",
    "pluralbench-calls",
    "pluralbench-rewards",
    "pluralbench-local",
    "pluralbench-policies",
    "pluralbench",
    "torch",
    "transformers",
)
"""Distributions on which results depend: a worker has those that are installed here, in the same versions."""

MISSING = f"Work on a Ray cluster needs an extra: {install_command('pluralbench-runs', 'ray')}."
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


class ClusterConfig(FrozenModel):
    """Where models run: in this process, or in workers on a Ray cluster. Results do not depend on it."""

    address: str | None = Field(
        None,
        description="Run models on a Ray cluster: HOST:PORT, ray://HOST:PORT (Ray Client), or ray: the cluster of "
        "RAY_ADDRESS or of this machine, else a new local one.",
        json_schema_extra={"flag": "--cluster", "metavar": "ray|[ray://]HOST:PORT"},
    )
    workers: int = Field(1, ge=1, description="Workers on the cluster; each loads the model.")
    gpus_per_worker: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="GPUs per worker; with 0.5, two workers share one."
    )

    @field_validator("address")
    @classmethod
    def _address(cls, address: str | None) -> str | None:
        if address is not None and address != HERE:
            _host_and_port(address)
        return address

    @model_validator(mode="after")
    def _used(self) -> Self:
        if self.address is None and (self.workers != 1 or self.gpus_per_worker):
            raise ValueError("`workers=...` and `gpus_per_worker=...` need the cluster's `address=...`")
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


class WorkerLostError(Exception):
    """A worker went, by whatever fault, and with it what it had in hand."""


class Workers(Generic[Made]):
    """Workers of a cluster while work goes on. A context manager.

    make: gives the object that each worker has; it is called there, once in each. It, and what methods are given and
    return, travel by (cloud)pickle. What a method raises is raised here.

    A worker that goes is followed by another, wherever there is room, and what it had in hand goes to whichever is free
    first. Ray's own restarts do neither: a call is bound to its worker, for which there may be no more room, and each
    look at a worker that is restarting counts as a try.
    """

    def __init__(self, cluster: ClusterConfig, make: Callable[[], Made]) -> None:
        self._cluster, self._make = cluster, make
        self._ray: Any = None
        self._worker: Any = None
        self._given: Any = None
        self._all: list[Any] = []
        self._starting: dict[Any, Any] = {}  # by the call that ends when the worker is ready
        self._free: deque[Any] = deque()
        self._stillborn = 0

    def __enter__(self) -> Self:
        """Connect, and start the workers; wait for the first. Raises `ClusterError`, and what `make` raises."""
        self._ray = ray = connect(self._cluster)
        # How sums are rounded depends on it, and Ray would give each worker one thread.
        threads = {name: os.environ[name] for name in THREADS if name in os.environ}
        takes = {"num_cpus": 1, "num_gpus": self._cluster.gpus_per_worker}
        self._worker = ray.remote(_worker()).options(**takes, runtime_env={"env_vars": threads})
        try:
            self._given = ray.put((versions(SAME), str(Path.cwd()), ray.cloudpickle.dumps(self._make)))
            for _ in range(self._cluster.workers):
                self._start()
            if not ray.wait([*self._starting], timeout=PATIENCE)[0]:
                log_status(AWAITED.format(seconds=PATIENCE, **self._room()))
            while not self._free:
                self._take(ray.wait([*self._starting])[0][0])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End the workers, whose room others may need."""
        for one in self._all:
            with suppress(Exception):  # it, or the cluster, may be gone
                self._ray.kill(one)
        self._all, self._starting, self._free, self._stillborn = [], {}, deque(), 0

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
                doing[one.call.remote(self._given, method, *parts[place])] = one, place
            [done], _ = self._ray.wait([*doing, *self._starting])
            if done in self._starting:
                self._take(done)
                continue
            one, place = doing.pop(done)
            try:
                value = self._value(done)
            except WorkerLostError:
                tries[place] += 1
                if tries[place] == TRIES:
                    raise ClusterError(ENDED.format(tries=TRIES, when=AT_WORK)) from None
                waiting.appendleft(place)
                self._start()
            else:
                self._free.append(one)
                yield place, value

    def _start(self) -> None:
        """Start a worker, as soon as Ray has room for it."""
        one = self._worker.remote()
        self._all.append(one)
        self._starting[one.call.remote(self._given)] = one

    def _take(self, started: Any) -> None:
        """Take a worker that has begun, or start another where it could not. Raises what keeps them from that."""
        one = self._starting.pop(started)
        try:
            self._value(started)
        except WorkerLostError:
            self._stillborn += 1
            if self._stillborn == TRIES:
                raise ClusterError(ENDED.format(tries=TRIES, when=AT_START)) from None
            self._start()
        else:
            self._stillborn = 0
            self._free.append(one)

    def _value(self, call: Any) -> Any:
        """What a call returned. Raises what it raised, `WorkerLostError`, and `ClusterError`."""
        errors = self._ray.exceptions
        try:
            same, value = self._ray.get(call)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, ModuleNotFoundError):
                raise ClusterError(LACKING.format(module=cause.name)) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError, errors.OutOfMemoryError):
            raise WorkerLostError from None
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
        wanted = {"CPU": 1.0, "GPU": self._cluster.gpus_per_worker}
        has = self._ray.cluster_resources()
        return {
            "wanted": " and ".join(f"{count:g} {name}" for name, count in wanted.items() if count),
            "has": " and ".join(f"{has.get(name, 0):g} {name}" for name in wanted),
        }


def _worker() -> type:
    """The class of a worker. Made in here it travels as code, so a worker without this package can say so."""

    class Worker:
        made: Any = None

        def call(self, given: tuple[dict[str, str], str, bytes], method: str = "", *part: Any) -> tuple[bool, Any]:
            """Whether all is as where the work comes from, and what the method returns, else what is here."""
            import os  # noqa: PLC0415 - of the worker
            import pickle  # noqa: PLC0415 - the same
            import socket  # noqa: PLC0415 - the same
            from contextlib import suppress  # noqa: PLC0415 - the same
            from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - the same

            if self.made is None:
                same, place, make = given
                found = {}
                for name in same:
                    with suppress(PackageNotFoundError):
                        found[name] = version(name)
                if found != same:
                    return False, (socket.gethostname(), found)
                with suppress(OSError):  # so that ./model is the same here, where it is
                    os.chdir(place)
                self.made = pickle.loads(make)()  # noqa: S301 - from the process that started this one
            return True, getattr(self.made, method)(*part) if method else None

    return Worker


def connect(cluster: ClusterConfig) -> Any:
    """Ray, connected to the cluster, or to one that is started here and ends with this process.

    Raises `ClusterError` where nobody answers, and without the extra.
    """
    if find_spec("ray") is None:
        raise ClusterError(MISSING)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS", "") if cluster.address == HERE else cluster.address or ""
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


def _start(ray: Any, cluster: ClusterConfig, quiet: dict[str, Any]) -> None:
    """A cluster of this machine alone, for as long as this process lasts. Ray lets in whoever has the user's token."""
    os.environ.setdefault("RAY_worker_niceness", "0")  # else workers step back behind all else
    cores = max(os.cpu_count() or 1, cluster.workers)
    ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    gpus = ray.cluster_resources().get("GPU", 0)
    if gpus < cluster.gpus_per_worker:
        raise ClusterError(NO_ROOM.format(wanted=f"{cluster.gpus_per_worker:g} GPU", has=f"{gpus:g} GPU"))
