#!/usr/bin/env python3
"""Training of today over the torch.distributed backend: examples/train_llama.py's ways, examples/train_elastic.py with a rank that dies."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --torch installs PyTorch)")
    sys.exit(77)
if torch.__version__.startswith("1."):
    print("skipped: PyTorch 1.x has little of it")
    sys.exit(77)

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
WAYS = {"ddp", "no-sync", "bf16", "powersgd", "fsdp", "tensor", "pipeline", "interleaved", "context", "expert"}
COMPILED = ["ddp", "fsdp", "tensor", "context"]


class Llama(unittest.TestCase):
    def train(self, *words):
        """The ways whose losses were those of one process."""
        done = subprocess.run([sys.executable, EXAMPLES / "train_llama.py", *words], capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {line.split()[0] for line in done.stdout.splitlines()}

    def test_every_way_equals_one_process(self):
        self.assertEqual(self.train("--ranks", "2"), WAYS)
        self.assertEqual(self.train("--ranks", "4"), WAYS | {"mesh"})

    def test_compiled(self):
        self.assertEqual(self.train("--ranks", "2", "--compile", "aot_eager", *COMPILED), set(COMPILED))

    def test_starts_again_from_the_checkpoint_when_a_rank_dies(self):
        def run(folder, *words):
            done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1",
                                   EXAMPLES / "train_elastic.py", "--checkpoint", folder, *words], capture_output=True, text=True, timeout=240,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split(", ")
        with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
            undisturbed, resumed = run(whole), run(broken, "--die-at", "6")
        self.assertEqual(undisturbed[0], "from step 0 to 12")
        self.assertEqual(resumed[0], "from step 4 to 12")
        self.assertEqual(undisturbed[1:], resumed[1:])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
