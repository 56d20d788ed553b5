#!/usr/bin/env python3
"""Sweeps, profiles, comparisons and how results show themselves, held against single calls and the command."""
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

import espalier
from espalier import Topology

COMMAND = os.environ.get("ESPALIER", "espalier")


class Sweeps(unittest.TestCase):
    def test_rows_are_single_calls(self):
        machines = [Topology.generate("ring", [4]), Topology.generate("torus", [2, 3])]
        asked = (["all_reduce", "all_gather"], ["ring", "auto", "recursive"], ["64K", "8M"])
        rows = espalier.sweep(machines, *asked, threads=3)
        self.assertEqual(len(rows), 2 * 2 * 3 * 2)
        self.assertEqual(rows, espalier.sweep(machines, *asked, threads=1))
        for row in rows:
            if row["error"] is not None:
                self.assertIn("recursive", row["error"])
                continue
            machine = next(each for each in machines if each.name == row["topology"])
            plan = espalier.plan(machine, row["collective"], row["algorithm"], row["size"])
            self.assertEqual((plan.planner, espalier.simulate(plan, row["size"]).time), (row["planner"], row["time"]))
        self.assertGreater(sum(row["error"] is None for row in rows), 15)

    def test_tables(self):
        ring = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        runs = espalier.simulate(ring, ["1M", "64M"])
        self.assertEqual(runs.column("size"), [2**20, 2**26])
        self.assertIn("<td>1048576</td>", runs._repr_html_())
        self.assertIn("&lt;b&gt;", espalier.Table([{"name": "<b>"}])._repr_html_())
        self.assertIn("<svg", Topology.load("dgx1v")._repr_svg_())
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas")
        frame = runs.to_pandas()
        self.assertEqual(list(frame["time"]), [run.time for run in runs])
        self.assertEqual(list(runs.to_pandas(units=True)), ["size (B)", "time (s)", "busbw (B/s)", "of_bound", "chunk (B)"])
        transfers = ring.to_pandas()
        self.assertEqual(len(transfers), len(ring.transfers))
        self.assertEqual(int(transfers["reduces"].sum()), int((ring.transfers["channel_and_reduces"] >> 31).sum()))
        spans = espalier.simulate(ring, "1M", timeline=True).to_pandas()
        self.assertIsInstance(spans, pandas.DataFrame)
        self.assertGreater(len(spans), len(ring.transfers))


class Profiles(unittest.TestCase):
    def test_as_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
            plan.save(f"{folder}/plan.json")
            said = subprocess.run([COMMAND, "simulate", f"{folder}/plan.json", "-s", "1M", "--profile", "nccl-volta", "--csv"],
                                  capture_output=True, text=True, check=True).stdout
            time = f"{espalier.simulate(plan, '1M', profile='nccl-volta').time * 1e6:.2f}"
            self.assertIn(time, said)

    def test_ranges_are_those_of_the_command(self):
        for machine, profile, lost in (("dgx1v", "nccl-volta", ""), ("dgx-h100-x4", "nccl-hopper", "box0.nic0"), ("dgx-b200", "nccl-hopper", "")):
            without = ["--without", lost] if lost else []
            said = json.loads(subprocess.run([COMMAND, "simulate", machine, "all_reduce", "-a", "nccl", "-s", "64M", "--profile", profile,
                                              "--json", *without], capture_output=True, text=True, check=True).stdout)["results"][0]
            topology = Topology.load(machine).without(lost) if lost else Topology.load(machine)
            plan = espalier.plan(topology, "all_reduce", "nccl", "64M", profile=profile)
            run = espalier.simulate(pickle.loads(pickle.dumps(plan)), "64M", profile=profile)
            self.assertEqual((plan.planner, run.time, run.low, run.high), (said["planner"], said["time"], said["range"].get("low"), said["range"].get("high")))
            self.assertEqual(run.outside, said["range"].get("outside", ""), machine)
        # Only NCCL was measured: other planners' predictions have no range, and say so.
        ring = espalier.simulate(espalier.plan(Topology.load("dgx1v"), "all_gather", "ring"), "64M", profile="nccl-volta")
        self.assertEqual((ring.low, ring.high, bool(ring.outside)), (None, None, True))

    def test_sweeps_under_a_profile_have_ranges(self):
        rows = espalier.sweep(Topology.load("dgx1v"), "all_reduce", ["nccl", "ring", "recursive"], ["1M", "64M"], profile="nccl-volta")
        for row in rows:
            self.assertEqual({"protocol", "low", "high", "outside"} - set(row), set())
            self.assertEqual(row["low"] is not None, row["algorithm"] == "nccl")
            self.assertTrue(row["low"] is None or row["low"] < row["time"] < row["high"])
        try:
            frame = rows.to_pandas(units=True)
        except ImportError:
            self.skipTest("no pandas")
        self.assertEqual(list(frame.columns[-5:]), ["protocol", "low (s)", "high (s)", "outside", "error"])

    def test_refusals(self):
        plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        for wrong in ({"profile": "nccl-nonesuch"}, {"profile": "nccl-volta", "timeline": True},
                      {"profile": "nccl-volta:nonesuch"}):
            with self.assertRaises(espalier.Error) as raised:
                espalier.simulate(plan, "1M", **wrong)
            self.assertTrue(raised.exception.help or raised.exception.message)


class Comparisons(unittest.TestCase):
    def test_timelines(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = espalier.plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
            times = {}
            for size in ("1M", "4M"):
                run = espalier.simulate(plan, size, timeline=True)
                run.save_trace(pathlib.Path(folder) / f"{size}.json")
                times[size] = run.time
            same = espalier.compare(f"{folder}/1M.json", f"{folder}/1M.json")
            self.assertEqual({row["error"] for row in same.rows}, {0.0})
            total = espalier.compare(f"{folder}/1M.json", f"{folder}/4M.json").rows[0]
            self.assertAlmostEqual(total["b"], times["4M"], delta=2e-6)  # Launches are before the first span.
            with self.assertRaises(espalier.Error):
                espalier.compare(f"{folder}/1M.json", f"{folder}/none.json")

    def test_results(self):
        with tempfile.TemporaryDirectory() as folder:
            for model in ("link", "fair"):
                said = subprocess.run([COMMAND, "simulate", "dgx1v", "all_reduce", "-a", "ring", "-b", "1M", "-e", "4M", "--model",
                                       model, "--json"], capture_output=True, text=True, check=True).stdout
                pathlib.Path(folder, model).write_text(said)
            found = espalier.compare(f"{folder}/link", f"{folder}/fair")
            self.assertEqual(found.rows.column("size"), [2**20, 2**21, 2**22])
            self.assertEqual(found.errors["count"], 3)
            for row in found.rows:
                self.assertAlmostEqual(row["error"], (row["a"] - row["b"]) / row["b"])


class Averaging(unittest.TestCase):
    def test_gossip_mixes_as_a_scenario_does(self):
        """The same neighbours, weights and rounds, found twice: here with numpy, there in C++."""
        scenario = "espalier_scenario: 1\ncollectives:\n  - {collective: all_reduce, size: 1 MiB, gossip: {accuracy: 0.1%}}\n"
        for machine in ("torus-4x4x4", "dgx1v", "dgx1v-degraded", "mi250", "dgx-a100-x2"):
            ours = espalier.gossip(Topology.load(machine))
            said = subprocess.run([COMMAND, "simulate", machine, "--scenario", "-", "--json", "--profile", "ideal"], input=scenario,
                                  capture_output=True, text=True, check=True).stdout
            theirs = json.loads(said)["averaging"]["entries"][0]
            self.assertAlmostEqual(ours.spectral_gap, theirs["spectral_gap"], places=10, msg=machine)
            self.assertEqual(ours.rounds(1e-3), theirs["rounds"], machine)


if __name__ == "__main__":
    unittest.main()
