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
from typing import Annotated

import typer

from corral import errors, netenv
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
    max_connections: Annotated[int, typer.Option(min=1)] = 64,
    max_envs: Annotated[int, typer.Option(min=1, help="In all connections.")] = 65536,
    idle_timeout: Annotated[
        float, typer.Option(help="Seconds that a client may be silent.")
    ] = 10.0,
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
    """Serve envs by netenv, until Ctrl-C or SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with errors_told():
        server = netenv.serve(
            ids,
            [*(addr or ()), *(f"unix:{path}" for path in unix or ())] or ["127.0.0.1:2345"],
            max_connections=max_connections,
            max_envs=max_envs,
            idle_timeout=idle_timeout,
            token_file=token_file,
            tls=tls,
            certificate=certificate,
            key=key,
            insecure=insecure,
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
            out.print(f"{', '.join(ids)} at {address}", markup=False, soft_wrap=True)
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


GAUGES = ("connections", "envs")


def prometheus(counts: dict[str, int]) -> str:
    """Counts in Prometheus' text format."""
    lines = []
    for name, count in counts.items():
        kind, end = ("gauge", "") if name in GAUGES else ("counter", "_total")
        lines += [f"# TYPE corral_netenv_{name}{end} {kind}", f"corral_netenv_{name}{end} {count}"]
    return "\n".join(lines) + "\n"


@contextmanager
def told(server: netenv.Server, port: int | None) -> Iterator[None]:
    """Answers each GET at the port on loopback with the server's counts."""
    if port is None:
        yield
        return

    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            text = prometheus(server.metrics()).encode()
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
