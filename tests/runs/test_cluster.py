"""Which cluster is meant, and what is said where it cannot be used."""

import socket
from importlib import util

import pytest
from pluralbench_runs import ClusterConfig, ClusterError
from pluralbench_runs.cluster import connect
from pluralbench_runs.errors import ConfigError
from raw_server import serve_raw


@pytest.mark.parametrize("on", ["ray", "ray://head:10001", "10.0.0.1:6379", "[::1]:6379"])
def test_a_cluster_has_an_address(on: str) -> None:
    assert ClusterConfig(address=on, workers=8, gpus_per_worker=0.5).address == on


@pytest.mark.parametrize(
    "on", ["", "head", "ray://", "ray://head", "head:port", "http://head:6379", "head:6379/x", ":1"]
)
def test_what_is_no_address_is_refused(on: str) -> None:
    with pytest.raises(ConfigError, match=r"is not ray, HOST:PORT or ray://HOST:PORT"):
        ClusterConfig(address=on)


def test_workers_are_of_a_cluster() -> None:
    with pytest.raises(ConfigError, match=r"need the cluster's `address=\.\.\.`"):
        ClusterConfig(workers=2)


@pytest.mark.parametrize("kind", ["", "ray://"])
def test_an_address_that_nobody_answers_is_said_at_once(kind: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"{kind}127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ClusterError) as caught:
            connect(ClusterConfig(address=address))
    assert str(caught.value) == (
        f"{address} does not answer (Connection refused); give the address that `ray start` prints, or start a "
        "cluster there."
    )


def test_the_variable_of_ray_is_read_like_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(ClusterError, match=r"^RAY_ADDRESS: 'nowhere' is not ray, HOST:PORT or ray://HOST:PORT\.$"):
        connect(ClusterConfig(address="ray"))


def test_without_the_extra_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = util.find_spec
    monkeypatch.setattr("pluralbench_runs.cluster.find_spec", lambda name: None if name == "ray" else find(name))
    with pytest.raises(
        ClusterError, match=r"needs an extra: `uv sync --inexact --package pluralbench-runs --extra ray`"
    ):
        connect(ClusterConfig(address="ray"))


def test_a_server_that_is_not_ray_is_told_from_it() -> None:
    with serve_raw(lambda _: [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]) as server:
        address = server.base_url.removeprefix("http://").partition("/")[0]
        with pytest.raises(ClusterError) as caught:
            connect(ClusterConfig(address=address))
    assert str(caught.value) == (
        f"{address} is not a Ray cluster that can be used from here (no gRPC); check the address."
    )
