"""Does nobody get in who should not?"""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corral
from corral import errors
from tests.net.recorded import dial
from tests.net.test_faults import held, init, is_cut
from tests.net.waiting import until

ADDR = ("127.0.0.1", 0)
ENV = "CartPole-v1"


def plays(envs: Any) -> bool:
    """Steps, and shows what the same env shows here."""
    assert envs.reset()[0].shape == (2, 4)
    assert envs.step(np.zeros(2, np.int64))[1].tolist() == [1.0, 1.0]
    envs.close()
    return True


def test_a_pinned_server_is_used_and_any_other_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "corral.netenv")
    with corral.serve(ENV, ADDR, tls=True) as server, corral.serve(ENV, ADDR, tls=True) as other:
        assert server.fingerprint is not None
        assert server.fingerprint != other.fingerprint
        assert plays(corral.connect(server.address, 2, fingerprint=server.fingerprint))
        with pytest.raises(errors.EnvError, match="another fingerprint"):
            corral.connect(server.address, 2, fingerprint=other.fingerprint)
        assert until(lambda: held(server) == (0, 0))


def test_plain_bytes_to_a_port_of_tls_and_tls_to_a_plain_port_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "corral.netenv")
    with corral.serve(ENV, ADDR, tls=True) as server, corral.serve(ENV, ADDR) as plain:
        with dial(server) as connection:
            connection.sendall(init(2))
            assert is_cut(connection)
        with pytest.raises(errors.EnvError, match="no envs from the netenv server"):
            corral.connect(server.address, 2, connect_timeout=20)
        assert until(lambda: "no TLS" in caplog.text)
        with pytest.raises(errors.EnvError, match="no envs from the netenv server"):
            corral.connect(plain.address, 2, fingerprint=server.fingerprint, connect_timeout=20)
        assert plays(corral.connect(server.address, 2, fingerprint=server.fingerprint))
        assert until(lambda: held(server) == held(plain) == (0, 0))


def test_a_client_that_is_silent_in_tls_is_closed() -> None:
    with corral.serve(ENV, ADDR, tls=True, idle_timeout=0.2) as server:
        for said in (b"", b"\x16\x03\x01"):
            with dial(server) as connection:
                connection.sendall(said)
                assert is_cut(connection)
        assert until(lambda: held(server) == (0, 0))


def test_a_token_and_tls_open_an_address_that_others_reach(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("correct horse battery staple")
    for some in ({"tls": True}, {"token_file": token}):
        with pytest.raises(errors.ArgumentError, match="other machines reach"):
            corral.netenv.Server("0.0.0.0:0", ENV, **some)
    with corral.netenv.Server("0.0.0.0:0", ENV, token_file=token, tls=True) as server:
        port = server.listen()[1]
        pin = server.fingerprint
        assert plays(corral.connect(("127.0.0.1", port), 2, fingerprint=pin, token_file=token))
        with pytest.raises(errors.EnvError, match="closed the connection"):
            corral.connect(("127.0.0.1", port), 2, fingerprint=pin)


def test_many_bytes_go_through(tmp_path: Path) -> None:
    make: Callable[..., Any] = lambda num_envs: corral.make_vec("Maze-v0", num_envs, seed=3)  # noqa: E731
    with corral.serve(make, ADDR, tls=True) as server:
        here = corral.make_vec("Maze-v0", 40, seed=3, autoreset_mode="same_step")
        there = corral.connect(server.address, 40, fingerprint=server.fingerprint)
        np.testing.assert_array_equal(there.reset()[0], here.reset()[0])
        for _ in range(5):
            actions = here.action_space.sample()
            np.testing.assert_array_equal(there.step(actions)[0], here.step(actions)[0])
        there.close()


def openssl(*arguments: str, cwd: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)


def pair(cwd: Path, days: str) -> dict[str, Any]:
    """A certificate for localhost that is its own authority, and its key."""
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")
    leaf = ("-addext", "basicConstraints=critical,CA:FALSE")
    openssl(
        *("req", "-x509", *kind, *name, *leaf, "-days", days, "-keyout", "key", "-out", "pem"),
        cwd=cwd,
    )
    return {"certificate": cwd / "pem", "key": cwd / "key"}


def test_a_certificate_of_somebodys_is_checked_by_its_authority_and_its_name(
    tmp_path: Path,
) -> None:
    files = pair(tmp_path, "2")
    with corral.serve(ENV, ADDR, **files) as server:
        assert plays(corral.connect(server.address, 2, authority=files["certificate"]))
        assert plays(corral.connect(server.address, 2, fingerprint=server.fingerprint))
    (tmp_path / "other").mkdir()
    other = pair(tmp_path / "other", "2")
    with (
        corral.serve(ENV, ADDR, **other) as server,
        pytest.raises(errors.EnvError, match="invalid peer certificate"),
    ):
        corral.connect(server.address, 2, authority=files["certificate"])


EXPIRED = """
[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = leaf
[any]
commonName = supplied
[leaf]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
"""


def test_a_certificate_that_has_expired_is_refused(tmp_path: Path) -> None:
    files = pair(tmp_path, "2")
    (tmp_path / "config").write_text(EXPIRED)
    (tmp_path / "index").write_text("")
    (tmp_path / "serial").write_text("01\n")
    openssl(*("req", "-new", "-key", "key", "-subj", "/CN=localhost", "-out", "csr"), cwd=tmp_path)
    past = ("-startdate", "20200101000000Z", "-enddate", "20210101000000Z")
    how = ("-batch", "-selfsign", "-notext", "-config", "config", "-keyfile", "key", *past)
    openssl("ca", *how, "-in", "csr", "-out", "pem", cwd=tmp_path)
    with corral.serve(ENV, ADDR, **files) as server:
        for trust in ({"authority": files["certificate"]}, {"fingerprint": server.fingerprint}):
            with pytest.raises(errors.EnvError, match="expired"):
                corral.connect(server.address, 2, **trust)


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    with pytest.raises(errors.ArgumentError, match="empty: there is no certificate"):
        corral.serve(ENV, ADDR, certificate=empty, key=empty)
    with pytest.raises(errors.ArgumentError, match="belong together"):
        corral.serve(ENV, ADDR, certificate=empty)
    with pytest.raises(errors.ArgumentError, match="no SHA-256"):
        corral.connect("127.0.0.1:1", 2, fingerprint="abc")
