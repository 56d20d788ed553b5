"""Ranks of a process group as forks of a test. Ends the test as skipped where PyTorch is not installed."""
import datetime
import multiprocessing
import os
import sys
import tempfile
import traceback

try:
    import torch
    import torch.distributed as dist

    import espalier.torch  # The backend registers itself.
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --torch installs PyTorch)")
    sys.exit(77)

SECONDS = datetime.timedelta(seconds=60)


def _be_rank(function, rank, world, meeting, backend, arguments, failures):
    torch.set_num_threads(1)
    try:
        dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=world, timeout=SECONDS)
        function(*arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:
        failures.put(f"rank {rank}: {traceback.format_exc()}")
        os._exit(1)


def run_ranks(function, world, *arguments, backend="espalier"):
    """The function in `world` forks, the ranks of a process group; what goes wrong in one is raised here."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        failures = context.SimpleQueue()
        ranks = [context.Process(target=_be_rank, args=(function, rank, world, f"{folder}/store", backend, arguments, failures))
                 for rank in range(world)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join(240)
        stuck = [index for index, rank in enumerate(ranks) if rank.is_alive()]
        for rank in ranks:
            if rank.is_alive():
                rank.kill()
        text = "" if failures.empty() else failures.get()
        if stuck or text or any(rank.exitcode for rank in ranks):
            raise AssertionError(f"ranks {stuck} are stuck; exit codes {[rank.exitcode for rank in ranks]}; {text}")
