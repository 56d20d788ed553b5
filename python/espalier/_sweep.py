"""Many plans and simulations."""
import concurrent.futures
import os

from ._checks import as_topology
from ._plans import plan
from ._simulation import simulate
from ._tables import Table
from ._units import is_several, parse_size
from .errors import Error


def _listed(value):
    return list(value) if is_several(value) else [value]


def sweep(topologies, collectives="all_reduce", algorithms="auto", sizes="64M", model="link", root=None, threads=None):
    """Simulates every combination in threads, without the GIL: a Table with a row for each.

    Each argument is one or a list of them; `topologies` are Topology objects. "auto" plans for each size. A row has topology,
    collective, algorithm, planner, size (bytes), time (seconds), busbw (bytes per second), of_bound, chunk (bytes), or an error where there
    is no such plan. `threads`: as many as there are cores.

    >>> import espalier
    >>> rows = espalier.sweep(espalier.Topology.load("dgx1v"), "all_reduce", ["ring", "tree"], ["1M", "64M"])
    >>> [(row["algorithm"], row["size"]) for row in rows]
    [('ring', 1048576), ('ring', 67108864), ('tree', 1048576), ('tree', 67108864)]
    """
    cases = [(as_topology(topology), collective, algorithm) for topology in _listed(topologies) for collective in _listed(collectives)
             for algorithm in _listed(algorithms)]
    sizes = [parse_size(size) for size in _listed(sizes)]

    def rows_of(topology, collective, algorithm, some):
        case = {"topology": topology.name, "collective": collective, "algorithm": algorithm}
        try:
            schedule = plan(topology, collective, algorithm, some[-1], root)
            runs = simulate(schedule, some, model=model)
        except Error as error:
            return [{**case, "planner": None, "size": size, "time": None, "busbw": None, "of_bound": None, "chunk": None,
                     "error": error.message} for size in some]
        return [{**case, "planner": schedule.algorithm, **run.to_dict(), "error": None} for run in runs]

    tasks = [(*case, part) for case in cases for part in ([[size] for size in sizes] if case[2] == "auto" else [sizes])]
    with concurrent.futures.ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        return Table(row for rows in pool.map(lambda task: rows_of(*task), tasks) for row in rows)
