#!/usr/bin/env python3
"""A small Llama-shaped network, trained in the ways that PyTorch 2 has, over Espalier: each way's losses are held against one process.

    train_llama.py [WAY ...] [--ranks N] [--compile BACKEND] [--beside gloo --turns N]

ddp           DistributedDataParallel: static graph, gradients that are views of the buckets
no-sync       DistributedDataParallel that adds up two batches before it communicates
bf16          DistributedDataParallel that sends gradients as bfloat16
powersgd      DistributedDataParallel that sends gradients as products of thin matrices
fsdp          parameters in parts (fully_shard), a block at a time
tensor        columns and rows of matrices (DTensor)
pipeline      a part of the layers on each rank, 1F1B
interleaved   two parts of the layers on each rank, interleaved 1F1B
context       a part of the sequence on each rank; keys and values are gathered
expert        experts on different ranks, tokens to them and back by uneven all_to_all
mesh          a mesh of N/4 x 2 x 2: replicas, parts of the parameters, columns and rows

With --beside the same ranks train by turns over both backends: tokens per second of each. Needs PyTorch 2.13 and the package espalier.
"""
import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import espalier.torch  # noqa: F401  The backend registers itself.

# PyTorch 2.13 renamed it.
gather = getattr(functional, "all_gather_single_autograd", None) or functional.all_gather_tensor_autograd
VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT, BATCH, EXPERTS, STEPS, RATE = 96, 64, 8, 8, 32, 16, 8, 6, 0.5
KIND = torch.float64
# How far losses may be from one process's: sums in another order, or gradients that are rounded on the way.
BOUNDS = {"bf16": 1e-2, "powersgd": 1}
EXACT = 1e-10


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.sequence = None  # The ranks that have a part of it each.

    def forward(self, x, positions):
        query, key, value = (matrix(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for matrix in (self.query, self.key, self.value))
        query, key = rotate(query, positions), rotate(key, positions)
        allowed = positions[:, None] >= positions[None, :]
        if self.sequence is not None:
            key, value = (gather(part.contiguous(), 2, self.sequence) for part in (key, value))
            allowed = positions[:, None] >= torch.arange(key.shape[2])[None, :]
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        return self.output(mixed.transpose(1, 2).flatten(2))


def rotate(x, positions):
    """Rotary embedding: pairs of coordinates turn with the position."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1)


class FeedForward(nn.Module):
    def __init__(self, hidden=2 * WIDTH):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Every token goes to one of the experts, which lie on the ranks of `group` in turn; without a group all are here."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(FeedForward(WIDTH) for _ in range(EXPERTS))
        self.group = None

    def keep(self, group):
        ranks, mine = dist.get_world_size(group), dist.get_rank(group)
        self.group = group
        self.experts = self.experts[mine * EXPERTS // ranks:(mine + 1) * EXPERTS // ranks]

    def forward(self, x):
        tokens = x.flatten(0, -2)
        weights, chosen = self.router(tokens).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        counts = chosen.bincount(minlength=EXPERTS)
        answers = (self.all_here if self.group is None else self.spread)(tokens[order], counts)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return (answers[back] * weights[:, None]).view_as(x)

    def all_here(self, tokens, counts):
        parts = tokens.split(counts.tolist())
        return torch.cat([expert(part) for expert, part in zip(self.experts, parts)])

    def spread(self, tokens, counts):
        ranks, here = dist.get_world_size(self.group), len(self.experts)
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts, group=self.group)
        sent, got = counts.view(ranks, here).sum(1).tolist(), arriving.view(ranks, here).sum(1).tolist()
        tokens = functional.all_to_all_single_autograd(tokens, got, sent, self.group)
        pieces = tokens.split(arriving.tolist())  # By rank, then by expert.
        answers = [expert(torch.cat(pieces[index::here])).split(arriving[index::here].tolist()) for index, expert in enumerate(self.experts)]
        together = torch.cat([answers[index][rank] for rank in range(ranks) for index in range(here)])
        return functional.all_to_all_single_autograd(together, sent, got, self.group)


class Block(nn.Module):
    def __init__(self, with_experts):
        super().__init__()
        self.attention, self.feed = Attention(), Experts() if with_experts else FeedForward()
        self.before_attention, self.before_feed = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)

    def forward(self, x, positions):
        x = x + self.attention(self.before_attention(x), positions)
        return x + self.feed(self.before_feed(x))


class Llama(nn.Module):
    """The whole network, or the layers [first, last) of it, the first with the embedding and the last with the output."""

    def __init__(self, with_experts=False):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(with_experts) for _ in range(LAYERS))
        self.norm, self.output = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[1])
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x, positions)
        return x if self.output is None else self.output(self.norm(x))

    def part(self, index, parts):
        if index > 0:
            self.embedding = None
        if index < parts - 1:
            self.norm = self.output = None
        self.blocks = self.blocks[index * LAYERS // parts:(index + 1) * LAYERS // parts]
        return self


def make_model(with_experts=False):
    torch.manual_seed(7)
    return Llama(with_experts).to(KIND)


def batch_of(step):
    """A sequence that can be learnt: each next token is a function of the one before."""
    tokens = torch.randint(VOCABULARY, (BATCH, 1), generator=torch.Generator().manual_seed(step))
    whole = (tokens + 7 * torch.arange(CONTEXT + 1)[None, :]) % VOCABULARY
    return whole[:, :-1], whole[:, 1:]


def loss_of(logits, wanted):
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def train(model, parameters, part=lambda batch: batch, parts=1, unsynchronised=contextlib.nullcontext, after=lambda: None):
    """The losses of STEPS steps, of this rank's part of each batch, in `parts` pieces, all but the last of them unsynchronised."""
    optimizer = torch.optim.SGD(parameters, lr=RATE, foreach=False)
    for step in range(STEPS):
        inputs, wanted = part(batch_of(step))
        total = 0.0
        for index, (x, y) in enumerate(zip(inputs.chunk(parts), wanted.chunk(parts))):
            with unsynchronised() if index < parts - 1 else contextlib.nullcontext():
                loss = loss_of(model(x), y) / parts
                loss.backward()
            total += loss.item()
        after()
        optimizer.step()
        optimizer.zero_grad()
        yield total


def rows_of_mine(group=None):
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    return lambda batch: tuple(whole.chunk(ranks)[rank] for whole in batch)


def by_replicas(compiled, hook=None, parts=1, bucket=1):
    model = compiled(DistributedDataParallel(make_model(), static_graph=parts == 1 and hook is None, gradient_as_bucket_view=True, bucket_cap_mb=bucket))
    ddp = getattr(model, "_orig_mod", model)
    if hook is not None:
        hook(ddp)
    return train(model, ddp.parameters(), rows_of_mine(), parts, ddp.no_sync)


def in_bfloat16(state, bucket):
    """The hook itself is refused by name where there is no CUDA."""
    return default_hooks.bf16_compress_hook(state, bucket)


def by_power_sgd(ddp):
    """Its calls come from callbacks: with several buckets ranks would make them in different orders, over any backend."""
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=16, start_powerSGD_iter=2, min_compression_rate=1)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def shard(model, mesh):
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def by_shards(compiled):
    model = shard(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    return train(compiled(model), model.parameters(), rows_of_mine())


def split_matrices(model, mesh):
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "attention.query": ColwiseParallel(), "attention.key": ColwiseParallel(), "attention.value": ColwiseParallel(),
            "attention.output": RowwiseParallel(), "feed.gate": ColwiseParallel(), "feed.up": ColwiseParallel(), "feed.down": RowwiseParallel()})
    return model


def by_matrices(compiled):
    model = split_matrices(make_model(), init_device_mesh("cpu", (dist.get_world_size(),)))
    return train(compiled(model), model.parameters())


def by_mesh(compiled):
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (ranks // 4, 2, 2), mesh_dim_names=("replicas", "parts", "matrices"))
    model = shard(split_matrices(make_model(), mesh["matrices"]), mesh["replicas", "parts"])
    mine = dist.get_rank() // 2
    return train(compiled(model), model.parameters(), lambda batch: tuple(whole.chunk(ranks // 2)[mine] for whole in batch))


def by_stages(compiled, each):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    indices = [rank + turn * ranks for turn in range(each)]
    parts = [make_model().part(index, each * ranks) for index in indices]
    stages = [PipelineStage(compiled(part), index, each * ranks, torch.device("cpu")) for part, index in zip(parts, indices)]
    schedule = (Schedule1F1B(stages[0], 2 * ranks, loss_fn=loss_of) if each == 1 else ScheduleInterleaved1F1B(stages, 2 * ranks, loss_fn=loss_of))
    optimizer = torch.optim.SGD([parameter for part in parts for parameter in part.parameters()], lr=RATE, foreach=False)
    for step in range(STEPS):
        inputs, wanted = batch_of(step)
        losses = []
        schedule.step(*([inputs] if rank == 0 else []), **({"target": wanted, "losses": losses} if rank == ranks - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()
        total = torch.stack(losses).mean().detach() if losses else torch.zeros((), dtype=KIND)
        dist.broadcast(total, ranks - 1)
        yield total.item()


def by_sequence(compiled):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    model = make_model()
    for block in model.blocks:
        block.attention.sequence = dist.group.WORLD
    positions = torch.arange(CONTEXT).chunk(ranks)[rank]
    network = compiled(model)
    return train(lambda x: network(x, positions), model.parameters(), lambda batch: tuple(whole.chunk(ranks, 1)[rank] for whole in batch),
                 after=lambda: average(model.parameters()))


def average(parameters):
    for parameter in parameters:
        dist.all_reduce(parameter.grad, dist.ReduceOp.AVG)


def by_experts(compiled):
    """What an expert's tokens add to its gradient came back to it with them; only the mean over ranks is left to take."""
    ranks = dist.get_world_size()
    model = make_model(with_experts=True)
    for block in model.blocks:
        block.feed.keep(dist.group.WORLD)
    own = {id(parameter) for block in model.blocks for parameter in block.feed.experts.parameters()}
    network = compiled(model)

    def after():
        average([parameter for parameter in model.parameters() if id(parameter) not in own])
        for parameter in model.parameters():
            if id(parameter) in own and parameter.grad is not None:
                parameter.grad /= ranks

    return train(network, model.parameters(), rows_of_mine(), after=after)


WAYS = {
    "ddp": by_replicas,
    "no-sync": lambda compiled: by_replicas(compiled, parts=2),
    "bf16": lambda compiled: by_replicas(compiled, lambda ddp: ddp.register_comm_hook(None, in_bfloat16)),
    "powersgd": lambda compiled: by_replicas(compiled, by_power_sgd, bucket=1000),
    "fsdp": by_shards,
    "tensor": by_matrices,
    "pipeline": lambda compiled: by_stages(compiled, 1),
    "interleaved": lambda compiled: by_stages(compiled, 2),
    "context": by_sequence,
    "expert": by_experts,
    "mesh": by_mesh,
}


def train_alone(way):
    model = make_model(way == "expert")
    return list(train(model, model.parameters()))


def timed(way, options):
    """The losses, the mean over all ranks, and tokens a second without the first two steps."""
    compiled = (lambda model: torch.compile(model, backend=options.compile)) if options.compile else (lambda model: model)
    losses, seconds = [], []
    begin = time.perf_counter()
    for loss in WAYS[way](compiled):
        seconds.append(time.perf_counter() - begin)
        mean = torch.tensor(loss, dtype=KIND)
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
        begin = time.perf_counter()
    return losses, BATCH * CONTEXT * len(seconds[2:]) / sum(seconds[2:])


def be_rank(rank, folder, options):
    torch.set_num_threads(1)
    for way in options.ways:
        alone = train_alone(way)
        speeds = {}
        for turn in range(options.turns):
            for backend in ["espalier"] + ([options.beside] if options.beside else []):
                dist.init_process_group(backend, init_method=f"file://{folder}/{way}-{turn}-{backend}", rank=rank, world_size=options.ranks)
                losses, speed = timed(way, options)
                speeds.setdefault(backend, []).append(speed)
                dist.destroy_process_group()
                worst = max(abs(ours - theirs) for ours, theirs in zip(losses, alone))
                assert worst <= BOUNDS.get(way, EXACT), f"{way} over {backend}, rank {rank}: losses {losses}, of one process {alone}"
                assert losses[-1] < losses[0], f"{way} over {backend}, rank {rank}: nothing is learnt, {losses}"
        if rank == 0:
            middle = {backend: sorted(found)[len(found) // 2] for backend, found in speeds.items()}
            beside = "".join(f", {backend} {speed:.0f} tokens/s" for backend, speed in middle.items())
            print(f"{way:>11}  loss {losses[0]:.6f} to {losses[-1]:.6f}, of one process {alone[-1]:.6f}; largest difference {worst:.1e}{beside}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}; all when left out")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--compile", metavar="BACKEND", help="torch.compile with inductor, aot_eager, ...")
    parser.add_argument("--beside", metavar="BACKEND", help="train over this one too, by turns")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.ways) - set(WAYS):
        parser.error(f"there is no {', '.join(sorted(unknown))}: choose from {', '.join(WAYS)}")
    options.ways = options.ways or [way for way in WAYS if way != "mesh" or options.ranks % 4 == 0]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=be_rank, args=(rank, folder, options)) for rank in range(options.ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        sys.exit(any(process.exitcode for process in processes))
