#!/usr/bin/env python3
"""Trains a character GPT in parallel, with DistributedDataParallel over Espalier.

    train_char_gpt.py --ranks 2                  a small model on the GPL's text, in two processes of this machine
    train_char_gpt.py --ranks 4 --beside gloo    the same over both backends in turns: tokens/s of each
    train_char_gpt.py --ranks 2 --check          beside one process that sees the same batches: losses and weights
    train_char_gpt.py --full --text input.txt    10.7 million parameters
    train_char_gpt.py --ranks 2 --record step    a step's timeline in the folder step, beside the simulation of the same step
    torchrun --nproc_per_node=4 train_char_gpt.py
    train_char_gpt.py --ranks 2 --checkpoint gpt.pt    goes on from there where the file exists
    train_char_gpt.py --ranks 2 --checkpoint gpt.pt --die-at 25    the last rank kills itself: what the others say, and try again

Needs PyTorch and the built package: PYTHONPATH=build/python/python. ESPALIER_TRANSPORT and the other variables of docs/torch.md
choose how ranks talk.
"""
import argparse
import contextlib
import hashlib
import multiprocessing
import os
import pathlib
import signal
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import espalier.torch
from step_timeline import StepRecorder, compare_steps

LICENCE = "/usr/share/common-licenses/GPL-3"  # Of Debian's base-files; may be copied verbatim.
RECORDED = 9  # Steps that are recorded at most, the last ones: the first ones share buckets and warm up.


class Block(nn.Module):
    """Attention of each character to those before it, then a network for each character; both are added to what comes in."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("later", torch.full((context, context), float("-inf")).triu(1))

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.queries_keys_values(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(-2, -1) * (width // self.heads) ** -0.5
        weights = (scores + self.later[:length, :length]).softmax(-1)
        return self.out((weights @ values).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.before_attention(x))
        return x + self.network(self.before_network(x))


class CharacterGpt(nn.Module):
    def __init__(self, letters, layers, width, heads, context):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, context) for _ in range(layers)))
        self.last, self.scores = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, text, following):
        x = self.letters(text) + self.places.weight[:text.shape[1]]
        scores = self.scores(self.last(self.blocks(x)))
        return functional.cross_entropy(scores.flatten(0, 1), following.flatten())


class Text:
    """A text as numbers; every process draws the same batches from it."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
        letters = sorted(set(text))
        number = {letter: index for index, letter in enumerate(letters)}
        self.letters, self.data = len(letters), torch.tensor([number[letter] for letter in text])

    def batch(self, step, size, context):
        starts = torch.randint(len(self.data) - context - 1, (size,), generator=torch.Generator().manual_seed(step))
        rows = torch.stack([self.data[start:start + context + 1] for start in starts.tolist()])
        return rows[:, :-1], rows[:, 1:]


def make_model(options, text):
    torch.manual_seed(1)
    return CharacterGpt(text.letters, options.layers, options.width, options.heads, options.context)


class Training:
    """A model with its optimizer; in parallel where there is a process group."""

    def __init__(self, options, text, group=None):
        self.options, self.text, self.group, self.step = options, text, group, 0
        self.model = make_model(options, text)
        self.parallel = self.model if group is None else DistributedDataParallel(
            self.model, process_group=group, broadcast_buffers=False, bucket_cap_mb=options.bucket)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.rate)
        self.recorder = StepRecorder()  # Takes nothing down, outside its steps.

    def record(self, recorder):
        """From now on gradients are added as without it, and the recorder learns when."""
        def add_up(_, bucket):
            part = bucket.buffer().div_(dist.get_world_size(self.group))
            call = recorder.begin("all_reduce", part)
            self.calls.append(call)
            future = dist.all_reduce(part, group=self.group, async_op=True).get_future()

            def finish(done):
                recorder.end(call)
                return done.value()[0]

            return future.then(finish)

        self.parallel.register_comm_hook(None, add_up)
        self.recorder = recorder

    def run_step(self):
        """One step; the loss of this rank's part of the batch."""
        self.calls = []
        self.recorder.new_phase("forward")
        text, following = self.text.batch(self.step, self.options.batch, self.options.context)
        if self.group is not None:
            share = self.options.batch // dist.get_world_size(self.group)
            mine = slice(dist.get_rank(self.group) * share, (dist.get_rank(self.group) + 1) * share)
            text, following = text[mine], following[mine]
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.parallel(text, following)
        self.recorder.new_phase("backward")
        loss.backward()
        self.recorder.waited_for(*self.calls)
        self.recorder.new_phase("optimizer")
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def mean_loss(self, loss):
        if self.group is not None:
            dist.all_reduce(loss, dist.ReduceOp.SUM, group=self.group)
            loss /= dist.get_world_size(self.group)
        return loss.item()

    def hash_of_weights(self):
        """The same on all ranks, or AssertionError."""
        digest = hashlib.sha256()
        for parameter in self.model.parameters():
            digest.update(parameter.detach().numpy().tobytes())
        own = digest.hexdigest()[:16]
        if self.group is not None:
            all_hashes = [None] * dist.get_world_size(self.group)
            dist.all_gather_object(all_hashes, own, group=self.group)
            assert all_hashes == [own] * len(all_hashes), f"the ranks' weights differ: {all_hashes}"
        return own

    def load(self, path):
        if path and pathlib.Path(path).exists():
            saved = torch.load(path)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step = saved["step"]

    def save(self, path):
        if not path or (self.group is not None and dist.get_rank(self.group) != 0):
            return
        beside = pathlib.Path(path).with_suffix(".new")
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}, beside)
        beside.replace(path)


def train(options):
    """This process's part of the training."""
    torch.set_num_threads(options.threads)
    text = Text(options.text)
    rank, world = dist.get_rank(), dist.get_world_size()
    say = print if rank == 0 else lambda *words, **how: None
    training = Training(options, text, dist.group.WORLD)
    training.load(options.checkpoint)
    parameters = sum(parameter.numel() for parameter in training.model.parameters())
    say(f"# {parameters / 1e6:.2f} M parameters, {len(text.data)} characters, batch {options.batch} of {options.context} "
        f"characters over {world} ranks ({dist.get_backend()})", flush=True)
    single = Training(options, text) if options.check and rank == 0 else None
    recorder = StepRecorder()
    if options.record:
        training.record(recorder)
    begin, first = time.perf_counter(), training.step
    if first:
        say(f"# goes on from step {first}, as {options.checkpoint} has it", flush=True)
    while training.step < options.steps:
        if training.step == options.die_at and rank == world - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            with recorder.step() if options.record and training.step >= options.steps - RECORDED else contextlib.nullcontext():
                loss = training.run_step()
        except RuntimeError as error:
            how = f"; start again, and it goes on from {options.checkpoint}" if options.checkpoint else ""
            raise SystemExit(f"train_char_gpt: step {training.step}: {error}{how}") from error
        beside = single.run_step().item() if single else None
        if training.step % options.every == 0 or training.step == options.steps:
            loss = training.mean_loss(loss)
            say(f"step {training.step:5}  loss {loss:.4f}" + (f"  of one process {beside:.4f}" if single else ""), flush=True)
            assert beside is None or abs(loss - beside) < 1e-2, "the losses differ"
            training.save(options.checkpoint)
    seconds = time.perf_counter() - begin
    say(f"# weights {training.hash_of_weights()} on all {world} ranks")
    if not single and training.step > first:
        say(f"# {(training.step - first) * options.batch * options.context / seconds:.0f} tokens/s")
    if options.record:
        compare_steps(recorder, options.record)
    dist.barrier()


def compare(options):
    """Steps over both backends in turns; tokens/s of each, and seconds of an all_reduce of a bucket of 25 MiB."""
    torch.set_num_threads(options.threads)
    text = Text(options.text)
    groups = {"espalier": dist.group.WORLD, options.beside: dist.new_group(backend=options.beside)}
    trainings = {name: Training(options, text, group) for name, group in groups.items()}
    bucket = torch.ones(25 * 2**18)
    rates, times = {name: [] for name in groups}, {name: [] for name in groups}
    for turn in range(options.turns + 1):
        for name in sorted(groups, reverse=turn % 2 == 1):
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(options.every):
                trainings[name].run_step()
            dist.barrier()
            if turn > 0:  # The first one warms up.
                rates[name].append(options.every * options.batch * options.context / (time.perf_counter() - begin))
            for _ in range(4):
                dist.barrier()
                begin = time.perf_counter()
                dist.all_reduce(bucket, group=groups[name])
                times[name].append(time.perf_counter() - begin)
                bucket.fill_(1)
    for name, training in trainings.items():
        weights, quickest = training.hash_of_weights(), min(times[name][4:])
        middle = statistics.median(times[name][4:])
        if dist.get_rank() == 0:
            print(f"{name:>9}  {statistics.median(rates[name]):9.0f} tokens/s (median of {options.turns} turns of "
                  f"{options.every} steps, {min(rates[name]):.0f} to {max(rates[name]):.0f})  25 MiB in {middle * 1e3:.1f} ms "
                  f"(fastest {quickest * 1e3:.1f})  weights {weights}", flush=True)
    if dist.get_rank() == 0:
        ours, theirs = (statistics.median(rates[name]) for name in ("espalier", options.beside))
        buckets = [statistics.median(times[name][4:]) for name in ("espalier", options.beside)]
        print(f"# espalier has {ours / theirs:.2f} times the tokens/s, and is {buckets[1] / buckets[0]:.1f} times as fast at 25 MiB")
    dist.barrier()


def be_rank(options, rank=None, meeting=None):
    if rank is None:
        dist.init_process_group("espalier")  # torchrun's variables say the rest.
    else:
        dist.init_process_group("espalier", init_method=f"file://{meeting}", rank=rank, world_size=options.ranks)
    compare(options) if options.beside else train(options)
    dist.destroy_process_group()


def start_ranks(options):
    """The ranks as processes of this machine; exit code of the first that failed."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=be_rank, args=(options, rank, f"{folder}/store")) for rank in range(options.ranks)]
        for rank in ranks:
            rank.start()
        with contextlib.suppress(KeyboardInterrupt):
            for rank in ranks:
                rank.join()
        return next((1 for rank in ranks if rank.exitcode), 0)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2, help="processes to start here (default 2)")
    parser.add_argument("--text", default=LICENCE, help="what to learn (default: the GPL)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=10, help="steps between lines, and of a turn with --beside")
    parser.add_argument("--turns", type=int, default=5, help="with --beside: measured turns of each backend")
    parser.add_argument("--batch", type=int, default=16, help="sequences in a step, of all ranks together")
    parser.add_argument("--context", type=int, default=64, help="characters in a sequence")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--full", action="store_true", help="6 layers of 384, 6 heads, 256 characters, batch 64")
    parser.add_argument("--check", action="store_true", help="train one process beside, and compare")
    parser.add_argument("--beside", metavar="BACKEND", help="measure in turns with this backend: gloo")
    parser.add_argument("--bucket", type=float, default=25, metavar="MIB", help="gradients are added when so much is there (default 25)")
    parser.add_argument("--record", metavar="FOLDER", help="record the last steps, and simulate one of them with the command espalier")
    parser.add_argument("--checkpoint", help="a file to save to, and to go on from")
    parser.add_argument("--die-at", type=int, metavar="STEP", help="the last rank kills itself before this step")
    options = parser.parse_args()
    if options.full:
        options.layers, options.width, options.heads, options.context, options.batch = 6, 384, 6, 256, 64
    world = int(os.environ.get("WORLD_SIZE", options.ranks))
    if options.batch % world:
        parser.error(f"--batch {options.batch} has no equal parts for {world} ranks")
    if options.record and (options.beside or options.check):
        parser.error("--record is of the training alone: leave --beside and --check out")
    return options


if __name__ == "__main__":
    chosen = read_options()
    if "RANK" in os.environ:
        be_rank(chosen)
    else:
        raise SystemExit(start_ranks(chosen))
