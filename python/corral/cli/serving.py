"""`corral serve`."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from corral import errors, netenv, openenv
from corral.cli.app import app, err, errors_told, out


@app.command("serve")
def serve_envs(
    ids: Annotated[
        list[str],
        typer.Argument(
            help="Ids of `corral list`; who names none gets the first.", metavar="ID..."
        ),
    ],
    addr: Annotated[
        list[str] | None,
        typer.Option(
            help="host:port; port 0 lets the system choose. May be given more than once. "
            "127.0.0.1:2345 without any --addr and --unix."
        ),
    ] = None,
    unix: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A Unix socket, as --addr.")
    ] = None,
    max_connections: Annotated[int | None, typer.Option(min=1, show_default="64")] = None,
    max_envs: Annotated[
        int | None, typer.Option(min=1, help="In all connections.", show_default="65536")
    ] = None,
    idle_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that a client may be silent.", show_default="10, OpenEnv: 300"),
    ] = None,
    for_openenv: Annotated[
        bool,
        typer.Option("--openenv", help="Serve OpenEnv's clients: one id, an env for each session."),
    ] = False,
    max_sessions: Annotated[
        int | None, typer.Option(min=1, help="With --openenv.", show_default="256")
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Counts as Prometheus reads them, on loopback."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the secret that clients show; or CORRAL_NETENV_TOKEN."),
    ] = None,
    tls: Annotated[
        bool, typer.Option("--tls", help="Encrypt, by a pair made now; its fingerprint is printed.")
    ] = False,
    certificate: Annotated[Path | None, typer.Option(help="A PEM file, for TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's key, a PEM file.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve at an address that other machines reach.")
    ] = False,
) -> None:
    """Serve envs by netenv, or to OpenEnv's clients, until Ctrl-C or SIGTERM.

    Example: corral serve CartPole-v1 --addr 127.0.0.1:0
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    limits: dict[str, Any] = {
        "max_connections": max_connections,
        "max_envs": max_envs,
        "idle_timeout": idle_timeout,
        "max_sessions": max_sessions,
    }
    with errors_told():
        server: netenv.Server | openenv.Server = netenv.serve(
            served(ids, for_openenv, limits),
            [*(addr or ()), *(f"unix:{path}" for path in unix or ())] or ["127.0.0.1:2345"],
            protocol="openenv" if for_openenv else "netenv",
            token_file=token_file,
            tls=tls,
            certificate=certificate,
            key=key,
            insecure=insecure,
            **{name: limit for name, limit in limits.items() if limit is not None},
        )
    ending = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ending
        ending = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    with server, told(server, metrics):
        if server.fingerprint is not None:
            out.print(f"fingerprint {server.fingerprint}", markup=False, soft_wrap=True)
        for address in server.addresses:
            where = address
            if for_openenv:
                where = f"http{'s' if server.fingerprint else ''}://{address}"
            out.print(f"{', '.join(ids)} at {where}", markup=False, soft_wrap=True)
        sys.stdout.flush()
        if not err.is_terminal:
            while not ending:
                time.sleep(0.05)
            return
        with err.status("") as line:
            while not ending:
                counts = server.metrics()
                line.update(
                    "{connections} connections, {envs} envs, {steps} steps".format(**counts)
                )
                time.sleep(0.1)


def served(ids: list[str], for_openenv: bool, limits: dict[str, Any]) -> Any:
    """What is served by these ids. Raises for limits of the other protocol."""
    others = ("max_connections", "max_envs") if for_openenv else ("max_sessions",)
    for name in others:
        if limits[name] is not None:
            option = "--" + name.replace("_", "-")
            goes = "without" if for_openenv else "with"
            raise errors.ArgumentError(f"{option} goes {goes} --openenv")
    if for_openenv and len(ids) > 1:
        raise errors.ArgumentError(
            f"--openenv serves one id, not {len(ids)}: start a server for each"
        )
    return ids[0] if for_openenv else ids


GAUGES = ("connections", "envs")


def prometheus(protocol: str, counts: dict[str, int]) -> str:
    """Counts in Prometheus' text format."""
    lines = []
    for name, count in counts.items():
        kind, end = ("gauge", "") if name in GAUGES else ("counter", "_total")
        full = f"corral_{protocol}_{name}{end}"
        lines += [f"# TYPE {full} {kind}", f"{full} {count}"]
    return "\n".join(lines) + "\n"


@contextmanager
def told(server: netenv.Server | openenv.Server, port: int | None) -> Iterator[None]:
    """Answers each GET at the port on loopback with the server's counts."""
    if port is None:
        yield
        return

    protocol = "openenv" if isinstance(server, openenv.Server) else "netenv"

    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            text = prometheus(protocol, server.metrics()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with errors_told():
        try:
            listening = ThreadingHTTPServer(("127.0.0.1", port), Page)
        except (OSError, OverflowError) as error:
            raise errors.ArgumentError(f"no metrics at port {port}: {error}") from None
    with listening as pages:
        pages.daemon_threads = True
        out.print(f"metrics at http://127.0.0.1:{pages.server_address[1]}", markup=False)
        sys.stdout.flush()
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            pages.shutdown()
