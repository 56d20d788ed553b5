#!/usr/bin/env python3
"""Training that goes on when a rank dies: torchrun starts all again, and they go on from the last checkpoint, which every rank wrote its part of.

    torchrun --nproc-per-node 2 --max-restarts 1 train_elastic.py --checkpoint FOLDER [--steps N] [--every N] [--die-at STEP] [--compile BACKEND]

The parameters lie in parts on the ranks (fully_shard), torch.distributed.checkpoint writes and reads them. --die-at kills the last rank at that step,
once. Rank 0 prints a digest of the weights at the end: the same as of a training that nothing happened to.
"""
import argparse
import hashlib
import os
import pathlib
import signal

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoints
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, get_state_dict, set_state_dict

import espalier.torch  # noqa: F401  The backend registers itself.
from train_llama import RATE, batch_of, loss_of, make_model, rows_of_mine, shard


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--compile", metavar="BACKEND")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("espalier")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = shard(make_model(), dist.device_mesh.init_device_mesh("cpu", (ranks,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.5, foreach=False)
    network = torch.compile(model, backend=options.compile) if options.compile else model
    part, first = rows_of_mine(), 0
    written = sorted(options.checkpoint.glob("step-*/.metadata"))  # Which comes last, so it marks a whole one.
    if written:
        first = int(written[-1].parent.name.removeprefix("step-"))
        weights, state = get_state_dict(model, optimizer)
        checkpoints.load({"model": weights, "optimizer": state}, checkpoint_id=written[-1].parent)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    for step in range(first, options.steps):
        if step == options.die_at and rank == ranks - 1 and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        inputs, wanted = part(batch_of(step))
        loss = loss_of(network(inputs), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % options.every == 0:
            weights, state = get_state_dict(model, optimizer)
            checkpoints.save({"model": weights, "optimizer": state}, checkpoint_id=options.checkpoint / f"step-{step + 1:04}")
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if rank == 0:
        digest = hashlib.sha256(b"".join(whole[name].numpy().tobytes() for name in sorted(whole)))
        print(f"from step {first} to {options.steps}, loss {loss.item():.6f}, weights {digest.hexdigest()[:16]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
