#!/usr/bin/env python3
"""Experts on different ranks, examples/moe_layer.py: outputs and gradients are those of one process, over Espalier, beside gloo."""
import pathlib
import subprocess
import sys
import unittest

import torch_ranks  # noqa: F401  Ends as skipped without PyTorch.

LAYER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "moe_layer.py"


class Experts(unittest.TestCase):
    def test_the_layer_is_that_of_one_process(self):
        done = subprocess.run([sys.executable, LAYER, "--ranks", "4", "--tokens", "64", "--steps", "2", "--beside", "gloo"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"largest difference \S+; espalier \d+ tokens/s, gloo \d+ tokens/s")


if __name__ == "__main__":
    unittest.main()
