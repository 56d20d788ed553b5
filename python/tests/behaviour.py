#!/usr/bin/env python3
"""The package against the command line, its own promises on memory, and what is refused."""
import concurrent.futures
import copy
import gc
import json
import multiprocessing
import os
import pathlib
import pickle
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

    def test_experts(self):
        for words, named in ((["dgx-h100", "--tokens", "4096", "--sms", "24"], {"tokens": 4096, "sms": 24}),
                             (["dgx-h100-x4", "--software", "deepep-low-latency", "--first", "16"], {"software": "deepep-low-latency", "ranks": 16}),
                             (["gb200-nvl72", "--software", "trtllm-nvlink", "--dispatch", "nvfp4"], {"software": "trtllm-nvlink", "dispatch": "nvfp4"})):
            said = command("experts", *words)["exchanges"][0]
            found = espalier.experts(Topology.load(words[0]), **named)
            self.assertEqual(found, {name: said[name] for name in found})
        machine = Topology.load("dgx-h100")
        for wrong in ({"tokens": "many"}, {"tokens": 2**70}, {"tokens": -1}, {"software": "deepep"}, {"gpu": 5}, {"ranks": 9}, {"ranks": -1}, {"top_k": 0}):
            with self.assertRaises(espalier.Error, msg=wrong):
                espalier.experts(machine, **wrong)

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


class Verified(unittest.TestCase):
    """Nothing that breaks a rule is simulated, whichever way it is asked for."""

    def setUp(self):
        self.topology = Topology.load("dgx1v")
        ring = espalier.plan(self.topology, "all_reduce", algorithm="ring")
        whole = [(row["first_slice"], row["slice_count"], row["route"], row["channel_and_reduces"] & 0x7FFFFFFF,
                  row["channel_and_reduces"] >> 31) for row in ring.transfers]
        slices = [(row["offset"], row["length"], -1, -1) for row in ring.slices]
        self.arrays = (self.topology, "all_reduce", ring.units, slices, ring.routes)
        self.ring, self.whole, self.half = ring, whole, Schedule.from_arrays(*self.arrays, whole[::2])

    def test_a_ring_without_half_of_its_transfers_is_refused(self):
        self.assertEqual(espalier.simulate(Schedule.from_arrays(*self.arrays, self.whole), "1M").picoseconds,
                         espalier.simulate(self.ring, "1M").picoseconds)
        for simulated in (lambda: espalier.simulate(self.half, "1M"), lambda: espalier.Simulator(self.half),
                          lambda: espalier.simulate(self.half, ["1M", "2M"]), lambda: espalier.simulate([self.half], "1M"),
                          lambda: espalier.simulate(self.half, "1M", profile="nccl-volta"),
                          lambda: espalier.simulate(pickle.loads(pickle.dumps(self.half)), "1M"),
                          lambda: espalier.calibrate(self.topology, [(self.half, "1M", 1e-3, "64K")], hold_out=0)):
            with self.assertRaises(espalier.Error) as caught:
                simulated()
            self.assertRegex(caught.exception.message, "schedule breaks rule S[5-7]")

    def test_what_is_not_verified_says_so(self):
        self.assertLess(espalier.Simulator.unverified(self.half).run("1M").time, espalier.simulate(self.ring, "1M").time)

    def test_loads_are_of_slices_that_tile_the_buffer(self):
        two = Topology.generate("ring", [2])
        # Slices that reach past the buffer, and begin before it, would carry numbers that no sum holds.
        for slices in ([[0, 2**62, -1, -1], [-2**62, 2**62, -1, -1]], [[-5, 1, -1, -1]], [[0, -1, -1, -1]]):
            wrong = Schedule.from_arrays(two, "broadcast", 2**62, slices, [(0, 1, [0])], [(0, 1, 0, 0, 0)] * 3, root=0)
            for asked in (lambda: wrong.link_loads, lambda: wrong.load_time, lambda: espalier.Simulator.unverified(wrong), wrong.to_json):
                with self.assertRaises(espalier.Error) as caught:
                    asked()
                self.assertIn("breaks rule S2", caught.exception.message)
        # A part of a schedule has loads: three transfers of the whole buffer over one link.
        part = Schedule.from_arrays(two, "broadcast", 2**62, [[0, 2**62, -1, -1]], [(0, 1, [0])], [(0, 1, 0, 0, 0)] * 3, root=0)
        self.assertEqual((part.link_loads[0], part.link_loads.sum()), (3, 3))


class Arrays(unittest.TestCase):
    def test_only_whole_numbers_in_rows_of_the_right_length(self):
        two = Topology.generate("ring", [2])

        def made(units=1, slices=((0, 1, -1, -1),), routes=((0, 1, [0]),), transfers=((0, 1, 0, 0, 0),), root=0):
            return Schedule.from_arrays(two, "broadcast", units, slices, routes, transfers, root=root)

        self.assertEqual(made().verify(), [])
        self.assertEqual(made(numpy.int32(1), numpy.array([(0, 1, -1, -1)], numpy.int16), [(numpy.int64(0), 1, numpy.array([0]))]).verify(), [])
        nan = float("nan")
        for wrong in (dict(units=1.0), dict(units=0), dict(units=True), dict(units=nan), dict(slices=[(0, 1.0, -1, -1)]),
                      dict(slices=[(0, nan, -1, -1)]), dict(slices=[0, 1, -1, -1]), dict(slices=[(0, 1, -1)]),
                      dict(slices=[(0, 1, -1, -1), (0, 1)]), dict(slices=[(0, 1, -2, -1)]), dict(slices=[(0, 1, 2, -1)]),
                      dict(slices=[("0", "1", "-1", "-1")]), dict(slices=[(0, 2**63, -1, -1)]), dict(slices=[(0, 2**65, -1, -1)]),
                      dict(slices=numpy.array([[[0, 1, -1, -1]]])), dict(slices=numpy.array([[True, True, True, True]])),
                      dict(transfers=[(0, 1, 0, 0, 0.5)]), dict(transfers=[(0, 1, 0, 0, 3)]), dict(transfers=[(0, 1, 0, 0)]),
                      dict(transfers=[0, 1, 0, 0, 0]), dict(transfers=[(0, 2, 0, 0, 0)]), dict(transfers=[(0, 1, 1, 0, 0)]),
                      dict(transfers=[(0, 1, 0, -1, 0)]), dict(routes=[(0, 1)]), dict(routes=[(0, 1.0, [0])]), dict(routes=[(0, 1, [0.0])]),
                      dict(routes=[(0, 2, [0])]), dict(routes=[(0, 1, [9])]), dict(routes=[(0, 1, 0)]), dict(root=-1), dict(root=0.0)):
            with self.assertRaises(espalier.Error, msg=str(wrong)) as caught:
                made(**wrong)
            self.assertIn(caught.exception.code, ("invalid_input", "too_large"), wrong)
        self.assertEqual(made(transfers=numpy.zeros((0, 5), int)).verify()[0].rule, "S7")


class Sizes(unittest.TestCase):
    def test_integers_of_any_type_are_sizes(self):
        ring = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        time = espalier.simulate(ring, 2**20, chunk=4096, ahead=0).picoseconds
        for kind in (int, numpy.int64, numpy.uint32, numpy.uint64, numpy.int32):
            run = espalier.simulate(ring, kind(2**20), chunk=kind(4096), ahead=kind(0))
            self.assertEqual((run.picoseconds, type(run)), (time, espalier.Simulation), kind)
            self.assertEqual(espalier.Simulator(ring).run(kind(2**20), chunk=kind(4096), ahead=kind(0)).picoseconds, time)
            self.assertEqual(espalier.plan(Topology.load("dgx1v"), "all_reduce", "ring", kind(2**20)).algorithm, "ring")
        for several in (numpy.array([2**20, 2**21]), ["1M", numpy.int64(2**21)], range(2**20, 2**21 + 1, 2**20), (2**20, "2M")):
            self.assertEqual([run.size for run in espalier.simulate(ring, several)], [2**20, 2**21])
        self.assertEqual(len(espalier.simulate(ring, numpy.array([2**20]))), 1)
        self.assertEqual(espalier.simulate(ring, numpy.array(2**20)).size, 2**20)
        self.assertEqual(espalier.Simulator(ring).run("1M").size, 2**20)
        self.assertEqual(espalier.sweep(ring.topology, "all_reduce", "ring", numpy.int64(2**20))[0]["size"], 2**20)
        for wrong in (1.5, 1e6, numpy.float64(8), True, numpy.bool_(True), None, -1, "-1", "1.5M", 2**70, float("nan"), b"1M", object()):
            with self.assertRaises(espalier.Error, msg=repr(wrong)):
                espalier.parse_size(wrong)


class Pickles(unittest.TestCase):
    def test_topologies_come_back_whole(self):
        for machine in ("dgx1v", "dgx-a100-x2", "mi250", "gb200-nvl72", "torus-4x4x4", "tpu-v5e"):
            try:
                before = Topology.load(machine)
            except espalier.Error:
                continue
            after = pickle.loads(pickle.dumps(before.slow([f"{before.link_name(0)}=25%"])))
            self.assertEqual((after.to_yaml(), after.nodes(), after.links()), (lambda t: (t.to_yaml(), t.nodes(), t.links()))(before.slow([f"{before.link_name(0)}=25%"])))
            self.assertEqual(copy.deepcopy(before).to_yaml(), before.to_yaml())

    def test_schedules_and_simulations_come_back_whole(self):
        for collective, algorithm in (("all_reduce", "ring"), ("all_gather", "packing"), ("broadcast", "tree")):
            plan = espalier.plan(Topology.load("dgx1v-degraded"), collective, algorithm=algorithm)
            topology, after = pickle.loads(pickle.dumps((plan.topology, plan)))
            self.assertIs(after.topology, topology)  # Not one for each.
            self.assertEqual(after.to_json(), plan.to_json())
            run = espalier.simulate(plan, "1M", timeline=True)
            again = pickle.loads(pickle.dumps(run))
            self.assertEqual((again.to_dict(), again.picoseconds, again.ahead), (run.to_dict(), run.picoseconds, run.ahead))
            numpy.testing.assert_array_equal(again.spans, run.spans)
            numpy.testing.assert_array_equal(again.link_busy, run.link_busy)
            self.assertIsNone(pickle.loads(pickle.dumps(espalier.simulate(plan, "1M"))).spans)

    def test_processes_hand_them_on(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            run = pool.submit(espalier.simulate, plan, "1M").result()
            self.assertEqual(run.picoseconds, espalier.simulate(plan, "1M").picoseconds)
            with self.assertRaises(espalier.Error) as caught:
                pool.submit(espalier.parse_size, "1.5M").result()
            self.assertEqual((caught.exception.code, caught.exception.help), ("invalid_input", "write bytes, or 64K, 1M, 1G, 25MB"))


class Graphs(unittest.TestCase):
    def test_there_and_back(self):
        try:
            import networkx
        except ImportError:
            self.skipTest("no networkx")
        for machine in ("dgx1v-degraded", "dgx-a100-x2", "mi250"):
            before = Topology.load(machine)
            after = Topology.from_networkx(before.to_networkx())
            self.assertEqual((after.name, after.nodes(), after.links()), (before.name, before.nodes(), before.links()))
        graph = networkx.DiGraph()
        graph.add_edge("a", "b", bandwidth=1e9, latency=1e-6)
        graph.add_edge("b", "a", bandwidth="2 GB/s")
        link, back = Topology.from_networkx(graph, name="pair").links()
        self.assertEqual((link["bandwidth"], link["latency"], back["bandwidth"], back["latency"]), (10**9, 1e-6, 2 * 10**9, 0))
        graph.add_edge("a", "c")
        with self.assertRaisesRegex(espalier.Error, "the edge from a to c has no bandwidth"):
            Topology.from_networkx(graph)
        for wrong in (float("nan"), float("inf"), None, [1]):
            graph.edges["a", "c"]["bandwidth"] = wrong
            with self.assertRaises(espalier.Error):
                Topology.from_networkx(graph)


class Planning(unittest.TestCase):
    def test_as_the_command_plans(self):
        machine = Topology.load("dgx1v")
        for words, keywords in ((["--k", "2"], {"k": 2}), (["--max-depth", "2"], {"max_depth": 2}), (["--ranks", "gpu[0-3]"], {"ranks": "gpu[0-3]"})):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "plan.json"
                subprocess.run([COMMAND, "plan", "dgx1v", "all_gather", "-a", "packing", *words, "--profile", "ideal", "-o", str(path)], check=True, capture_output=True)
                told = Schedule.load(path)
            plan = espalier.plan(machine, "all_gather", algorithm="packing", **keywords)
            numpy.testing.assert_array_equal(plan.transfers, told.transfers, str(keywords))
            numpy.testing.assert_array_equal(plan.slices, told.slices)
        for ranks in (["gpu0", "gpu3"], [0, 3], numpy.array([0, 3]), "gpu0, gpu3"):
            plan = espalier.plan(machine, "all_reduce", "ring", ranks=ranks)
            self.assertEqual([plan.topology.rank_name(rank) for rank in range(plan.topology.rank_count)], ["gpu0", "gpu3"])
        for wrong in (dict(k=0), dict(k=1.5), dict(max_depth=-1), dict(algorithm="ring", k=2), dict(ranks="gpu9"), dict(root=-1), dict(profile="none"),
                      dict(groups="gpu0,gpu1;gpu2,gpu3", k=2), dict(groups=[]), dict(algorithm="nccl")):
            with self.assertRaises(espalier.Error, msg=str(wrong)):
                espalier.plan(machine, "all_gather", **wrong)

    def test_groups_share_the_links(self):
        machine = Topology.load("dgx1v")
        plans = espalier.plan(machine, "all_gather", groups="gpu[0-3];gpu[4-7]")
        self.assertEqual([plan.topology.rank_count for plan in plans], [4, 4])
        self.assertEqual([plan.verify() for plan in plans], [[], []])
        # docs/command-line.md: 3/400000000000 s per byte, 100.0 GB/s busbw for each when both are at work.
        together = espalier.simulate(plans, "1G")
        for run in together:
            self.assertLess(run.busbw, 100.0e9 * (1 + 1e-9))
            self.assertGreater(run.busbw, 97.0e9)
        # Alone neither is slower, and what one does alone is what the list of one does.
        for plan, run in zip(plans, together):
            alone = espalier.simulate(plan, "1G")
            self.assertLessEqual(alone.picoseconds, run.picoseconds)
            self.assertEqual(espalier.simulate([plan], "1G")[0].picoseconds, alone.picoseconds)
        self.assertEqual([[run.size for run in runs] for runs in espalier.simulate(plans, ["1M", "2M"])], [[2**20] * 2, [2**21] * 2])
        with self.assertRaisesRegex(espalier.Error, "different networks"):
            espalier.simulate([plans[0], espalier.plan(Topology.load("mi250"), "all_gather", "ring")], "1M")

    def test_a_profile_chooses(self):
        machine = Topology.load("dgx1v")
        row = command("simulate", "dgx1v", "all_reduce", "-a", "auto", "-s", "1K", "--profile", "nccl-volta")["results"][0]
        self.assertTrue(row["planner"].startswith(espalier.plan(machine, "all_reduce", size="1K", profile="nccl-volta").algorithm))


class WrongPlaces(unittest.TestCase):
    """What is given in a wrong place is told in this project's words, wherever it is given."""

    def test_wrong_kinds_of_arguments(self):
        machine = espalier.Topology.load("dgx1v")
        ring = espalier.plan(machine, "all_reduce", "ring")
        ranks = espalier.Communicator(rank=0, world=1)
        array = numpy.ones(4, numpy.float32)
        for call, told in [
                (lambda: espalier.simulate(machine), "a Topology is given where a Schedule belongs"),
                (lambda: espalier.simulate("dgx1v"), "'dgx1v' is given where a Schedule belongs"),
                (lambda: espalier.simulate(None), "a NoneType is given where a Schedule belongs"),
                (lambda: espalier.simulate([ring, machine]), "a Topology is given where a Schedule belongs"),
                (lambda: espalier.simulate(ring, -1), "a size of -1 bytes"),
                (lambda: espalier.simulate(ring, "1M", model=3), "a int is given where a model's name belongs"),
                (lambda: espalier.bound(ring, "all_reduce"), "a Schedule is given where a Topology belongs"),
                (lambda: espalier.bound(machine, 3), "a int is given where a collective's name belongs"),
                (lambda: espalier.plan("dgx1v", "all_reduce"), "'dgx1v' is given where a Topology belongs"),
                (lambda: espalier.plan(machine, "all_reduce", None), "a NoneType is given where a planner's name belongs"),
                (lambda: espalier.plan(machine, "all_reduce", groups=["gpu[0-3]"], algorithm=4), "a int is given where"),
                (lambda: espalier.sweep(ring), "a Schedule is given where a Topology belongs"),
                (lambda: espalier.gossip("dgx1v"), "'dgx1v' is given where a Topology belongs"),
                (lambda: espalier.Schedule.from_arrays("x", "broadcast", 1, [], [], []), "'x' is given where a Topology"),
                (lambda: ranks.all_reduce(array, op=3), "a int is given where an operation's name belongs"),
                (lambda: ranks.broadcast(array, root=-1), "the root is -1"),
                (lambda: ranks.send(array, -5), "a rank is -5"),
                (lambda: ranks.split("x"), "Communicator.split(['x'], '', 'auto') has no such arguments"),
                (lambda: ranks.all_gather(array, shares="x"), "shares are 'x'"),
                (lambda: espalier.Communicator(rank="x", world=1), "Communicator('x', 1, "),
                (lambda: espalier.Simulator(machine), "Simulator() has no such arguments"),
                (lambda: espalier.Simulator.unverified(3), "Simulator.unverified(3) has no such arguments"),
                (lambda: machine.without(3), "Topology.without(3) has no such arguments"),
                (lambda: machine.rank_name("x"), "Topology.rank_name('x') has no such arguments"),
                (lambda: espalier.Topology.generate("ring", 4), "Topology.generate('ring', 4) has no such arguments"),
                (lambda: espalier.Topology.from_yaml(3), "Topology.from_yaml(3) has no such arguments"),
                (lambda: espalier.Schedule.from_json(3), "Schedule.from_json(3) has no such arguments")]:
            with self.subTest(told=told), self.assertRaises(espalier.Error) as raised:
                call()
            self.assertIn(told, raised.exception.message)
        for wrong in (-1, 8):
            self.assertRaises(IndexError, machine.rank_name, wrong)

    def test_numpys_word_for_the_average(self):
        array = numpy.array([3.0, 5.0])
        espalier.Communicator(rank=0, world=1).all_reduce(array, op="mean")
        self.assertEqual(array.tolist(), [3.0, 5.0])

    def test_variants_of_the_packing_by_name(self):
        machine = espalier.Topology.load("dgx1v")
        with self.assertRaises(espalier.Error) as raised:
            espalier.plan(machine, "all_gather", "packing/h99t99", size="1K")
        self.assertIn("no packing called packing/h99t99", raised.exception.message)
        named = raised.exception.help.removeprefix("there are ").split(", ")
        for name in named:  # Height and trees are as the name says: no other is higher or has more.
            schedule = espalier.plan(machine, "all_gather", name, size="1K")
            self.assertEqual(schedule.verify(), [])
        self.assertGreater(len({len(espalier.plan(machine, "all_gather", name, size="1K").transfers) for name in named}), 1)

    def test_a_matrix_of_any_bytes(self):
        machine = espalier.Topology.load("dgx1v")
        blocks = numpy.random.default_rng(0).integers(0, 1 << 20, (8, 8)) | 1  # Hardly a whole number of floats.
        plan = espalier.plan(machine, "all_to_all", matrix=blocks)
        self.assertEqual((plan.matrix == blocks).all(), True)
        busiest = max(blocks.sum(axis=0).max(), blocks.sum(axis=1).max())
        ideal = espalier.bound(machine, "all_to_all", matrix=blocks).time_per_byte * int(busiest)
        self.assertGreaterEqual(espalier.simulate(plan, int(busiest) // 4 * 4).time, float(ideal) * (1 - 1e-5))

    def test_one_name_is_as_good_as_a_list(self):
        machine = espalier.Topology.load("dgx1v")
        self.assertEqual(machine.without("gpu0-gpu1").to_yaml(), machine.without(["gpu0-gpu1"]).to_yaml())


class ManySizes(unittest.TestCase):
    """Sizes between powers of two are not searched each for itself."""

    CASES = [("dgx1v", "all_reduce", "packing", None), ("dgx1v", "all_reduce", "ring", None), ("dgx1v", "all_reduce", "ring", "nccl-volta"),
             ("dgx1v-degraded", "all_gather", "packing", "nccl-volta"), ("mi250", "reduce_scatter", "packing", None),
             ("dgx-a100-x2", "all_reduce", "tree", None), ("dgx-a100-x2", "all_to_all", "pairwise", "nccl-ampere")]

    def test_times_never_fall_and_keep_to_the_bound(self):
        for machine, collective, algorithm, profile in self.CASES:
            plan = espalier.plan(Topology.load(machine), collective, algorithm)
            sizes = sorted({4 * (1 + number * 2**23 // 1000) for number in range(500)} | {4 * int(1.03**power) for power in range(500)})
            runs = espalier.simulate(plan, sizes, profile=profile)
            times = [run.picoseconds for run in runs]
            self.assertEqual(times, sorted(times), (machine, collective, algorithm, profile))
            self.assertLessEqual(max(run.of_bound for run in runs), 1)

    def test_between_powers_it_is_about_what_that_size_takes(self):
        for machine, collective, algorithm, profile in self.CASES:
            if profile is not None:
                continue
            plan = espalier.plan(Topology.load(machine), collective, algorithm)
            for size in (5 << 10, 5 << 17, 11 << 21):
                run = espalier.simulate(plan, size)
                searched = espalier.simulate(plan, size, ahead=run.ahead)
                self.assertLess(abs(run.time / searched.time - 1), 0.03, (machine, collective, algorithm, size))
                itself = espalier.simulate(plan, size, timeline=True)  # Cut as between its neighbours.
                self.assertLess(abs(run.time / itself.time - 1), 0.06, (machine, collective, algorithm, size))
                self.assertLess(abs(run.link_busy - itself.link_busy).max(), 0.03 * itself.time)
                self.assertEqual((run.size, run.chunk, run.ahead), (size, itself.chunk, itself.ahead))

    def test_what_was_asked_before_changes_nothing(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_gather", "packing")
        sizes = [4_000_000, 2**20, 1_500_000, 2**22, 3_000_000, 1_048_580]
        alone = [espalier.simulate(pickle.loads(pickle.dumps(plan)), size).picoseconds for size in sizes]
        self.assertEqual([run.picoseconds for run in espalier.simulate(plan, sizes)], alone)
        self.assertEqual([espalier.Simulator(plan).run(size).picoseconds for size in reversed(sizes)], alone[::-1])
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            simulator = espalier.Simulator(plan)
            self.assertEqual([run.picoseconds for run in pool.map(simulator.run, sizes)], alone)


if __name__ == "__main__":
    unittest.main()
