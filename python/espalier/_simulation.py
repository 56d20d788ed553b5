"""Simulated runs."""
import os
import weakref

from . import _espalier
from ._checks import as_name, as_schedule
from ._plans import Schedule, bound
from ._tables import Table
from ._topology import find_profile, measured_errors_file
from ._units import is_several, parse_size, whole_number
from .errors import Error

Simulator = _espalier.Simulator

_prepared = weakref.WeakKeyDictionary()  # What small schedules need to be simulated, for as long as they are there.
_MOST_KEPT = 20_000  # Transfers.


def _prepare(schedule):
    """(simulator, bound, simulators under profiles) of a schedule, which never changes."""
    found = _prepared.get(schedule)
    if found is None:
        root = int(schedule.root) if schedule.root is not None else None
        found = Simulator(schedule), bound(schedule.topology, schedule.collective, root, schedule.shares, schedule.matrix), {}
        if len(schedule.transfers) <= _MOST_KEPT:
            _prepared[schedule] = found
    return found


def _prepare_profiled(schedule, under_profiles, profile, model):
    """A simulator under a profile, read anew where its file has changed."""
    path, launch = find_profile(profile)
    key = path, os.stat(path).st_mtime_ns, launch, model
    if key not in under_profiles:
        under_profiles[key] = _espalier.ProfiledSimulator(schedule, path, launch, model, measured_errors_file())
    return under_profiles[key]


class Simulation:
    """One simulated run: what the report says, with busbw and the part of the bound that was reached.

    >>> from espalier import Simulation, Simulator, Topology, plan, simulate
    >>> ring = plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
    >>> run = simulate(ring, "1M", timeline=True)
    >>> isinstance(run, Simulation), bool(run.spans["end"].max() == run.picoseconds), bool(run.link_busy.max() <= run.time)
    (True, True, True)
    >>> simulator = Simulator(ring)
    >>> simulator.run(2**20).picoseconds == run.picoseconds, abs(simulator.busbw(simulator.run(2**20)) / run.busbw - 1) < 1e-9
    (True, True)
    >>> Simulator.unverified(ring).run("1M").picoseconds == run.picoseconds
    True
    """

    protocol = low = high = outside = None  #: Of runs under a profile alone.

    def __init__(self, report, busbw, least_time, protocol=None, factors=None, outside=None):
        self._report, self.busbw, self._least_time, self.protocol, self.outside = report, busbw, least_time, protocol, outside
        if factors is not None:
            self.low, self.high = (self.time * factor for factor in factors)

    def __getattr__(self, name):
        if name.startswith("_"):  # Of an object that is being unpickled, too.
            raise AttributeError(name)
        return getattr(self._report, name)

    @property
    def of_bound(self):
        """The part of the bound's throughput that was reached, at most 1."""
        return float(self._least_time * 10**12 / self.picoseconds) if self.picoseconds else float(not self._least_time)

    def to_dict(self):
        """Its figures by name: size and chunk in bytes, time in seconds, busbw in bytes per second, of_bound; under a profile also
        protocol, the range low to high in seconds that nine in ten measurements of the kind lie in, and outside, why it may not hold.

        >>> import espalier
        >>> machine = espalier.Topology.load("dgx1v")
        >>> sorted(espalier.simulate(espalier.plan(machine, "all_reduce", "ring"), "1M").to_dict())
        ['busbw', 'chunk', 'of_bound', 'size', 'time']
        >>> nccl = espalier.plan(machine, "all_reduce", "nccl", size="64M", profile="nccl-volta")
        >>> run = espalier.simulate(nccl, "64M", profile="nccl-volta")
        >>> nccl.planner, run.low < run.time < run.high, run.outside
        ('nccl/ring', True, '')
        """
        figures = {"size": self.size, "time": self.time, "busbw": self.busbw, "of_bound": self.of_bound, "chunk": self.chunk}
        if self.protocol is None:
            return figures
        return {**figures, "protocol": self.protocol, "low": self.low, "high": self.high, "outside": self.outside}

    def save_trace(self, path):
        """Writes its timeline as a Chrome trace, which ui.perfetto.dev opens and `compare` reads.

        >>> import os, tempfile, espalier
        >>> ring = espalier.plan(espalier.Topology.load("dgx1v"), "all_reduce", algorithm="ring")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     espalier.simulate(ring, "1M", timeline=True).save_trace(folder + "/trace.json")
        ...     os.path.getsize(folder + "/trace.json") > 1000
        True
        """
        _espalier.save_trace(self._report, os.fspath(path))

    def to_pandas(self):
        """Its spans as a pandas.DataFrame, where it was simulated with `timeline`; else its figures as one row."""
        import pandas

        return pandas.DataFrame([self.to_dict()]) if self.spans is None else pandas.DataFrame(self.spans)

    def _repr_html_(self):
        return Table([self])._repr_html_()

    def __repr__(self):
        return (f"<espalier.Simulation {self.size} B: {self.time * 1e6:.2f} us, busbw {self.busbw / 1e9:.2f} GB/s, "
                f"{self.of_bound:.1%} of the bound>")


def _counts(chunk, ahead):
    return None if chunk is None else parse_size(chunk), None if ahead is None else whole_number(ahead, "ahead")


_run_prepared = Simulator.run


def _run(self, size, chunk=None, ahead=None, model="link", timeline=False):
    """One simulation at a size; what is not given of chunk (bytes, or "64K") and ahead is chosen. The GIL is released."""
    return _run_prepared(self, parse_size(size), *_counts(chunk, ahead), model, timeline)


Simulator.run = _run


def _simulation(report, simulator, limit, *of_profile):
    """A report with what its schedule's collective makes of it."""
    return Simulation(report, simulator.busbw(report), limit.time_per_byte * simulator.evenly_dealt(report), *of_profile)


def _simulate_together(schedules, size, chunk, ahead, model):
    prepared = [_prepare(schedule) for schedule in schedules]
    reports = _espalier._run_together([simulator for simulator, _, _ in prepared], parse_size(size), *_counts(chunk, ahead), model)
    return Table(_simulation(report, simulator, limit) for report, (simulator, limit, _) in zip(reports, prepared))


def simulate(schedule, size="64M", chunk=None, ahead=None, model="link", timeline=False, profile=None):
    """Simulates a schedule at one size, or at several: a list of sizes gives a list of simulations.

    The list is a Table, with to_pandas(). A list of schedules of one network, such as `plan(groups=...)` gives, runs together: all
    begin at once, with `size` bytes each, and there is a simulation for each (a Table of these for each of several sizes).

    `chunk` (bytes) and `ahead` (rounds) are chosen where they are not given; `model` is "link" or "fair". With
    `timeline`, `spans` is a structured numpy array. The GIL is released. With a `profile` (a shipped one's name or a file, and
    after a colon how calls are launched) the software's costs are added, and `protocol` says which one was the fastest; of what NCCL
    would run (algorithm="nccl") `low` and `high` are between what nine in ten measurements of the kind took, in seconds.
    Raises espalier.Error for a schedule that `verify` finds wrong.

    Many sizes cost little: chunks are searched for at powers of two. Between two of them a schedule is cut as at one or the other, and its
    time lies on the straight line between its runs at both; the lower of the two lines counts, so times never fall there. With
    `chunk`, `ahead` or `timeline` the very size is run, and where whole transfers take long to simulate it always is.

    >>> from espalier import Topology, plan
    >>> ring = plan(Topology.load("dgx1v"), "all_reduce", algorithm="ring")
    >>> [run.size for run in simulate(ring, ["1M", "64M"])]
    [1048576, 67108864]
    >>> uneven = plan(Topology.load("dgx1v"), "all_gather", algorithm="packing", shares=[1, 2, 1, 1, 1, 1, 1, 4])
    >>> uneven.shares, 0.9 < simulate(uneven, "256M").of_bound <= 1
    ([1, 2, 1, 1, 1, 1, 1, 4], True)
    >>> simulate(ring, "1K", profile="nccl-volta").time > simulate(ring, "1K").time
    True
    """
    if profile is not None and (chunk is not None or ahead is not None or timeline):
        raise Error("invalid_input", "chunk, ahead and timeline do not go with a profile", "leave them out")
    sizes = list(size) if is_several(size) else [size]
    as_name(model, "a model's name", '"link" or "fair"')
    if not isinstance(schedule, Schedule) and not isinstance(schedule, (list, tuple)):
        as_schedule(schedule)
    if not isinstance(schedule, Schedule):
        if profile is not None or timeline:
            raise Error("unsupported", "profile and timeline are of one schedule", "simulate each alone, or leave them out")
        schedules = [as_schedule(each) for each in schedule]
        runs = [_simulate_together(schedules, each, chunk, ahead, model) for each in sizes]
    else:
        simulator, limit, under_profiles = _prepare(schedule)
        profiled = None if profile is None else _prepare_profiled(schedule, under_profiles, profile, model)
        runs = []
        for each in sizes:
            if profiled is None:
                report, of_profile = simulator.run(each, chunk, ahead, model, timeline), ()
            else:
                report, *of_profile = profiled.run(parse_size(each))
            runs.append(_simulation(report, simulator, limit, *of_profile))
    return Table(runs) if is_several(size) else runs[0]
