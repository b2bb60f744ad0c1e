"""Whom Google Cloud Translation knows: credentials, project, host, encryption."""

import datetime as dt
import json
import os
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import NoReturn

import grpc
import pytest
from commands import refused_with
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.credentials import Credentials
from google.auth.exceptions import RefreshError
from google_builds import GO_ON, PROJECT, Run, recipe, rows
from translation_server import by_words, serve

# ---- Credentials, project, host


def lonely(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Be in an environment in which nothing of Google is set, and the machine is none of theirs."""
    for name in list(os.environ):
        if name.startswith(("GOOGLE_", "GCE_", "CLOUDSDK_", "GCLOUD_")):
            monkeypatch.delenv(name)
    home.mkdir()
    values = {"HOME": str(home), "CLOUDSDK_CONFIG": str(home / "gcloud"), "NO_GCE_CHECK": "true"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (
            None,
            "Your default credentials were not found. To set up Application Default Credentials, see "
            "https://cloud.google.com/docs/authentication/external/set-up-adc for more information",
        ),
        ("nowhere.json", "File nowhere.json was not found"),
    ],
)
def test_no_credentials(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str | None, reason: str
) -> None:
    lonely(monkeypatch, tmp_path / "home")
    if path is not None:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
    refused_with(
        run("--recipe", recipe(tmp_path, "", rows(1)), "--out", tmp_path / "out"),
        f"Google Cloud credentials are missing ({reason}); run `gcloud auth application-default login` or set "
        "GOOGLE_APPLICATION_CREDENTIALS to the file of a service account. 0 of 3 texts in spa_Latn are "
        f"recorded{GO_ON}",
    )
    assert not (tmp_path / "out.work").exists()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://translate.googleapis.com:8080",
        "http://localhost.example.org:8080",
        "http://[::1",
        "http://127.0.0.1:9/v3",
        "http://u:secret@127.0.0.1:9",
        "https://u:secret@translate.googleapis.com",
        "127.0.0.1:9#secret",
    ],
)
def test_an_endpoint_of_another_form_is_refused_and_not_shown(run: Run, tmp_path: Path, endpoint: str) -> None:
    status, said = run("--recipe", recipe(tmp_path, endpoint, rows(1)), "--out", tmp_path / "out")
    assert (status, "secret" in said) == (2, False)
    assert "neither a host such as translate-eu.googleapis.com nor http://127.0.0.1:PORT" in " ".join(said.split())
    assert not (tmp_path / "out.work").exists()


# ---- Encryption and keys, as with Google itself


@cache
def certificate() -> tuple[bytes, bytes]:
    """A key that is nobody's, and a certificate for a server on this machine.

    A process reads the roots that it trusts once, and finding a key takes a while.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    return pem, made.public_bytes(serialization.Encoding.PEM)


def service_account(folder: Path) -> tuple[Path, grpc.ServerCredentials]:
    """The file of a service account that is nobody's, and credentials for a server on this machine.

    Their certificate is in `folder / "roots.pem"`, for clients that are to trust it.
    """
    pem, public = certificate()
    (folder / "roots.pem").write_bytes(public)
    account = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": f"nobody@{PROJECT}.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:9/token",
    }
    (folder / "key.json").write_text(json.dumps(account), encoding="utf-8")
    return folder / "key.json", grpc.ssl_server_credentials([(pem, public)])


def test_a_service_account_over_an_encrypted_channel(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lonely(monkeypatch, tmp_path / "home")
    keys, credentials = service_account(tmp_path)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(keys))
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(tmp_path / "roots.pem"))
    with serve(by_words, credentials=credentials) as server:
        asked = recipe(tmp_path, server.endpoint, rows(3))
        status, said = run("--recipe", asked, "--out", tmp_path / "out")
    assert status == 0, said
    (headers,) = server.metadata
    assert headers["authorization"].startswith("Bearer ey")
    secrets = [headers["authorization"].removeprefix("Bearer "), json.loads(keys.read_text())["private_key"][100:160]]
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or not any(secret.encode() in path.read_bytes() for secret in secrets)


def test_credentials_that_expired_are_said_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a login of some weeks ago does: the token cannot be renewed."""

    class Expired(Credentials):
        def refresh(self, request: object) -> NoReturn:
            raise RefreshError("invalid_grant: Token has been expired or revoked.")  # type: ignore[no-untyped-call]

    lonely(monkeypatch, tmp_path / "home")
    monkeypatch.setattr("google.auth.default", lambda **_: (Expired(), None))  # type: ignore[no-untyped-call]
    _, credentials = service_account(tmp_path)
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(tmp_path / "roots.pem"))
    with serve(by_words, credentials=credentials) as server:
        asked = recipe(tmp_path, server.endpoint, rows(1), connection={"retry_seconds": 0.3})
        result = run("--recipe", asked, "--out", tmp_path / "out")
    assert server.requests == []
    assert result[0] == 2
    assert "invalid_grant: Token has been expired or revoked); check the project" in " ".join(result[1].split())
    assert f"0 of 3 texts in spa_Latn are recorded{GO_ON}" in result[1]
