"""Bounds and schedules."""
import dataclasses
import fractions
import html
import pathlib
import typing

import numpy

from . import _espalier
from ._checks import as_name, as_topology
from ._tables import Table
from ._topology import find_profile, gpu_of, ranks_text, root_number
from ._units import as_integer, parse_size, whole_number
from .errors import Error

Schedule = _espalier.Schedule
planners = _espalier.planners


@dataclasses.dataclass(frozen=True)
class Bound:
    """A proven limit: no schedule moves S bytes in less than S * time_per_byte seconds.

    >>> from espalier import Bound, Topology, bound
    >>> limit = bound(Topology.load("dgx1v-degraded"), "all_gather")
    >>> isinstance(limit, Bound), len(limit.cut), limit.what
    (True, 7, 'the shards of 7 ranks have to leave it, S/8 bytes each')
    """

    time_per_byte: fractions.Fraction  #: Seconds per byte of the message size S.
    cut: list  #: Ids of the nodes whose cut proves it; empty where a linear program does.
    what: str  #: One sentence: what the cut has to let through.
    busbw: typing.Optional[float]  #: Bytes per second, as nccl-tests count; None where nothing moves.
    is_floor: bool = False  #: Whether it is not known to be reached: the best schedule may take longer. `what` says why.

    def _repr_html_(self):
        rate = "" if self.busbw is None else f", busbw at most {self.busbw / 1e9:.2f} GB/s"
        cut = f"<br>cut: {html.escape(', '.join(self.cut))}" if self.cut else ""
        floor = " (a floor)" if self.is_floor else ""
        return f"<b>{self.time_per_byte} s per byte</b>{rate}{floor}<br>{html.escape(self.what)}{cut}"


class Breach(typing.NamedTuple):
    """What keeps a schedule from its promise: the rule of docs/schedule.md, the transfer or None, and a sentence."""

    rule: str
    transfer: typing.Optional[int]
    message: str


def _shares_of(shares):
    return [] if shares is None else [whole_number(share, "a share") for share in shares]


def _parts_of(topology, shares, matrix):
    """Shares of all parts, and the bytes that a matrix makes S, or None."""
    if matrix is None:
        return _shares_of(shares), None
    if shares:
        raise Error("invalid_input", "shares and a matrix do not go together", "all_to_all has a matrix, shards have shares")
    if isinstance(matrix, (str, pathlib.PurePath)):
        blocks, size = _espalier._load_traffic(str(matrix), topology.rank_count)
        return blocks, size
    array = numpy.asarray(matrix)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "iu":
        raise Error("invalid_input", f"the matrix has the shape {array.shape} and type {array.dtype}",
                    "give a row of whole numbers, bytes, for each rank: what it sends to each")
    if array.size and int(array.max()) > numpy.iinfo(numpy.int64).max:
        raise Error("invalid_input", "the matrix has blocks past 64 bits", "give whole numbers of bytes")
    array = array.astype(numpy.int64)
    return array.ravel().tolist(), int(max(array.sum(0).max(), array.sum(1).max())) if array.size else None


def _collective(name):
    return as_name(name, "a collective's name", "all_reduce, all_gather, ...")


def bound(topology, collective, root=None, shares=None, matrix=None):
    """The exact limit of a collective on a topology. Long ones release the GIL.

    `shares`: a whole number for each rank; its shard of all_gather, reduce_scatter, gather or scatter is so much of their sum.
    `matrix`: of all_to_all, a square array of whole numbers: row i holds what rank i sends to each rank. S is then the most
    that a rank sends or receives. Also a file, or a law such as "zipf:0.7,seed=3" (docs/traffic-matrices.md).

    >>> from espalier import Topology
    >>> bound(Topology.generate("ring", [4], bandwidth=25e9), "all_gather").time_per_byte
    Fraction(3, 200000000000)
    >>> bound(Topology.generate("ring", [4], bandwidth=25e9), "all_gather", shares=[1, 0, 0, 0]).what
    'all S bytes of shards have to leave it'
    >>> bound(Topology.generate("ring", [3], bandwidth=25e9), "all_to_all", matrix=[[0, 5, 0], [0, 0, 2], [1, 0, 0]]).time_per_byte
    Fraction(1, 50000000000)
    """
    parts, _ = _parts_of(as_topology(topology), shares, matrix)
    return Bound(*_espalier._bound(topology, _collective(collective), root_number(topology, root), parts))


def plan(topology, collective, algorithm="auto", size=None, root=None, shares=None, k=None, max_depth=None, ranks=None, groups=None,
         profile=None, matrix=None):
    """A verified schedule by one of `planners()`, or by "auto" the one that is fastest at `size`; `shares` and `matrix` as in `bound`.

    `size` is 64 MiB where it is not given; with a matrix of bytes, the most that a rank sends or receives.

    Variants of the packing go by the names that tables print, such as "packing/h2t3": no tree higher than 2, 3 trees a root.

    Args:
        k: of packing: so many trees of equal weight per root.
        max_depth: of packing: no tree deeper than so many hops from rank to rank.
        ranks: the only ranks, all other nodes forward: "gpu[0-3]", or a list of names or numbers.
        groups: several of these, at work at once ("gpu[0-3];gpu[4-7]", or a list): a list of schedules that share the links in the
            best way, one per group, to be simulated together. A root counts within its group.
        profile: a shipped profile's name or a file, as in `simulate`: plans take the paths that its software takes, "auto" chooses
            with its costs, and "nccl" is what NCCL would run.

    >>> from espalier import Topology, simulate
    >>> machine = Topology.load("dgx1v")
    >>> plan(machine, "all_reduce", algorithm="ring").transfers.dtype.names
    ('first_slice', 'slice_count', 'route', 'channel_and_reduces')
    >>> plan(machine, "all_gather", ranks="gpu[0-3]").topology.rank_count
    4
    >>> both = plan(machine, "all_gather", groups=["gpu[0-3]", [4, 5, 6, 7]])
    >>> [run.of_bound <= 1 for run in simulate(both, "64M")]
    [True, True]
    >>> plan(machine, "all_reduce", profile="nccl-volta", algorithm="nccl").algorithm
    'ring'
    >>> skewed = plan(machine, "all_to_all", algorithm="lp", matrix="zipf:0.7,seed=3")
    >>> skewed.matrix.shape, skewed.verify()
    ((8, 8), [])
    """
    as_topology(topology), _collective(collective)
    as_name(algorithm, "a planner's name", "auto, or one of " + ", ".join(planners()))
    if groups is not None:
        if matrix is not None:
            raise Error("unsupported", "groups are planned for equal blocks", "leave the matrix out")
        if algorithm != "auto" or (k, max_depth, ranks, profile) != (None, None, None, None):
            raise Error("unsupported", "groups are planned by one program: algorithm, k, max_depth, ranks and profile do not go with them",
                        "leave them out")
        if isinstance(root, str):
            raise Error("unsupported", f"{root!r} is a rank's name, and a root counts within its group", "give its number there")
        lists = groups.split(";") if isinstance(groups, str) else groups
        return _espalier._plan_of_groups(topology, collective, [ranks_text(topology, each) for each in lists], root_number(topology, root),
                                         _shares_of(shares))
    gpu = gpu_of(topology)
    if ranks is not None:
        topology = _espalier._with_ranks(topology, ranks_text(topology, ranks))
    parts, of_matrix = _parts_of(topology, shares, matrix)
    if size is not None:
        size = parse_size(size)
    elif of_matrix is None:
        size = parse_size("64M")
    else:
        size = max(4, of_matrix // 4 * 4)  # Whole elements of plans, as the command has it.
    request = _espalier._PlanRequest(algorithm, size, 0 if k is None else whole_number(k, "k", 1),
                                     0 if max_depth is None else whole_number(max_depth, "max_depth", 1), *find_profile(profile), gpu)
    return _espalier._plan(topology, collective, request, root_number(topology, root), parts)


def verify(self, most=100):
    """The breaches of the rules of docs/schedule.md, at most so many; none of them for a right schedule.

    >>> from espalier import Breach, Topology
    >>> ring = plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
    >>> ring.verify(), ring.collective, ring.algorithm, ring.root, ring.topology.name
    ([], 'all_reduce', 'ring', None, 'dgx1v')
    >>> ring.units >= 8, len(ring.slices) >= 8, len(ring.routes[0]), bool(max(ring.link_loads) > 0), ring.load_time > 0
    (True, True, 3, True, True)
    >>> two = Topology.generate("ring", [2])
    >>> empty = Schedule.from_arrays(two, "broadcast", 1, [[0, 1, -1, -1]], [(0, 1, [0])], [], root=0)
    >>> isinstance(empty.verify()[0], Breach), empty.verify()[0].rule
    (True, 'S7')
    """
    return [Breach(*row) for row in self._breaches(most)]


def save(self, path):
    """Writes the JSON form, with its network.

    >>> import os, tempfile
    >>> from espalier import Topology
    >>> tree = plan(Topology.load("dgx1v"), "broadcast", algorithm="tree")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tree.save(folder + "/plan.json")
    ...     same = Schedule.load(folder + "/plan.json")
    >>> same.to_json() == tree.to_json() == Schedule.from_json(tree.to_json()).to_json()
    True
    """
    try:
        pathlib.Path(path).write_text(self.to_json(), encoding="utf-8")
    except OSError as error:
        raise Error("unavailable", f"cannot write {path}: {error.strerror}") from None


def load(path):
    """Reads the JSON form."""
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise Error("unavailable", f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no text'}") from None
    return Schedule.from_json(text)


def from_arrays(topology, collective, units, slices, routes, transfers, root=None, algorithm="python"):
    """A schedule of your own; `verify` says whether it is right, and only a right one can be simulated.

    Args:
        units: the length of the buffer in units of any size.
        slices: (n, 4) whole numbers: offset and length in units, rank, to; -1 for none. In offset order, tiling the buffer.
        routes: [(source rank, destination rank, [link ids])].
        transfers: (m, 5) whole numbers in program order: first slice, number of slices, route, channel, action (0 copies
            what the source holds, 1 adds that, 2 adds what the source brought).

    >>> import espalier
    >>> two = espalier.Topology.generate("ring", [2])
    >>> Schedule.from_arrays(two, "broadcast", 1, [[0, 1, -1, -1]], [(0, 1, [0])], [[0, 1, 0, 0, 0]], root=0).verify()
    []
    >>> unfinished = Schedule.from_arrays(two, "broadcast", 1, [[0, 1, -1, -1]], [(0, 1, [0])], [], root=0)
    >>> try:
    ...     espalier.simulate(unfinished)
    ... except espalier.Error as error:
    ...     print(error.message.split(":")[0])
    the schedule breaks rule S7
    """
    return Schedule._build(as_topology(topology), _collective(collective), root_number(topology, root), whole_number(units, "units", 1), _rows(slices, 4, "slices"),
                          [_route(route) for route in routes], _rows(transfers, 5, "transfers"), algorithm)


def _rows(values, columns, what):
    """An array of whole numbers of so many columns; nothing is rounded or cut into rows."""
    try:
        array = numpy.asarray(values)
    except ValueError:
        array = numpy.asarray(None)  # Rows of unlike lengths.
    if array.size == 0 and array.ndim in (1, 2) and array.shape[-1] in (0, columns):
        return numpy.zeros((0, columns), numpy.int64)
    if array.ndim != 2 or array.shape[1] != columns:
        raise Error("invalid_input", f"{what} is not an array of {columns} columns", f"give rows of {columns} whole numbers")
    if array.dtype.kind not in "iu" or int(array.max()) > numpy.iinfo(numpy.int64).max:
        raise Error("invalid_input", f"{what} has values of type {array.dtype}", "give whole numbers of 64 bits")
    return array.astype(numpy.int64)


def _route(route):
    try:
        source, destination, links = route
        ends = [as_integer(end) for end in (source, destination, *links)]
    except (TypeError, ValueError):
        ends = [None]
    if None in ends:
        raise Error("invalid_input", f"{route!r} is not a route", "give (source rank, destination rank, [link ids])")
    return (ends[0], ends[1], ends[2:])


def _repr(self):
    return (f"<espalier.Schedule {self.collective} by {self.algorithm} on {self.topology.name}: "
            f"{len(self.transfers)} transfers>")


def to_pandas(self):
    """The transfers as a pandas.DataFrame: slices, ends as rank numbers, links on the way, channel, whether it adds.

    >>> from espalier import Topology, planners
    >>> "ring" in planners()
    True
    >>> ring = plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
    >>> try:
    ...     len(ring.to_pandas()) == len(ring.transfers)
    ... except ImportError:
    ...     True  # Without pandas.
    True
    """
    import pandas

    rows, routes = [], self.routes
    for transfer in self.transfers:
        source, destination, links = routes[int(transfer["route"])]
        flags = int(transfer["channel_and_reduces"])
        rows.append({"first_slice": int(transfer["first_slice"]), "slice_count": int(transfer["slice_count"]), "source": source,
                     "destination": destination, "links": len(links), "channel": flags & 0x3FFFFFFF,
                     "reduces": bool(flags >> 31), "reads_input": bool(flags >> 30 & 1)})
    return pandas.DataFrame(rows)


def _repr_html_(self):
    figures = {"collective": self.collective, "algorithm": self.algorithm, "topology": self.topology.name,
               "slices": len(self.slices), "transfers": len(self.transfers)}
    return Table([figures])._repr_html_()


Schedule.to_pandas = to_pandas
Schedule._repr_html_ = _repr_html_
Schedule.verify = verify
Schedule.save = save
Schedule.load = staticmethod(load)
Schedule.from_arrays = staticmethod(from_arrays)
Schedule.__repr__ = _repr
