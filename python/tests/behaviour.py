#!/usr/bin/env python3
"""The package against the command line, its own promises on memory, and what is refused."""
import concurrent.futures
import gc
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest
from fractions import Fraction

import numpy

import espalier
from espalier import Schedule, Topology

COMMAND = os.environ.get("ESPALIER", "espalier")


def command(*words):
    done = subprocess.run([COMMAND, "--json", *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class AgainstTheCommand(unittest.TestCase):
    def test_bounds(self):
        for machine in ("dgx1v", "dgx1v-degraded", "dgx-a100-x2", "mi250"):
            for collective in ("all_reduce", "all_gather", "broadcast", "all_to_all"):
                words = command("bound", machine, collective)
                bound = espalier.bound(Topology.load(machine), collective)
                said = words["bounds"][0] if "bounds" in words else words.get("bound", words)
                self.assertEqual(bound.time_per_byte, Fraction(said["time_per_byte"]), (machine, collective))

    def test_simulations(self):
        for machine, collective, algorithm in (("dgx1v", "all_reduce", "ring"), ("dgx1v-degraded", "all_gather", "packing"),
                                               ("dgx-a100-x2", "all_reduce", "tree")):
            plan = espalier.plan(Topology.load(machine), collective, algorithm=algorithm)
            for size in ("64K", "64M"):
                row = command("simulate", machine, collective, "-a", algorithm, "-s", size, "--profile", "ideal")["results"][0]
                run = espalier.simulate(plan, size)
                self.assertEqual(run.time, row["time"], (machine, size))
                self.assertEqual((run.chunk, run.ahead), (row["chunk"], row["ahead"]))
                self.assertAlmostEqual(run.of_bound, row["of_bound"], places=12)
                self.assertAlmostEqual(run.busbw, row["busbw"], delta=1)

    def test_auto(self):
        chosen = espalier.plan(Topology.load("dgx1v-degraded"), "all_gather", size="256M").algorithm
        row = command("simulate", "dgx1v-degraded", "all_gather", "-a", "auto", "-s", "256M", "--profile", "ideal")["results"][0]
        self.assertEqual(chosen, row["planner"].split("/")[0])

    def test_plan_files_go_there_and_back(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="packing")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            plan.save(path)
            subprocess.run([COMMAND, "verify", str(path)], check=True, capture_output=True)
            back = Schedule.load(path)
        numpy.testing.assert_array_equal(back.slices, plan.slices)
        numpy.testing.assert_array_equal(back.transfers, plan.transfers)
        self.assertEqual(espalier.simulate(back, "1M").picoseconds, espalier.simulate(plan, "1M").picoseconds)


class Memory(unittest.TestCase):
    def setUp(self):
        self.plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")

    def test_views_are_the_memory_itself(self):
        for name in ("slices", "transfers"):
            first, second = getattr(self.plan, name), getattr(self.plan, name)
            self.assertEqual(first.ctypes.data, second.ctypes.data)
            self.assertFalse(first.flags.owndata)
            with self.assertRaises(ValueError):
                first[0] = first[1]
        run = espalier.simulate(self.plan, "1M", timeline=True)
        self.assertEqual(run.spans.ctypes.data, run.spans.ctypes.data)

    def test_views_keep_their_owner(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        transfers = plan.transfers
        before = transfers.copy()
        del plan
        for _ in range(20):
            gc.collect()
            bytearray(1 << 20)
        numpy.testing.assert_array_equal(transfers, before)

    def test_topology_outlives_its_name(self):
        plan = espalier.plan(Topology.generate("ring", [5]), "all_gather", algorithm="ring")
        gc.collect()
        self.assertEqual(plan.topology.rank_count, 5)
        self.assertEqual(plan.verify(), [])

    def test_spans_add_up(self):
        run = espalier.simulate(self.plan, "1M", timeline=True)
        self.assertEqual(int(run.spans["end"].max()), run.picoseconds)
        self.assertTrue((run.spans["begin"] <= run.spans["end"]).all())
        self.assertIsNone(espalier.simulate(self.plan, "1M").spans)


class OwnPlanner(unittest.TestCase):
    def chain(self, topology, order):
        """A broadcast along a chain, written by hand."""
        by_ends = {(link["tail"], link["head"]): index for index, link in enumerate(topology.links())}
        routes = [(a, b, [by_ends[a, b]]) for a, b in zip(order, order[1:])]
        return Schedule.from_arrays(topology, "broadcast", 1, [[0, 1, -1, -1]], routes,
                                    [[0, 1, i, 0, 0] for i in range(len(routes))], root=order[0])

    def test_right_and_wrong(self):
        line = Topology.generate("ring", [4])
        self.assertEqual(self.chain(line, [0, 1, 2, 3]).verify(), [])
        breaches = self.chain(line, [0, 1, 2]).verify()
        self.assertEqual({breach.rule for breach in breaches}, {"S7"})
        wrong = self.chain(line, [0, 1, 2, 3])
        self.assertAlmostEqual(wrong.link_loads.max(), 1)
        self.assertEqual(wrong.load_time, Fraction(1, 25_000_000_000))

    def test_numbers_out_of_range_are_refused(self):
        ring = Topology.generate("ring", [4])
        for routes, transfers in (([(0, 9, [0])], [[0, 1, 0, 0, 0]]), ([(0, 1, [99])], [[0, 1, 0, 0, 0]]),
                                  ([(0, 1, [0])], [[0, 1, 7, 0, 0]]), ([(0, 1, [0])], [[5, 1, 0, 0, 0]]),
                                  ([(0, 1, [0])], [[0, 9, 0, 0, 0]]), ([(0, 1, [0])], [[0, 1, 0, -1, 0]])):
            with self.assertRaises(espalier.Error):
                Schedule.from_arrays(ring, "broadcast", 1, [[0, 1, -1, -1]], routes, transfers, root=0)


class Refusals(unittest.TestCase):
    def test_roots_that_are_no_ranks(self):
        machine = Topology.load("dgx1v")
        for root in (-1, -2, -8, 8, 1 << 40):
            for call in (lambda: espalier.bound(machine, "broadcast", root=root),
                         lambda: espalier.plan(machine, "broadcast", algorithm="tree", root=root),
                         lambda: Schedule.from_arrays(machine, "broadcast", 1, [[0, 1, -1, -1]], [], [], root=root)):
                with self.assertRaisesRegex(espalier.Error, f"root {root} is not one of the 8 ranks"):
                    call()

    def test_errors_say_code_and_help(self):
        with self.assertRaises(espalier.Error) as raised:
            espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="pakcing")
        self.assertEqual(raised.exception.code, "invalid_input")
        self.assertIn("packing", raised.exception.help)
        for wrong in (lambda: Topology.load("dgx9"), lambda: Topology.from_yaml("espalier: 1\nnodes: 3"),
                      lambda: espalier.bound(Topology.load("dgx1v"), "broadcast", root=8),
                      lambda: espalier.bound(Topology.load("dgx1v"), "all_reduce", root=1),
                      lambda: espalier.parse_size("many"), lambda: Topology.generate("ball", [3]),
                      lambda: espalier.simulate(espalier.plan(Topology.load("dgx1v"), "all_reduce", "ring"), 6)):
            with self.assertRaises(espalier.Error):
                wrong()

    def test_interrupted(self):
        timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                espalier.plan(Topology.load("dgx-h100-x4"), "all_reduce", size="1M")
        timer.cancel()


class Threads(unittest.TestCase):
    def test_many_at_once_give_the_same(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        alone = [run.picoseconds for run in espalier.simulate(plan, [1 << power for power in range(10, 26)])]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda power: espalier.simulate(plan, 1 << power).picoseconds, range(10, 26)))
        self.assertEqual(alone, together)


if __name__ == "__main__":
    unittest.main()
