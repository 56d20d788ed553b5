#!/usr/bin/env python3
"""Recorded training steps (examples/step_timeline.py): how their time is counted, and that their simulation computes the same."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import step_timeline  # noqa: E402
from step_timeline import StepRecorder, account, chakra_of, simulate_step, write_scenario  # noqa: E402

import espalier  # noqa: E402

PARTS = ("compute", "exposed", "waiting", "idle")


class Clock:
    """Microseconds that pass when the test says so."""

    def __init__(self):
        self.now = 0

    def monotonic_ns(self):
        return self.now * 1000


def tensor_of(size):
    return types.SimpleNamespace(numel=lambda: size // 4, element_size=lambda: 4)


def record(compute, late):
    """A rank that computes, starts an all_reduce, computes on beside it, waits for its end, sends or receives, and computes."""
    clock = Clock()
    with mock.patch.object(step_timeline, "time", clock):
        recorder = StepRecorder()
        assert recorder.begin("all_reduce", tensor_of(8)) is None  # Before the step.
        with recorder.blocked(None), recorder.step():
            recorder.new_phase("forward")
            clock.now += compute
            call = recorder.begin("all_reduce", tensor_of(2**20))
            recorder.new_phase("backward")
            clock.now += 200
            with recorder.blocked(call):
                clock.now = 1500
            clock.now += late
            kind, peer = ("send", 1) if late else ("receive", 0)
            with recorder.blocked(recorder.begin(kind, tensor_of(4096), peer, 7)):
                clock.now = 1800
            recorder.new_phase("optimizer")
            clock.now += 50
        return recorder.steps[0]


class Steps(unittest.TestCase):
    def setUp(self):
        self.events = [record(500, 100), record(900, 0)]

    def test_time_is_counted_as_scenarios_count_it(self):
        # Rank 0 computes until 700 and waits until rank 1 comes at 900; the call moves until 1500. Rank 1 comes to the message at 1500,
        # rank 0 at 1600.
        counted = account(self.events)
        self.assertAlmostEqual(counted["step"], 1850e-6)
        expected = [{"compute": 850, "exposed": 800, "waiting": 200, "idle": 0}, {"compute": 1150, "exposed": 600, "waiting": 100, "idle": 0}]
        for rank, times in enumerate(expected):
            for part in PARTS:
                self.assertAlmostEqual(counted["ranks"][rank][part], times[part] * 1e-6, msg=(rank, part))

    def test_what_comes_after_what(self):
        kinds = [(event.kind, event.name, event.after) for event in self.events[0]]
        self.assertEqual(kinds, [("compute", "forward", []), ("all_reduce", "all_reduce", [0]), ("compute", "backward", [0]),
                                 ("compute", "backward", [2, 1]), ("send", "send", [3]), ("compute", "optimizer", [3, 4])])

    def test_the_simulation_computes_as_long(self):
        machine = espalier.Topology.load("one-host", ranks=2)
        with tempfile.TemporaryDirectory() as folder:
            write_scenario(self.events, machine, folder)
            simulated = simulate_step(self.events, folder)
            trace = json.loads(pathlib.Path(folder, "timeline.json").read_text())["traceEvents"]
        for ours, theirs in zip(account(self.events)["ranks"], simulated["ranks"]):
            self.assertAlmostEqual(ours["compute"], theirs["compute"], places=9)
            self.assertAlmostEqual(sum(theirs[part] for part in PARTS), simulated["step"], places=9)
        # 1 MiB over links of 20 GB/s ends while rank 1 computes its 200 us, and rank 0's message is there before them: 900 + 200 + 50.
        self.assertAlmostEqual(simulated["step"], 1150e-6, places=9)
        names = {event["args"]["name"] for event in trace if event["name"] == "process_name"}
        self.assertEqual(names, {"measured rank 0", "measured rank 1", "simulated rank0", "simulated rank1"})
        self.assertEqual({event["pid"] for event in trace if event["name"] == "all_reduce"}, {0, 1, 2, 3})

    def test_without_the_command_it_is_said(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", {"PATH": folder}, clear=True):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertIsNone(simulate_step(self.events, folder))
            self.assertIn("espalier simulate --scenario", said.getvalue())

    def test_numbers_of_a_trace_take_several_bytes(self):
        event = step_timeline.Event(0, "all_reduce", "all_reduce", 0, 1, [1, 200], 2**20)
        self.assertIn(b"\x2a\x03\x01\xc8\x01", chakra_of([event]))  # Field 5, 3 bytes: 1 and 200 = 0x48 | 0x80, 1.


if __name__ == "__main__":
    unittest.main()
