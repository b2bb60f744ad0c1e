"""Work on a Ray cluster: each worker creates an object once, and calls its methods with parts of the work.

A killed worker, or one on a lost node, is replaced, and its part is assigned again. So each part gives exactly one
result, in any order.
"""

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pluralbench_runs.errors import UserError, one_line
from pluralbench_runs.install_hints import install_command
from pluralbench_runs.meters import log_status, step
from pluralbench_runs.recipe import FrozenModel
from pluralbench_runs.software import versions

if TYPE_CHECKING:
    from pluralbench_runs.workers import ParallelMap

Target = TypeVar("Target")
Item = TypeVar("Item")
Result = TypeVar("Result")

DEFAULT_CLUSTER = "ray"
CLIENT = "ray://"
MAX_LOST_WORKERS = 4  # that one part of the work may end
STATUS_AFTER = 60.0  # seconds without a worker until a status line is printed
CONNECT_TIMEOUT = 10.0  # seconds
CHECKED_PACKAGES = (
    "pluralbench-runs",
    "pluralbench-calls",
    "pluralbench-rewards",
    "pluralbench-local",
    "pluralbench-policies",
    "pluralbench",
    "torch",
    "transformers",
)
"""Distributions on which results depend. Workers must have the same versions as this process."""

NOT_INSTALLED = f"Work on a Ray cluster needs an extra: {install_command('pluralbench-runs', 'ray')}."
NO_ANSWER = "{address} does not answer ({reason}); give the address that `ray start` prints, or start a cluster there."
NOT_RAY = "{address} is not a Ray cluster that can be used from here ({reason}); check the address."
OTHER_CLUSTER = "This process already uses the Ray cluster at {address}; use that one, or start another process."
OTHER_VERSION = (
    "A worker on {host} has {package} {remote}, and this process has {local}; install the same version on every node "
    "of the cluster."
)
MISSING_MODULE = "A worker of the cluster has no module {module}; install the same packages on every node as here."
WORKERS_LOST = (
    "A worker of the cluster ended {tries} times {when}, perhaps because memory ran out; process less at a time, or "
    "give workers more memory. Earlier results are kept."
)
AT_WORK, AT_START = "at the same part of the work", "before it could begin"
NO_ROOM = "The cluster has no room for a worker: it needs {wanted}, and the cluster has {has}."
WAITING = "No worker is ready after {seconds:.0f} s (each needs {wanted}, and the cluster has {has}); still waiting."
DISCONNECTED = (
    "The connection to the Ray cluster is lost ({reason}). Results are kept; rerun the same command to resume."
)
# Disables Ray's log lines, usage statistics and hook for uv.
RAY_ENVIRONMENT = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    # Under `uv run` Ray would upload the project and start workers by another `uv run` there.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class ClusterError(UserError):
    """A cluster cannot be used."""


class ClusterConfig(FrozenModel):
    """Where models run: in this process, or in workers on a Ray cluster. Results do not depend on it."""

    address: str | None = Field(
        None,
        description="Run models on a Ray cluster: HOST:PORT, ray://HOST:PORT (Ray Client), or ray: the cluster of "
        "RAY_ADDRESS or of this machine, else a new local one.",
        json_schema_extra={"flag": "--cluster", "metavar": "ray|[ray://]HOST:PORT"},
    )
    workers: int = Field(1, ge=1, le=1_000, description="Workers on the cluster; each loads the model.")
    gpus_per_worker: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="GPUs per worker; with 0.5, two workers share one."
    )

    @field_validator("address")
    @classmethod
    def _address(cls, address: str | None) -> str | None:
        if address is not None and address != DEFAULT_CLUSTER:
            _host_and_port(address)
        return address

    @model_validator(mode="after")
    def _used(self) -> Self:
        if self.address is None and (self.workers != 1 or self.gpus_per_worker):
            raise ValueError("`workers=...` and `gpus_per_worker=...` need the cluster's `address=...`")
        return self


def _host_and_port(on: str) -> tuple[str, int]:
    """Raises `ValueError`."""
    try:
        parts = urlsplit(f"//{on.removeprefix(CLIENT)}")
        if parts.hostname and parts.port and parts.netloc == on.removeprefix(CLIENT):
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ValueError(f"{on!r} is not ray, HOST:PORT or ray://HOST:PORT")


class WorkerLostError(Exception):
    """A worker ended, and its part of the work is lost."""


class Workers(Generic[Target]):
    """The workers of a cluster. A context manager.

    A lost worker is replaced wherever there is room, and its part goes to the next free worker. Ray's own restarts do
    not do this: a call stays with its worker, for which there may be no room, and each poll of a restarting worker
    counts as a try.

    `make` creates the object of each worker. It, and the arguments and results of methods, are sent by (cloud)pickle.
    """

    def __init__(self, cluster: ClusterConfig, make: Callable[[], Target]) -> None:
        self._cluster, self._make = cluster, make
        self._ray: Any = None
        self._worker: Any = None
        self._setup: Any = None  # versions, working directory and `make`
        self._all: list[Any] = []
        self._starting: dict[Any, Any] = {}  # by the call that returns when the worker is ready
        self._free: deque[Any] = deque()
        self._failed_starts = 0

    def __enter__(self) -> Self:
        """Connect, start the workers, and wait for the first. Raises `ClusterError`, and what `make` raises."""
        with step("Starting Ray and its workers"):
            return self._enter()

    def _enter(self) -> Self:
        self._ray = ray = connect(self._cluster)
        # The number of threads affects rounding, and Ray would give each worker one thread.
        threads = {name: os.environ[name] for name in THREADS if name in os.environ}
        resources = {"num_cpus": 1, "num_gpus": self._cluster.gpus_per_worker}
        self._worker = ray.remote(_worker()).options(**resources, runtime_env={"env_vars": threads})
        try:
            self._setup = ray.put((versions(CHECKED_PACKAGES), str(Path.cwd()), ray.cloudpickle.dumps(self._make)))
            for _ in range(self._cluster.workers):
                self._start()
            if not ray.wait([*self._starting], timeout=STATUS_AFTER)[0]:
                log_status(WAITING.format(seconds=STATUS_AFTER, **self._resources()))
            while not self._free:
                self._add(ray.wait([*self._starting])[0][0])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End the workers and free their resources."""
        for worker in self._all:
            with suppress(Exception):  # it, or the cluster, may be gone
                self._ray.kill(worker)
        self._all, self._starting, self._free, self._failed_starts = [], {}, deque(), 0

    def results(self, method: str, parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Call a method with each part of the work, and yield the index of a part and its result as it arrives.

        Raises:
            ClusterError: One part ended `MAX_LOST_WORKERS` workers. Errors of the method are raised as they are.
        """
        pending = deque(range(len(parts)))
        running: dict[Any, tuple[Any, int]] = {}
        losses: Counter[int] = Counter()
        while pending or running:
            while self._free and pending:
                worker, index = self._free.popleft(), pending.popleft()
                running[worker.call.remote(self._setup, method, *parts[index])] = worker, index
            [done], _ = self._ray.wait([*running, *self._starting])
            if done in self._starting:
                self._add(done)
                continue
            worker, index = running.pop(done)
            try:
                value = self._value(done)
            except WorkerLostError:
                losses[index] += 1
                if losses[index] == MAX_LOST_WORKERS:
                    raise ClusterError(WORKERS_LOST.format(tries=MAX_LOST_WORKERS, when=AT_WORK)) from None
                pending.appendleft(index)
                self._start()
            else:
                self._free.append(worker)
                yield index, value

    def _start(self) -> None:
        worker = self._worker.remote()
        self._all.append(worker)
        self._starting[worker.call.remote(self._setup)] = worker

    def _add(self, started: Any) -> None:
        """Add a worker that is ready, or start another if it ended. Raises the error of `make`."""
        worker = self._starting.pop(started)
        try:
            self._value(started)
        except WorkerLostError:
            self._failed_starts += 1
            if self._failed_starts == MAX_LOST_WORKERS:
                raise ClusterError(WORKERS_LOST.format(tries=MAX_LOST_WORKERS, when=AT_START)) from None
            self._start()
        else:
            self._failed_starts = 0
            self._free.append(worker)

    def _value(self, call: Any) -> Any:
        """Return the result of a call. Raises its error, `WorkerLostError` or `ClusterError`."""
        errors = self._ray.exceptions
        try:
            is_ready, value = self._ray.get(call)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, ModuleNotFoundError):
                raise ClusterError(MISSING_MODULE.format(module=cause.name)) from None
            raise (cause if isinstance(cause, Exception) else error) from None
        except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError, errors.OutOfMemoryError):
            raise WorkerLostError from None
        except (errors.RayError, ConnectionError) as error:
            raise ClusterError(DISCONNECTED.format(reason=one_line(error))) from None
        if not is_ready:
            host, remote = value
            local = versions(CHECKED_PACKAGES)
            package = next(name for name in local if remote.get(name) != local[name])
            remote_version = remote.get(package, "not installed")
            raise ClusterError(
                OTHER_VERSION.format(host=host, package=package, remote=remote_version, local=local[package])
            )
        return value

    def _resources(self) -> dict[str, str]:
        wanted = {"CPU": 1.0, "GPU": self._cluster.gpus_per_worker}
        has = self._ray.cluster_resources()
        return {
            "wanted": " and ".join(f"{count:g} {name}" for name, count in wanted.items() if count),
            "has": " and ".join(f"{has.get(name, 0):g} {name}" for name in wanted),
        }


def _worker() -> type:
    """Create the class of a worker. Defined here, it is pickled as code and works without this package."""

    class Worker:
        target: Any = None

        def call(self, setup: tuple[dict[str, str], str, bytes], method: str = "", *part: Any) -> tuple[bool, Any]:
            """Return True and the method's result, or False with the host and its versions if these differ."""
            import os
            import pickle
            import socket
            from contextlib import suppress
            from importlib.metadata import PackageNotFoundError, version

            if self.target is None:
                expected, directory, make = setup
                installed = {}
                for name in expected:
                    with suppress(PackageNotFoundError):
                        installed[name] = version(name)
                if installed != expected:
                    return False, (socket.gethostname(), installed)
                with suppress(OSError):  # so that relative paths such as ./model work, if the directory exists
                    os.chdir(directory)
                self.target = pickle.loads(make)()  # noqa: S301 - from the process that started this one
            return True, getattr(self.target, method)(*part) if method else None

    return Worker


def connect(cluster: ClusterConfig) -> Any:
    """Connect to a cluster, or start a local one that ends with this process; return the module `ray`.

    Raises:
        ClusterError: The address does not answer, or the extra is not installed.
    """
    if find_spec("ray") is None:
        raise ClusterError(NOT_INSTALLED)
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    address = os.environ.get("RAY_ADDRESS", "") if cluster.address == DEFAULT_CLUSTER else cluster.address or ""
    if address and address not in {"auto", "local"}:
        _check_answer(address)
    import ray

    if ray.is_initialized():
        current = ray.get_runtime_context().gcs_address
        # Ray writes the host of this machine in another way.
        if address and not address.startswith(CLIENT) and _host_and_port(address)[1] != _host_and_port(current)[1]:
            raise ClusterError(OTHER_CLUSTER.format(address=current))
        return ray
    import logging

    quiet: dict[str, Any] = {"logging_level": logging.CRITICAL, "log_to_driver": False}
    try:
        ray.init(address or "auto", **quiet)
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, ImportError, TimeoutError) as error:
        if address:
            raise ClusterError(NOT_RAY.format(address=address, reason=one_line(error))) from None
        _start_local(ray, cluster, quiet)
    return ray


def _check_answer(address: str) -> None:
    """Raise `ClusterError` if the address does not answer, or is not Ray; Ray itself would retry for minutes."""
    import grpc

    try:
        host, port = _host_and_port(address)
        socket.create_connection((host, port), timeout=CONNECT_TIMEOUT).close()
    except ValueError as error:
        raise ClusterError(f"RAY_ADDRESS: {error}.") from None
    except OSError as error:
        raise ClusterError(NO_ANSWER.format(address=address, reason=one_line(error.strerror or error))) from None
    with grpc.insecure_channel(f"{host}:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
        check_health = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            check_health(b"", timeout=CONNECT_TIMEOUT)
        except grpc.RpcError as error:  # Ray also answers with an error
            if error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                raise ClusterError(NOT_RAY.format(address=address, reason="no gRPC")) from None


def _start_local(ray: Any, cluster: ClusterConfig, quiet: dict[str, Any]) -> None:
    """Start a cluster on this machine that ends with this process."""
    os.environ.setdefault("RAY_worker_niceness", "0")  # otherwise workers get low priority
    cores = max(os.cpu_count() or 1, cluster.workers)
    ray.init("local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    gpus = ray.cluster_resources().get("GPU", 0)
    if gpus < cluster.gpus_per_worker:
        raise ClusterError(NO_ROOM.format(wanted=f"{cluster.gpus_per_worker:g} GPU", has=f"{gpus:g} GPU"))


@contextmanager
def cluster_workers(cluster: ClusterConfig) -> Iterator["ParallelMap"]:
    """Open a map over the workers of a Ray cluster, to which all items are submitted at once.

    Raises:
        ClusterError: The cluster cannot be used.
    """
    with Workers(cluster, _Caller) as pool:
        yield partial(_map_on_cluster, pool)


class _Caller:
    """The object in each worker of a cluster."""

    def call(self, function: Callable[[Item], Result], item: Item) -> Result:
        return function(item)


def _map_on_cluster(
    pool: Workers[_Caller], function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    ready: dict[int, Result] = {}
    next_index = 0
    for index, result in pool.results("call", [(function, item) for item in items]):
        ready[index] = result
        while next_index in ready:
            yield ready.pop(next_index)
            next_index += 1
