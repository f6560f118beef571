"""keep(), release() and list(), asked of the real service on a bus of its own."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import unittest
from unittest import mock

from machine import (
    ROOT, USER, Machine, eventually, is_reserved, need_package, need_root, threads,
)
import onbeat
from onbeat import _service


class Service(unittest.TestCase):
    def setUp(self):
        need_package("jeepney")
        need_root()
        self.machine = Machine(self)
        address = {"DBUS_SYSTEM_BUS_ADDRESS": self.machine.address}
        change = mock.patch.dict(os.environ, address)
        change.start()
        self.addCleanup(change.stop)
        self.addCleanup(_service._connection.close)

    def refused(self, name, call, *arguments):
        with self.assertRaises(onbeat.ServiceError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.name, name)
        return raised.exception

    def test_a_program_is_kept_listed_and_released(self):
        self.machine.start()
        program = self.machine.beat(USER)
        onbeat.keep(program.pid)
        reserved = lambda: [one for one in threads(program.pid) if is_reserved(one)]
        thread, *_ = eventually("a reservation", reserved)
        of_thread = lambda one: (one["thread"] == thread and one["state"] == "kept"
                                 and abs(one["period_ns"] / 20e6 - 1) < 0.2)
        kept, = eventually("its state", lambda: [one for one in onbeat.list() if of_thread(one)])
        self.assertEqual(kept["process"], program.pid)
        # Its payer, who asked for it.
        self.assertEqual(kept["user"], 0)
        page = (ROOT / "docs/python.md").read_text()
        self.assertEqual([field for field in kept if f"`{field}`" not in page], [])
        served = lambda: [one for one in onbeat.applications() if one["by_reservation"] == 1]
        application, = eventually("its application", served)
        self.assertEqual(application["pid"], kept["application"])
        onbeat.release(program.pid)
        eventually("the way back", lambda: not is_reserved(thread))
        error = self.refused("NotHeld", onbeat.release, program.pid)
        self.assertEqual(error.task, program.pid)
        self.assertIn(f"cannot release task {program.pid}", str(error))
        self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))

    def test_an_audio_thread_has_a_reservation_or_realtimekits_priority(self):
        configuration = self.machine.folder / "onbeat.toml"
        with open(configuration, "a") as file:
            file.write("[realtimekit]\nwithout-polkit = true\n")
        self.machine.start()
        # More than half a CPU is not the user's.
        for budget, means, policy in (
            (None, "watched", os.SCHED_OTHER), (1_000_000, "reserved", 6),
            (8_000_000, "priority", os.SCHED_RR),
        ):
            told = lambda: self.machine.python(USER, f"""
import os, onbeat
means = onbeat.keep_audio_thread(480, 48000, {budget})
print(means, os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
""")
            # Other programs of the machine may have the room for a while.
            eventually(means, lambda: told().split() == [means, str(int(policy))])

    def test_what_a_process_keeps_ends_with_it_and_not_with_its_fork(self):
        self.machine.start()
        program = self.machine.beat(USER)
        # The child would hold its parent's connection open, if it had a part in it.
        child = self.machine.python(USER, f"""
import os, time, onbeat
onbeat.keep({program.pid})
while not onbeat.list():
    time.sleep(0.05)
child = os.fork()
if not child:
    os.close(1); os.close(2)
    time.sleep(1000)
print(child)
""")
        self.addCleanup(os.kill, int(child), signal.SIGKILL)
        eventually("an empty list", lambda: not onbeat.list())
        os.kill(int(child), 0)

    def test_a_fork_has_a_connection_of_its_own(self):
        self.machine.start()
        program = self.machine.beat(USER)
        onbeat.keep(program.pid)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            error = pool.apply(release_and_tell, (program.pid,))
        self.assertIn("was not tracked from this connection", error)
        onbeat.release(program.pid)

    def test_refusals_say_what_happened_and_to_which_task(self):
        self.machine.start()
        sleeper = self.machine.spawn("sleep", "1000")
        told = self.machine.python(USER, f"""
import onbeat
try:
    onbeat.keep({sleeper.pid})
except onbeat.ServiceError as error:
    print(error.name, error.task, error)
""")
        self.assertTrue(told.startswith(f"NotPermitted {sleeper.pid} cannot keep task"), told)
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.refused("NoSuchTask", onbeat.keep, ended.pid)
        for wrong in (0, -1, 2**31, 2**70, True, "7", None, 7.0):
            with self.assertRaises(ValueError):
                onbeat.keep(wrong)

    def test_a_missing_service_or_bus_is_told_and_found_again(self):
        error = self.refused("Unreachable", onbeat.list)
        self.assertIn("systemctl enable --now onbeat", str(error))
        self.machine.start()
        self.assertEqual(onbeat.list(), [])
        self.machine.bus.kill()
        self.machine.bus.wait()
        self.assertIn("the bus was lost", str(self.refused("Unreachable", onbeat.list)))
        self.assertIn("no system bus", str(self.refused("Unreachable", onbeat.keep, 1)))

    def test_a_service_that_does_not_answer_is_given_up(self):
        service = self.machine.start()
        self.assertEqual(onbeat.list(), [])
        service.send_signal(signal.SIGSTOP)
        with mock.patch.object(_service, "_PATIENCE_S", 0.2):
            error = self.refused("Unreachable", onbeat.keep, os.getpid())
        service.send_signal(signal.SIGCONT)
        self.assertIn("has not answered", str(error))
        # It may hear of the call now, but its caller has left.
        eventually("an empty list", lambda: not onbeat.list())


def release_and_tell(pid):
    try:
        onbeat.release(pid)
    except onbeat.ServiceError as error:
        return str(error)
    return "released"


class Without(unittest.TestCase):
    def test_calls_without_jeepney_say_what_to_install(self):
        with mock.patch.dict(sys.modules, {"jeepney": None}):
            with self.assertRaisesRegex(onbeat.MissingPackageError, "apt install python3-jeepney"):
                onbeat.list()

