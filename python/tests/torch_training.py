#!/usr/bin/env python3
"""Data-parallel training over the torch.distributed backend, beside one process."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

from torch_ranks import run_ranks

import torch
import torch.distributed as dist


def make_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 5)).double()


def batches(steps, size):
    made = torch.Generator().manual_seed(11)
    return [(torch.randn(size, 20, generator=made, dtype=torch.float64),
             torch.randint(0, 5, (size,), generator=made)) for _ in range(steps)]


def train(model, steps, part=slice(None)):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for inputs, wanted in batches(steps, 32):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs[part]), wanted[part])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_in_parallel(world):
    single = make_model()
    train(single, 10)
    model = make_model()
    if dist.get_rank() != 0:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()  # DistributedDataParallel gives everyone rank 0's.
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    share = 32 // world
    train(parallel, 10, slice(dist.get_rank() * share, (dist.get_rank() + 1) * share))
    for ours, theirs in zip(model.parameters(), single.parameters()):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12), (ours - theirs).abs().max()
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    everyones = [torch.empty_like(flat) for _ in range(world)]
    dist.all_gather(everyones, flat)
    assert all(torch.equal(flat, other) for other in everyones)


class Training(unittest.TestCase):
    def test_goes_on_after_a_rank_was_killed(self):
        """A rank is killed in the middle: the other names it, and a new job goes on from the checkpoint to the same weights."""
        example = str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "train_char_gpt.py")
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text")
            text.write_text("abcdefgh ijklmnop qrstuvwx yz\n" * 40)

            def train(checkpoint, steps, *more):
                words = [sys.executable, example, "--ranks", "2", "--text", str(text), "--steps", str(steps), "--every", "4",
                         "--layers", "1", "--width", "16", "--context", "16", "--batch", "4", "--checkpoint",
                         f"{folder}/{checkpoint}", *more]
                return subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)

            whole = train("whole.pt", 16)
            self.assertEqual(whole.returncode, 0, whole.stderr)
            broken = train("broken.pt", 16, "--die-at", "10")
            self.assertNotEqual(broken.returncode, 0)
            self.assertIn("rank 1", broken.stderr)
            self.assertIn("goes on from", broken.stderr)
            resumed = train("broken.pt", 16)
            self.assertEqual(resumed.returncode, 0, resumed.stderr)
            self.assertIn("from step 8", resumed.stdout)
            weights = [[line for line in done.stdout.splitlines() if "# weights" in line] for done in (whole, resumed)]
            self.assertEqual(*weights)
            self.assertEqual(len(weights[0]), 1)

    def test_a_step_is_recorded_beside_its_simulation(self):
        """Both examples: each way's folder has the scenario and the timelines, and the simulation computes as long as the step did."""
        examples = pathlib.Path(__file__).resolve().parents[2] / "examples"
        with tempfile.TemporaryDirectory() as folder:
            train = ["train_char_gpt.py", "--ranks", "2", "--steps", "12", "--layers", "1", "--width", "32", "--context", "16", "--batch", "4",
                     "--bucket", "0.05", "--record", f"{folder}/gpt"]
            for words, ways in ((train, ["gpt"]), (["parallel_training.py", "--record", folder], ["tensor", "pipeline", "data"])):
                done = subprocess.run([sys.executable, examples / words[0], *words[1:]], capture_output=True, text=True, timeout=240,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                rows = {name: [line.split() for line in done.stdout.splitlines() if line.startswith(name)]
                        for name in ("measured", "simulated")}
                self.assertEqual([len(lines) for lines in rows.values()], [len(ways)] * 2, done.stdout)
                for measured, simulated in zip(*rows.values()):
                    self.assertAlmostEqual(float(measured[2]), float(simulated[2]), delta=0.1)  # Pieces are rounded to a microsecond.
                for way in ways:
                    self.assertTrue(pathlib.Path(folder, way, "timeline.json").exists())

    def test_equals_one_process(self):
        for world in (2, 4):
            run_ranks(train_in_parallel, world, world)

    def test_torchrun(self):
        program = ("import torch, torch.distributed as dist, espalier.torch\n"
                   "dist.init_process_group('espalier')\n"
                   "total = torch.ones(10)\n"
                   "dist.all_reduce(total)\n"
                   "assert (total == dist.get_world_size()).all() and dist.get_world_size() == 2\n")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.py"
            script.write_text(program)
            ended = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                                    "--redirects=1", "--tee=1",  # 1.13 under Python 3.11 cannot do without.
                                    str(script)], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(ended.returncode, 0, ended.stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
