"""Bounds and schedules."""
import dataclasses
import fractions
import html
import pathlib
import typing

import numpy

from . import _espalier
from ._tables import Table
from ._units import parse_size

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
    return [] if shares is None else [int(share) for share in shares]


def bound(topology, collective, root=None, shares=None):
    """The exact limit of a collective on a topology. Long ones release the GIL.

    `shares`: a whole number for each rank; its shard of all_gather, reduce_scatter, gather or scatter is so much of their sum.

    >>> from espalier import Topology
    >>> bound(Topology.generate("ring", [4], bandwidth=25e9), "all_gather").time_per_byte
    Fraction(3, 200000000000)
    >>> bound(Topology.generate("ring", [4], bandwidth=25e9), "all_gather", shares=[1, 0, 0, 0]).what
    'all S bytes of shards have to leave it'
    """
    return Bound(*_espalier._bound(topology, collective, root, _shares_of(shares)))


def plan(topology, collective, algorithm="auto", size="64M", root=None, shares=None):
    """A verified schedule by one of `planners()`, or by "auto" the one that is fastest at `size`; `shares` as in `bound`.

    >>> from espalier import Topology
    >>> plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring").transfers.dtype.names
    ('first_slice', 'slice_count', 'route', 'channel_and_reduces')
    """
    return _espalier._plan(topology, collective, algorithm, parse_size(size), root, _shares_of(shares))


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
    pathlib.Path(path).write_text(self.to_json(), encoding="utf-8")


def load(path):
    """Reads the JSON form."""
    return Schedule.from_json(pathlib.Path(path).read_text(encoding="utf-8"))


def from_arrays(topology, collective, units, slices, routes, transfers, root=None, algorithm="python"):
    """A schedule of your own; `verify` says whether it is right.

    Args:
        units: the length of the buffer in units of any size.
        slices: (n, 4) whole numbers: offset and length in units, rank, to; -1 for none. In offset order, tiling the buffer.
        routes: [(source rank, destination rank, [link ids])].
        transfers: (m, 5) whole numbers in program order: first slice, number of slices, route, channel, 1 where it adds.

    >>> from espalier import Topology
    >>> two = Topology.generate("ring", [2])
    >>> Schedule.from_arrays(two, "broadcast", 1, [[0, 1, -1, -1]], [(0, 1, [0])], [[0, 1, 0, 0, 0]], root=0).verify()
    []
    """
    slices = numpy.asarray(slices, dtype=numpy.int64).reshape(-1, 4)
    transfers = numpy.asarray(transfers, dtype=numpy.int64).reshape(-1, 5)
    return Schedule.build(topology, collective, root, units, slices, list(routes), transfers,
                          algorithm)


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
                     "destination": destination, "links": len(links), "channel": flags & 0x7FFFFFFF,
                     "reduces": bool(flags >> 31)})
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
