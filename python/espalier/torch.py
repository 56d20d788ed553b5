"""The torch.distributed backend "espalier": importing this module registers it.

    import torch.distributed, espalier.torch
    torch.distributed.init_process_group("espalier")

Collectives, sends and receives go through Espalier's engine: shared memory within a machine, TCP or RDMA between machines.
It works on tensors of the CPU where they lie, on those of GPUs in GPU memory where it can, else by way of host memory. docs/torch.md says which tensors and operations there are. The environment chooses, alike on all ranks:

    ESPALIER_TRANSPORT   auto, shm, tcp, shm+verbs or verbs
    ESPALIER_ALGORITHM   auto or a planner's name
    ESPALIER_TOPOLOGY    a topology file or shipped machine with as many ranks as the job
    ESPALIER_PLAN        plan files for their collectives, separated by commas; plan.json@1M-64M is for these message sizes
    ESPALIER_DEVICE_TENSORS  auto, engine (on GPUs, or an error) or host
    ESPALIER_ADDRESS     this machine's address for the others, where MASTER_ADDR does not tell

The first import compiles the backend against the PyTorch that is installed (_torch_build.py), which takes a C++ compiler.
"""
import atexit
import multiprocessing.util
import os
import sys

import torch
import torch.distributed

from . import _espalier
from ._topology import find_topology_file
from ._torch_build import load_backend
from ._units import parse_size
from .errors import Error

BACKEND = "espalier"
_torch = load_backend()


def read_plans(text):
    """The plans of ESPALIER_PLAN: [(path, least size, most or -1)].

    >>> read_plans("a.json@-1M, b.json@2M-64M,c.json")
    [('a.json', 0, 1048576), ('b.json', 2097152, 67108864), ('c.json', 0, -1)]
    """
    plans = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        path, _, sizes = part.rpartition("@") if "@" in part else (part, "", "")
        least, dash, most = sizes.partition("-")
        if sizes and not dash:
            raise Error("invalid_input", f"ESPALIER_PLAN: {sizes!r} is no range of sizes", "write plan.json@1M-64M")
        plans.append((path, parse_size(least) if least else 0, parse_size(most) if most else -1))
    return plans


_store = None  # Of the job's last group.


def _make_group(store, rank, size, timeout):
    """A group of all ranks keeps its store until there is another: ranks that have left it and begin anew meet at the old one's port as
    long as rank 0 has not left too, which then goes on with the same store."""
    global _store
    is_whole_job = torch.distributed.GroupMember.WORLD is None
    if is_whole_job:
        _store = store
    _leave_at_end()
    told = os.environ.get
    topology = told("ESPALIER_TOPOLOGY", "")
    return _torch.make_group(_espalier.engine, store, rank, size, timeout, told("ESPALIER_TRANSPORT", "auto"),
                             told("ESPALIER_ALGORITHM", "auto"), str(find_topology_file(topology)) if topology else "",
                             told("ESPALIER_DEVICE_TENSORS", "auto"),
                             read_plans(told("ESPALIER_PLAN", "")), is_whole_job)


def transports(group=None):
    """How each rank of a process group is reached, by rank: "shm", "tcp", "verbs".

    >>> import tempfile, torch.distributed, espalier.torch
    >>> with tempfile.TemporaryDirectory() as folder:  # A job of one.
    ...     torch.distributed.init_process_group("espalier", init_method=f"file://{folder}/store", rank=0, world_size=1)
    ...     espalier.torch.transports()
    ...     torch.distributed.destroy_process_group()
    ['shm']
    """
    group = torch.distributed.group.WORLD if group is None else group
    if hasattr(group, "_get_backend"):
        group = group._get_backend(torch.device("cpu"))
    return _torch.transports(group)


def _leave():
    """Groups that are still there leave with a goodbye; with a reason where an exception ends the process."""
    wrong = getattr(sys, "last_type", None)
    _torch.leave_all(f"{wrong.__name__}: {sys.last_value}" if wrong is not None else "")


_leaving = set()  # Processes that will: forks of multiprocessing end without atexit, and forget what their parent asked for.


def _leave_at_end():
    if os.getpid() not in _leaving:
        _leaving.add(os.getpid())
        atexit.register(_leave)
        multiprocessing.util.Finalize(None, _leave, exitpriority=0)


_torch.allocate_tensors_in_pages()
if BACKEND.upper() not in getattr(torch.distributed.Backend, "_plugins", {}):
    _options = {} if torch.__version__.startswith("1.") else {"devices": ["cpu", "cuda"]}
    torch.distributed.Backend.register_backend(BACKEND, _make_group, **_options)
