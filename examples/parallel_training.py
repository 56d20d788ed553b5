#!/usr/bin/env python3
"""Three ways to train one network on four ranks over Espalier, each held against one process.

    parallel_training.py [tensor|pipeline|data ...] [--record FOLDER]

tensor    every rank has a part of each layer: columns of the first matrix, rows of the second; all_reduce joins them.
pipeline  every rank has one layer; micro-batches go through in 1F1B order, by sends and receives.
data      every rank has the whole network and a part of the batch; all_reduce averages the gradients.

With --record a step of each way goes to FOLDER/tensor, ..., beside the simulation of the same step (step_timeline.py).
Needs PyTorch and the built package: PYTHONPATH=build/python/python.
"""
import argparse
import multiprocessing
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn

import espalier.torch
from step_timeline import StepRecorder, compare_steps

RANKS, WIDTH, HIDDEN, BATCH, MICRO_BATCHES, STEPS, RATE = 4, 32, 64, 32, 8, 20, 0.05
KIND = torch.float64
RECORDER = StepRecorder()


def make_layers():
    """RANKS layers x + W2 tanh(W1 x), the same in every process."""
    made = torch.Generator().manual_seed(3)
    return [(torch.randn(HIDDEN, WIDTH, generator=made, dtype=KIND) * 0.1,
             torch.randn(WIDTH, HIDDEN, generator=made, dtype=KIND) * 0.1) for _ in range(RANKS)]


def batch_of(step):
    made = torch.Generator().manual_seed(1000 + step)
    inputs = torch.randn(BATCH, WIDTH, generator=made, dtype=KIND)
    return inputs, inputs.roll(1, dims=1).sin()


def layer(x, first, second):
    return x + (x @ first.t()).tanh() @ second.t()


def loss_of(output, wanted):
    return ((output - wanted) ** 2).sum() / (BATCH * WIDTH)


def descend(parameters):
    with torch.no_grad():
        for parameter in parameters:
            parameter -= RATE * parameter.grad
            parameter.grad = None


def train_alone():
    """The losses of one process: what the others have to give."""
    layers = [tuple(nn.Parameter(weight) for weight in pair) for pair in make_layers()]
    losses = []
    for step in range(STEPS):
        x, wanted = batch_of(step)
        for pair in layers:
            x = layer(x, *pair)
        loss = loss_of(x, wanted)
        loss.backward()
        descend([weight for pair in layers for weight in pair])
        losses.append(loss.item())
    return losses


def all_reduce(tensor):
    with RECORDER.blocked(RECORDER.begin("all_reduce", tensor)):
        dist.all_reduce(tensor)


def start(kind, call, tensor, peer=0, tag=0):
    """A call that goes on beside: what is recorded of it, and its work."""
    recorded = RECORDER.begin(kind, tensor, peer, tag)
    work = call(tensor, peer, tag=tag) if kind == "send" else call(tensor, async_op=True)
    work.get_future().then(lambda done: RECORDER.end(recorded))
    return recorded, work


def wait_for(started):
    for recorded, work in started:
        with RECORDER.blocked(recorded):
            work.wait()


def receive(tensor, peer, tag):
    with RECORDER.blocked(RECORDER.begin("receive", tensor, peer, tag)):
        dist.recv(tensor, peer, tag=tag)


class ToAll(torch.autograd.Function):
    """What goes to all parts of a layer: nothing to do forwards; gradients of the parts add up backwards."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        all_reduce(gradient)
        return gradient


class FromAll(torch.autograd.Function):
    """What all parts of a layer add up to."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def train_tensor_parallel(rank):
    share = slice(rank * HIDDEN // RANKS, (rank + 1) * HIDDEN // RANKS)
    layers = [(nn.Parameter(first[share].clone()), nn.Parameter(second[:, share].clone())) for first, second in make_layers()]
    losses = []
    for step in range(STEPS):
        with RECORDER.step():
            x, wanted = batch_of(step)
            for first, second in layers:
                x = x + FromAll.apply((ToAll.apply(x) @ first.t()).tanh() @ second.t())
            loss = loss_of(x, wanted)
            loss.backward()
            descend([weight for pair in layers for weight in pair])
            losses.append(loss.item())
    return losses


def train_pipeline(rank):
    """1F1B: a rank runs as many forwards as there are ranks behind it, then a forward and a backward in turns."""
    own = [nn.Parameter(weight) for weight in make_layers()[rank]]
    rows, losses = BATCH // MICRO_BATCHES, []
    for step in range(STEPS):
        with RECORDER.step():
            inputs, wanted = (whole.split(rows) for whole in batch_of(step))
            kept, sending, total = [], [], 0.0

            def forward(index):
                x = inputs[index].clone()
                if rank > 0:
                    receive(x, rank - 1, index)
                    x.requires_grad_()
                output = layer(x, *own)
                if rank < RANKS - 1:
                    sending.append(start("send", dist.isend, output.detach(), rank + 1, index))
                kept.append((x, output))

            def backward(index):
                x, output = kept[index]
                if rank == RANKS - 1:
                    loss = loss_of(output, wanted[index])
                    loss.backward()
                else:
                    gradient = torch.empty_like(output)
                    receive(gradient, rank + 1, MICRO_BATCHES + index)
                    output.backward(gradient)
                    loss = torch.zeros(())
                if rank > 0:
                    sending.append(start("send", dist.isend, x.grad, rank - 1, MICRO_BATCHES + index))
                kept[index] = None
                return loss.item()

            ahead = min(RANKS - 1 - rank, MICRO_BATCHES)
            for index in range(ahead):
                forward(index)
            for index in range(MICRO_BATCHES):
                if ahead + index < MICRO_BATCHES:
                    forward(ahead + index)
                total += backward(index)
            wait_for(sending)
            descend(own)
            total = torch.tensor(total, dtype=KIND)
            with RECORDER.blocked(RECORDER.begin("broadcast", total, RANKS - 1)):
                dist.broadcast(total, RANKS - 1)  # The last rank knows the loss.
            losses.append(total.item())
    return losses


def train_data_parallel(rank):
    layers = nn.ParameterList(nn.Parameter(weight) for pair in make_layers() for weight in pair)
    losses, share = [], slice(rank * BATCH // RANKS, (rank + 1) * BATCH // RANKS)
    for step in range(STEPS):
        with RECORDER.step():
            inputs, wanted = (whole[share] for whole in batch_of(step))
            x = inputs
            for first, second in zip(layers[::2], layers[1::2]):
                x = layer(x, first, second)
            loss = loss_of(x, wanted)
            loss.backward()
            wait_for([start("all_reduce", dist.all_reduce, weight.grad) for weight in layers])
            descend(layers)
            loss = loss.detach()
            all_reduce(loss)
            losses.append(loss.item())
    return losses




WAYS = {"tensor": train_tensor_parallel, "pipeline": train_pipeline, "data": train_data_parallel}


def be_rank(rank, meeting, ways, folder):
    torch.set_num_threads(1)
    dist.init_process_group("espalier", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    alone = train_alone()
    for way in ways:
        RECORDER.steps.clear()
        losses = WAYS[way](rank)
        worst = max(abs(ours - theirs) for ours, theirs in zip(losses, alone))
        if rank == 0:
            print(f"{way:>8}  loss {losses[0]:.6f} to {losses[-1]:.6f}, of one process {alone[-1]:.6f}; "
                  f"largest difference {worst:.1e}", flush=True)
        assert worst < 1e-12, f"rank {rank}, {way}: the losses differ by {worst}"
        if folder:
            compare_steps(RECORDER, f"{folder}/{way}", "float64")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}; all when left out")
    parser.add_argument("--record", metavar="FOLDER", help="a step of each way beside its simulation by the command espalier")
    options = parser.parse_args()
    if unknown := set(options.ways) - set(WAYS):
        parser.error(f"there is no {', '.join(sorted(unknown))}: choose from {', '.join(WAYS)}")
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=be_rank, args=(rank, f"{folder}/store", options.ways or list(WAYS), options.record)) for rank in range(RANKS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        sys.exit(any(process.exitcode for process in processes))
