"""Times of collectives for those who ask often: compilers, schedulers, planners of parallelism."""
from . import _espalier
from ._checks import as_name, as_topology
from ._plans import plan
from ._simulation import simulate
from ._units import is_several, parse_size
from .errors import Error

SIZES = [2 ** power for power in range(8, 31)]


class Estimate:
    """What `estimate` gives: call it with a collective, bytes (as in `simulate`) and a group's name for seconds."""

    def __init__(self, topology, groups, profile, sizes):
        self._topology, self._groups, self._profile, self._sizes = topology, groups, profile, sizes
        self._tables = {}

    def __call__(self, collective, size, group="all"):
        try:
            return self._tables[collective, group].at(size)
        except (KeyError, TypeError, ValueError):  # The first time, or sizes as the command has them, or wrong ones.
            size = parse_size(size)
            as_name(collective, "a collective's name", "all_reduce, all_gather, ...")
            as_name(group, "a group's name", ", ".join(self._groups))
            if (collective, group) not in self._tables:
                self.prepare(collective, group)
            return self._tables[collective, group].at(size)

    def prepare(self, collective, group="all"):
        """Simulates what a look-up needs; else the first look-up does."""
        as_name(collective, "a collective's name", "all_reduce, all_gather, ...")
        if group not in self._groups:
            raise Error("invalid_input", f"there is no group {group!r}", "one of " + ", ".join(self._groups))
        ranks = self._groups[group]
        if _is_at_once(ranks):
            schedules = plan(self._topology, collective, groups=ranks)
            times = [max(run.picoseconds for run in simulate(schedules, size)) for size in self._sizes]
        else:
            times = [simulate(plan(self._topology, collective, size=size, ranks=ranks, profile=self._profile), size,
                              profile=self._profile).picoseconds for size in self._sizes]
        self._tables[collective, group] = _espalier.TimeTable(list(zip(self._sizes, times)))


def _is_at_once(ranks):
    """Whether several groups are told, not one."""
    return ";" in ranks if isinstance(ranks, str) else ranks is not None and any(is_several(each) for each in ranks)


def estimate(topology, groups=None, profile=None, sizes=None):
    """A cost model of a machine: an object whose call gives the seconds of (collective, bytes, group), in a microsecond.

    Args:
        groups: ranks by name, such as {"tensor": "gpu[0-3]"}; several lists of ranks ("gpu[0-3];gpu[4-7]", or a list of lists) are at work at
            once, all with so many bytes, and the slowest counts. "all" are all ranks.
        profile: as in `simulate`; not with several lists, which are planned together.
        sizes: where it is simulated, by "auto"; else at each power of two from 256 B to 1 GiB. Between them it is straight, and never falls.

    The first look-up of a collective and group simulates; `prepare(collective, group)` does so beforehand.

    >>> import espalier
    >>> costs = espalier.estimate(espalier.Topology.load("dgx1v"), {"half": "gpu[0-3]"}, sizes=["1M", "64M"])
    >>> costs("all_reduce", 2**20) < costs("all_reduce", 50_000_000) < costs("all_reduce", "64M")
    True
    >>> costs.prepare("all_gather", "half")
    >>> isinstance(costs, espalier.Estimate), costs("all_gather", "64M", "half") > 0
    (True, True)
    """
    groups = dict(groups or {})
    groups.setdefault("all", None)
    chosen = SIZES if sizes is None else sorted({parse_size(size) for size in (sizes if is_several(sizes) else [sizes])})
    if profile is not None and any(_is_at_once(ranks) for ranks in groups.values()):
        raise Error("unsupported", "a profile does not go with groups that are at work at once", "leave it out, or name one list of ranks each")
    return Estimate(as_topology(topology), groups, profile, chosen)
