#!/usr/bin/env python3
"""A mixture-of-experts layer, top 2 of 8 experts, whose experts lie on different ranks: tokens go to them and back by uneven all_to_all.

    moe_layer.py [--ranks N] [--tokens T] [--width D] [--hidden H] [--beside gloo] [--turns N] [--steps N]

Outputs and gradients are held against one process that has all tokens and all experts. With --beside the same ranks run the layer,
forward and backward, by turns over both backends: tokens per second of each. Needs PyTorch and the package espalier.
"""
import argparse
import multiprocessing
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F

import espalier.torch  # noqa: F401  The backend registers itself.

EXPERTS, CHOSEN = 8, 2


class Exchange(torch.autograd.Function):
    """Rows to the ranks that they are for; gradients go the way back."""

    @staticmethod
    def forward(context, rows, sent, received, group):
        context.counts = sent, received, group
        result = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(result, rows.contiguous(), received, sent, group=group)
        return result

    @staticmethod
    def backward(context, gradient):
        sent, received, group = context.counts
        return Exchange.apply(gradient, received, sent, group), None, None, None


def make_weights(width, hidden, kind):
    """The gate and the experts, alike on every rank."""
    made = torch.Generator().manual_seed(1)
    draw = lambda *shape: torch.randn(*shape, generator=made, dtype=torch.float64).to(kind) / shape[-2] ** 0.5
    return draw(width, EXPERTS), draw(EXPERTS, width, hidden), draw(EXPERTS, hidden, width)


def tokens_of(rank, tokens, width, kind):
    """A rank's tokens: of 32 topics, some much more often than others, so that experts get unequal work."""
    topics = torch.randn(32, width, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    made = torch.Generator().manual_seed(100 + rank)
    often = torch.arange(1, 33, dtype=torch.float64) ** -0.7
    topic = torch.multinomial(often, tokens, replacement=True, generator=made)
    return (topics[topic] + 0.5 * torch.randn(tokens, width, generator=made, dtype=torch.float64)).to(kind)


def route(tokens, gate):
    """Of each token the experts, and how much each counts."""
    weights, experts = (tokens @ gate).softmax(-1).topk(CHOSEN)
    return weights / weights.sum(-1, keepdim=True), experts


def run_expert(rows, inward, outward):
    return F.gelu(rows @ inward) @ outward


def by_one_process(tokens, gate, inward, outward):
    weights, experts = route(tokens, gate)
    result = torch.zeros_like(tokens)
    for expert in range(EXPERTS):
        token, choice = (experts == expert).nonzero(as_tuple=True)
        found = run_expert(tokens[token], inward[expert], outward[expert])
        result = result.index_add(0, token, found * weights[token, choice, None])
    return result


def by_ranks(tokens, gate, inward, outward, group=None):
    """`inward` and `outward` of this rank's experts."""
    ranks, own = dist.get_world_size(group), len(inward)
    weights, experts = route(tokens, gate)
    order = experts.flatten().argsort(stable=True)
    counts = experts.flatten().bincount(minlength=EXPERTS)
    coming = torch.empty_like(counts)  # By rank, and of each for this rank's experts.
    dist.all_to_all_single(coming, counts, group=group)
    sent = counts.view(ranks, own).sum(1).tolist()
    received = coming.view(ranks, own).sum(1).tolist()
    there = Exchange.apply(tokens[order // CHOSEN], sent, received, group)
    expert_of = torch.arange(own).repeat(ranks).repeat_interleave(coming)
    by_expert = expert_of.argsort(stable=True)
    parts = there[by_expert].split(expert_of.bincount(minlength=own).tolist())
    results = torch.cat([run_expert(part, inward[i], outward[i]) for i, part in enumerate(parts)])
    back = Exchange.apply(results[by_expert.argsort()], received, sent, group)
    return torch.zeros_like(tokens).index_add(0, order // CHOSEN, back * weights.flatten()[order, None])


def check(rank, options):
    """Output, and gradients of tokens, gate and own experts, against one process that has everything."""
    kind, ranks = torch.float64, options.ranks
    own = slice(rank * EXPERTS // ranks, (rank + 1) * EXPERTS // ranks)
    leaves = lambda tensors: [tensor.clone().requires_grad_() for tensor in tensors]
    all_tokens = torch.cat([tokens_of(source, 64, 24, kind) for source in range(ranks)])
    weights = make_weights(24, 48, kind)
    alone = leaves((all_tokens, *weights))
    by_one_process(*alone).pow(2).sum().backward()
    mine = slice(64 * rank, 64 * rank + 64)
    ours = leaves((all_tokens[mine], weights[0], weights[1][own], weights[2][own]))
    result = by_ranks(*ours)
    result.pow(2).sum().backward()
    dist.all_reduce(ours[1].grad)
    expected = [by_one_process(*alone)[mine], alone[0].grad[mine], alone[1].grad, alone[2].grad[own], alone[3].grad[own]]
    worst = max((found - right).abs().max().item() for found, right in zip([result] + [leaf.grad for leaf in ours], expected))
    assert worst < 1e-12, f"rank {rank}: off by {worst}"
    return worst


def measure(rank, options, group):
    """Tokens a second of all ranks, forward and backward, in the middle of the steps."""
    own = slice(rank * EXPERTS // options.ranks, (rank + 1) * EXPERTS // options.ranks)
    gate, inward, outward = make_weights(options.width, options.hidden, torch.float32)
    leaves = [tensor.clone().requires_grad_() for tensor in
              (tokens_of(rank, options.tokens, options.width, torch.float32), gate, inward[own], outward[own])]
    seconds = []
    for _ in range(options.steps):
        dist.barrier(group)
        begin = time.perf_counter()
        by_ranks(*leaves, group).sum().backward()
        dist.barrier(group)
        seconds.append(time.perf_counter() - begin)
    return options.tokens * options.ranks / sorted(seconds)[len(seconds) // 2]


def be_rank(rank, folder, options):
    torch.set_num_threads(1)
    dist.init_process_group("espalier", init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks)
    worst = check(rank, options)
    groups = {"espalier": None}
    if options.beside:
        groups[options.beside] = dist.new_group(backend=options.beside)
    speeds = {name: [] for name in groups}
    for _ in range(options.turns):
        for name, group in groups.items():
            speeds[name].append(measure(rank, options, group))
    if rank == 0:
        middle = ", ".join(f"{name} {sorted(found)[len(found) // 2]:.0f} tokens/s" for name, found in speeds.items())
        print(f"largest difference {worst:.1e}; {middle}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, choices=[1, 2, 4, 8])
    parser.add_argument("--tokens", type=int, default=512, help="of each rank")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--beside", metavar="BACKEND", help="run over this one too, by turns")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=be_rank, args=(rank, folder, options)) for rank in range(options.ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        sys.exit(any(process.exitcode for process in processes))
