#!/usr/bin/env python3
"""What people hand over, and what they are told where it is wrong."""
import os
import subprocess
import unittest

import numpy

import espalier
from espalier import Schedule, Topology

COMMAND = os.environ.get("ESPALIER", "espalier")


class Arguments(unittest.TestCase):
    def test_roots_have_names(self):
        machine = Topology.load("dgx1v")
        self.assertEqual([espalier.plan(machine, "broadcast", root=root).root for root in ("gpu3", 3, numpy.int64(3))], [3, 3, 3])
        self.assertEqual(espalier.plan(machine, "broadcast", root="gpu5", ranks="gpu[4-7]").root, 1)
        self.assertEqual(espalier.bound(machine, "broadcast", root="gpu3"), espalier.bound(machine, "broadcast", root=3))

    def test_refusals_are_in_this_projects_words(self):
        machine = Topology.load("dgx1v")
        ring = espalier.plan(machine, "all_reduce", algorithm="ring")
        for call, message in ((lambda: espalier.plan(machine, "broadcast", root="gpu9"), "there is no rank 'gpu9' in dgx1v"),
                              (lambda: espalier.plan(machine, "broadcast", root=1.5), "the root is 1.5"),
                              (lambda: espalier.plan(machine, "broadcast", root="gpu5", groups="gpu[0-3];gpu[4-7]"),
                               "'gpu5' is a rank's name, and a root counts within its group"),
                              (lambda: espalier.plan(machine, "all_gather", ranks=[0, 99]), "there is no rank 99 in dgx1v"),
                              (lambda: Topology.from_networkx([1, 2]), "a list is given where a networkx graph belongs"),
                              (lambda: Schedule.load("/nonesuch/plan.json"), "cannot read /nonesuch/plan.json: No such file or directory"),
                              (lambda: ring.save("/nonesuch/plan.json"), "cannot write /nonesuch/plan.json: No such file or directory"),
                              (lambda: espalier.sweep(machine, "all_recude", "ring", "1M"), "there is no collective 'all_recude'"),
                              (lambda: espalier.sweep(machine, "all_reduce", ["ring", "rong"], "1M"), "there is no planner 'rong'"),
                              (lambda: espalier.sweep(machine, threads=-1), "threads is -1"),
                              (lambda: machine.without(3), "Topology.without(3) has no such arguments")):
            with self.assertRaises(espalier.Error) as raised:
                call()
            self.assertEqual(raised.exception.message, message)

    def test_version(self):
        said = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(espalier.__version__, said)


if __name__ == "__main__":
    unittest.main()
