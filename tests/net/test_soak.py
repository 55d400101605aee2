"""Does a server stay as it is while many clients play?"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

import corral

CONNECTIONS, ENVS = 64, 4


@pytest.mark.thorough
@pytest.mark.timeout(240)
@pytest.mark.parametrize("plain", [False, True])
def test_sixty_four_clients_leave_memory_and_descriptors_as_they_are(plain: bool) -> None:
    """For 60 seconds; the figures of `docs/netenv.md`, with `pytest -s`."""
    command = [sys.executable, "-m", "corral", "serve", "CartPole-v1", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        server = psutil.Process(process.pid)
        latencies: list[list[float]] = [[] for _ in range(CONNECTIONS)]
        failed: list[BaseException] = []
        began = time.monotonic()

        def play(number: int) -> None:
            try:
                envs = corral.connect(address, ENVS, plain=plain)
                envs.reset()
                actions = np.zeros(ENVS, np.int64)
                while time.monotonic() - began < 62:
                    before = time.perf_counter()
                    envs.step(actions)
                    latencies[number].append(time.perf_counter() - before)
                envs.close()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=play, args=(k,)) for k in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        seen = []
        for second in (10, 60):
            time.sleep(max(0.0, began + second - time.monotonic()))
            seen.append((server.memory_info().rss, server.num_fds()))
        for thread in threads:
            thread.join(30)
        process.terminate()
        assert process.wait(20) == 0
    assert not failed
    (first_rss, first_fds), (last_rss, last_fds) = seen
    all_latencies = np.concatenate([np.array(one) for one in latencies])
    print(
        f"\n{len(all_latencies)} steps, p50 {np.percentile(all_latencies, 50) * 1e3:.2f} ms, "
        f"p99 {np.percentile(all_latencies, 99) * 1e3:.2f} ms, "
        f"RSS {first_rss} to {last_rss}, {first_fds} descriptors, {os.cpu_count()} cores"
    )
    assert first_fds == last_fds
    assert last_rss < 1.05 * first_rss
