"""Many plans and simulations."""
import concurrent.futures
import itertools
import os

from . import _espalier
from ._checks import as_name, as_topology
from ._plans import plan
from ._simulation import simulate
from ._tables import Table
from ._units import is_several, parse_size, whole_number
from .errors import Error


def _listed(value):
    return list(value) if is_several(value) else [value]


def sweep(topologies, collectives="all_reduce", algorithms="auto", sizes="64M", model="link", root=None, threads=None, profile=None):
    """Simulates every combination in threads, without the GIL: a Table with a row for each.

    Each argument is one or a list of them; `topologies` are Topology objects. "auto" and "nccl" plan for each size. A row has topology,
    collective, algorithm, planner, size (bytes), time (seconds), busbw (bytes per second), of_bound, chunk (bytes), or an error where there
    is no such plan; under a `profile`, as in `simulate`, also protocol, low, high and outside. `threads`: as many as there are cores.

    >>> import espalier
    >>> rows = espalier.sweep(espalier.Topology.load("dgx1v"), "all_reduce", ["ring", "tree"], ["1M", "64M"])
    >>> [(row["algorithm"], row["size"]) for row in rows]
    [('ring', 1048576), ('ring', 67108864), ('tree', 1048576), ('tree', 67108864)]
    """
    for collective, algorithm in itertools.product(_listed(collectives), _listed(algorithms)):
        _espalier._check_names(as_name(collective, "a collective's name", "all_reduce, all_gather, ..."),
                               as_name(algorithm, "a planner's name", "auto, ring, ..."))
    figures = ["time", "busbw", "of_bound", "chunk"] + ([] if profile is None else ["protocol", "low", "high", "outside"])
    cases = [(as_topology(topology), collective, algorithm) for topology in _listed(topologies) for collective in _listed(collectives)
             for algorithm in _listed(algorithms)]
    sizes = [parse_size(size) for size in _listed(sizes)]

    def rows_of(topology, collective, algorithm, some):
        case = {"topology": topology.name, "collective": collective, "algorithm": algorithm}
        try:
            schedule = plan(topology, collective, algorithm, some[-1], root, profile=profile)
            runs = simulate(schedule, some, model=model, profile=profile)
        except Error as error:
            return [{**case, "planner": None, "size": size, **dict.fromkeys(figures), "error": error.message} for size in some]
        return [{**case, "planner": schedule.planner, **run.to_dict(), "error": None} for run in runs]

    tasks = [(*case, part) for case in cases for part in ([[size] for size in sizes] if case[2] in ("auto", "nccl") else [sizes])]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)) if threads is None else whole_number(threads, "threads", 1)) as pool:
        return Table(row for rows in pool.map(lambda task: rows_of(*task), tasks) for row in rows)
