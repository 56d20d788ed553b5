"""Simulated runs."""
from . import _espalier
from ._plans import bound
from ._tables import Table
from ._units import parse_size

Simulator = _espalier.Simulator


class Simulation:
    """One simulated run: what the report says, with busbw and the part of the bound that was reached."""

    def __init__(self, report, busbw, limit):
        self._report, self.busbw, self._limit = report, busbw, limit

    def __getattr__(self, name):
        return getattr(self._report, name)

    @property
    def of_bound(self):
        """The part of the bound's throughput that was reached, at most 1."""
        return float(self._limit.time_per_byte * self.size * 10**12 / self.picoseconds) if self.picoseconds else 0.0

    def to_dict(self):
        """Its figures by name: size and chunk in bytes, time in seconds, busbw in bytes per second, of_bound."""
        return {"size": self.size, "time": self.time, "busbw": self.busbw, "of_bound": self.of_bound, "chunk": self.chunk}

    def to_pandas(self):
        """Its spans as a pandas.DataFrame, where it was simulated with `timeline`; else its figures as one row."""
        import pandas

        return pandas.DataFrame([self.to_dict()]) if self.spans is None else pandas.DataFrame(self.spans)

    def _repr_html_(self):
        return Table([self])._repr_html_()

    def __repr__(self):
        return (f"<espalier.Simulation {self.size} B: {self.time * 1e6:.2f} us, busbw {self.busbw / 1e9:.2f} GB/s, "
                f"{self.of_bound:.1%} of the bound>")


def simulate(schedule, size="64M", chunk=None, ahead=None, model="link", timeline=False):
    """Simulates a schedule at one size, or at several: a list of sizes gives a list of simulations.

    The list is a Table, with to_pandas().

    `chunk` (bytes) and `ahead` (rounds) are chosen where they are not given; `model` is "link" or "fair". With
    `timeline`, `spans` is a structured numpy array. The GIL is released.

    >>> from espalier import Topology, plan
    >>> ring = plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
    >>> [run.size for run in simulate(ring, ["1M", "64M"])]
    [1048576, 67108864]
    """
    simulator = _espalier.Simulator(schedule)
    root = int(schedule.root) if schedule.root is not None else None
    limit = bound(schedule.topology, schedule.collective, root)
    sizes = size if isinstance(size, (list, tuple)) or hasattr(size, "shape") else [size]
    chunk = None if chunk is None else parse_size(chunk)
    runs = []
    for each in sizes:
        report = simulator.run(parse_size(int(each) if hasattr(each, "dtype") else each), chunk, ahead, model, timeline)
        runs.append(Simulation(report, simulator.busbw(report), limit))
    return Table(runs) if sizes is size else runs[0]
