"""``rackwise notify test``, and an agent with a target, as processes of their own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.command import RACKWISE, ROOT, environment, rackwise
from tests.notify.receivers import receiver

CANARY = "CANARYq7Zx2Wv9"


def settings_file(folder: Path, **urls: str) -> Path:
    lines = ["http:", "  url: https://page.example.org", "notify:", "  group_for: 0s", "  targets:"]
    for name, url in urls.items():
        file = folder / f"{name}.url"
        file.write_text(url)
        file.chmod(0o600)
        lines += [f"    {name}:", f"      url_file: {file}"]
    path = folder / "rackwise.yaml"
    path.write_text("\n".join(lines))
    return path


def test_each_target_gets_one_message_and_its_answer_is_a_row(tmp_path: Path) -> None:
    with receiver() as well, receiver(503) as broken:
        path = settings_file(
            tmp_path, ops=f"json://{well.address}/{CANARY}", pager=f"json://u:{CANARY}@{broken.address}/"
        )
        done = rackwise("notify", "test", "-c", str(path), "-o", "json")
    assert [(row["target"], row["service"], row["accepted"], row["answer"]) for row in done.json] == [
        ("ops", "JSON", True, "accepted"),
        ("pager", "JSON", False, "not accepted: HTTP 503 Service Unavailable"),
    ]
    assert done.exit_code == 5
    assert (len(well.requests), len(broken.requests)) == (1, 1)
    assert well.documents[0]["title"] == "rackwise: test message"
    assert well.documents[0]["message"].splitlines()[-1] == "https://page.example.org"
    assert CANARY not in done.stdout + done.stderr


def test_one_target_can_be_named_and_success_is_exit_code_0(tmp_path: Path) -> None:
    with receiver() as one, receiver() as other:
        path = settings_file(tmp_path, one=f"json://{one.address}/x", other=f"json://{other.address}/x")
        done = rackwise("notify", "test", "--target", "one", "-c", str(path), "-o", "table")
    assert (done.exit_code, len(one.requests), len(other.requests)) == (0, 1, 0)
    assert "accepted" in done.stdout


def test_without_a_target_there_is_one_sentence() -> None:
    done = rackwise("notify", "test", "-o", "table")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "No message was sent" in done.stderr
    assert "notify.targets names no target that is enabled" in done.stderr


@pytest.mark.parametrize("command", [("notify", "test"), ("config", "check"), ("run", "-b", "127.0.0.1:9")])
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_an_address_that_cannot_be_used_ends_with_exit_code_2_and_is_not_shown(
    tmp_path: Path, command: tuple[str, ...], debug: tuple[str, ...]
) -> None:
    path = settings_file(tmp_path, ops=f"slack://{CANARY}")
    done = rackwise(*debug, *command, "-c", str(path))
    assert done.exit_code == 2
    assert "notify.targets.ops: its address cannot be used" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_an_agent_that_reaches_no_broker_says_so_and_its_log_and_metrics_have_no_secret(tmp_path: Path) -> None:
    with receiver() as held:
        path = settings_file(tmp_path, ops=f"json://u:{CANARY}@{held.address}/{CANARY}")
        flags = ("--set", "process.stall_after=10s", "--set", "http.port=0", "--set", "log.format=json")
        agent = subprocess.Popen(
            [*RACKWISE, "run", "-c", str(path), "-b", "127.0.0.1:9", *flags, "--set", "log.level=debug"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
        )  # fmt: skip
        try:
            held.wait(1, within_s=60)
            assert agent.stderr is not None
            log = next(line for line in agent.stderr if '"listening"' in line)
            found = re.search(r"127\.0\.0\.1:\d+", log)
            assert found is not None
            with urllib.request.urlopen(f"http://{found[0]}/metrics", timeout=10) as page:
                metrics = page.read().decode()
        finally:
            agent.send_signal(signal.SIGTERM)
            _, rest = agent.communicate(timeout=30)
    [document] = held.documents
    assert "has not observed the cluster for 10 s" in document["message"]
    assert 'rackwise_notifications_total{outcome="sent"}' in metrics
    assert CANARY not in log + rest + metrics
    assert json.loads(log)["event"] == "listening"
