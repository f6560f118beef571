"""What the tests share: the built programs, and a bus of its own with the service on it."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
_DEBUG = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
ONBEAT = _DEBUG / "onbeat"
WORKLOAD = _DEBUG / "examples" / "workload"

# How long something that must come may take on a stalled machine.
PATIENCE_S = 60
# `games`, a user whom every Debian knows and nobody uses.
USER = 5

_BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""


def need(condition, reason):
    """Skips the test with its reason, unless this is so."""
    if not condition:
        raise unittest.SkipTest(reason)


def need_package(name):
    try:
        __import__(name)
    except ModuleNotFoundError:
        need(False, f"the package {name} is not installed: apt install python3-{name}")


def need_root():
    need(os.geteuid() == 0, "it needs root")


def built(file, how):
    need(file.exists(), f"{file.name} is not built: {how}")
    return file


def onbeat():
    return built(ONBEAT, "cargo build -p onbeat")


def workload():
    return built(WORKLOAD, "cargo build -p onbeat --example workload")


def eventually(what, condition):
    """Waits until `condition` gives something."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() - began > PATIENCE_S:
            raise AssertionError(f"{what} did not come")
        # A user may make 100 calls of the service a second.
        time.sleep(0.05)


def is_reserved(thread):
    """Whether the thread is under SCHED_DEADLINE: field 41 of its stat."""
    try:
        stat = pathlib.Path(f"/proc/{thread}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[38] == "6"


def threads(process):
    return [int(name) for name in os.listdir(f"/proc/{process}/task")]


class Machine:
    """A bus, and the service once it is started; all of it ends with the test."""

    def __init__(self, test):
        need_root()
        need(shutil.which("dbus-daemon"), "dbus-daemon is not installed")
        onbeat()
        self._test = test
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.address = f"unix:path={self.folder}/bus"
        (self.folder / "bus.conf").write_text(_BUS.format(folder=self.folder))
        (self.folder / "onbeat.toml").write_text("always = true\n")
        # What users run must be where they may read it.
        shutil.copytree(HERE.parent / "onbeat", self.folder / "onbeat")
        configuration = self.folder / "bus.conf"
        self.bus = self.spawn(
            "dbus-daemon", "--nofork", "--config-file", configuration, stderr=subprocess.DEVNULL
        )
        # Its socket is there before it listens.
        eventually("the bus", self._listens)

    def _listens(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(self.folder / "bus")) == 0

    def environment(self):
        return {
            **os.environ,
            "DBUS_SYSTEM_BUS_ADDRESS": self.address,
            "ONBEAT_STATE_DIR": str(self.folder / "state"),
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def spawn(self, *command, **options):
        process = subprocess.Popen([str(word) for word in command], **options)
        self._test.addCleanup(end, process)
        return process

    def start(self):
        """Starts the service, and waits until it serves."""
        log = self.folder / "log"
        with open(log, "wb") as file:
            service = self.spawn(
                onbeat(), "daemon", "--config", self.folder / "onbeat.toml",
                env=self.environment(), stderr=file,
            )
        serves = lambda: "serving" in log.read_text() or service.poll() is not None
        eventually("the service", serves)
        self._test.assertIsNone(service.poll(), log.read_text())
        return service

    def beat(self, uid):
        """A program of this user's with a thread of 50 Hz."""
        command = shutil.copy(workload(), self.folder / "workload")
        return self.spawn(*_as(uid), command, "beat:20000/1000", stdout=subprocess.DEVNULL)

    def python(self, uid, code):
        """What a Python program of this user's prints."""
        ran = subprocess.run(
            [*_as(uid), sys.executable, "-c", code], env=self.environment(), cwd=self.folder,
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )
        self._test.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout


def _as(uid):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]


def end(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
