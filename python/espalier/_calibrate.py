"""Topologies that predict what was measured."""
import dataclasses

from . import _espalier
from ._simulation import Simulator
from ._tables import Table
from ._topology import Topology
from ._units import parse_size
from .errors import Error


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A topology fitted to measured runs, and how well it fits. Errors are (predicted - measured) / measured."""

    topology: Topology  #: The calibrated one; `to_yaml` writes it.
    parameters: Table  #: name, state (fitted, joint, held, vanished), given, value (bytes per second or seconds), standard_error.
    notes: list  #: What the runs cannot tell apart, and what was done about it.
    before: list  #: Seconds predicted with the given topology, by run.
    after: list  #: The same with the calibrated one.
    weights: list  #: Well below 1 for runs that do not fit in.
    errors_before: dict  #: count, median, p90, worst, bias.
    errors_after: dict
    hold_out: dict  #: The same of runs that were left out of a fit; None where there were too few.
    converged: bool

    def to_pandas(self):
        """The parameters as a pandas.DataFrame."""
        return self.parameters.to_pandas()

    def _repr_html_(self):
        return self.parameters._repr_html_()


def calibrate(topology, runs, hold_out=5):
    """Fits bandwidths, latencies, overheads and reduction rates of `topology` to measured runs, as `espalier calibrate` does.

    `runs`: (schedule, size, seconds) each, or (schedule, size, seconds, chunk) where the chunk that ran is known; sizes in bytes or "64M".
    All schedules are of this topology. `hold_out`: into how many parts runs are dealt, each predicted by a fit without it; 0 for none.

    Here a machine's links have half the rate that is written down:

    >>> import espalier
    >>> told = espalier.Topology.generate("ring", [4], bandwidth=20e9, latency=1e-6)
    >>> real = espalier.Topology.generate("ring", [4], bandwidth=10e9, latency=3e-6)
    >>> runs = []
    >>> for size in ("1K", "32K", "1M", "32M"):
    ...     plan = espalier.plan(told, "all_gather", algorithm="ring")
    ...     measured = espalier.simulate(espalier.plan(real, "all_gather", algorithm="ring"), size, chunk="1M", ahead=0)
    ...     runs.append((plan, size, measured.time, "1M"))
    >>> fit = espalier.calibrate(told, runs, hold_out=0)
    >>> [(row["name"], row["state"], f"{row['value']:.3g}") for row in fit.parameters]
    [('bandwidth of link', 'fitted', '1e+10'), ('latency of link', 'fitted', '3e-06'), ('overhead of link', 'held', '0')]
    >>> fit.errors_before["median"] > 0.4, fit.errors_after["worst"] < 1e-3
    (True, True)
    >>> isinstance(fit, espalier.Calibration), fit.hold_out
    (True, None)
    """
    prepared, simulators = [], {}
    for run in runs:
        if len(run) not in (3, 4):
            raise Error("invalid_input", f"a run of {len(run)} values", "give (schedule, size, seconds) or (schedule, size, seconds, chunk)")
        schedule, size, seconds = run[0], parse_size(run[1]), float(run[2])
        if not 0 < seconds < float("inf"):
            raise Error("invalid_input", f"a run of {seconds} seconds", "measured times are above zero")
        if schedule.topology.link_count != topology.link_count or schedule.topology.rank_count != topology.rank_count:
            raise Error("invalid_input", f"a schedule of {schedule.topology.name}, and the topology is {topology.name}",
                        "plan on the topology that is calibrated")
        if len(run) == 4:
            chunk = parse_size(run[3])
        else:
            simulator = simulators.setdefault(id(schedule), Simulator(schedule))
            chunk = simulator.run(size, ahead=0).chunk
        prepared.append((schedule, size, chunk, seconds))
    if not prepared:
        raise Error("invalid_input", "no runs", "give at least one that was measured")
    if hold_out == 1 or hold_out < 0:
        raise Error("invalid_input", f"hold_out={hold_out} would leave all runs out", "give 0 for none, or at least 2")
    found = _espalier.calibrate(topology, prepared, hold_out)
    return Calibration(**{**found, "parameters": Table(found["parameters"])})
