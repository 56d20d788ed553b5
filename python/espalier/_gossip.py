"""Decentralised averaging: ranks average with their neighbours only, round after round."""
import dataclasses
import math

import numpy

from ._checks import as_topology
from ._plans import Schedule, plan
from ._simulation import Simulator, simulate
from ._tables import Table
from ._units import parse_size
from .errors import Error


def _neighbours(topology):
    """{(rank, rank): link ids}: ranks that are joined by a link, or by a way of fewest links through nodes that are no ranks."""
    nodes, links = topology.nodes(), topology.links()
    leaving = {}
    for index, link in enumerate(links):
        leaving.setdefault(link["tail"], []).append((index, link["head"]))
    rank_of = {node: rank for rank, node in enumerate(i for i, node in enumerate(nodes) if node["is_rank"])}
    ways = {}
    for node, rank in rank_of.items():
        seen, wave = {node}, [(node, [])]
        while wave:
            following = []
            for at, way in wave:
                for index, head in leaving.get(at, ()):
                    if head in seen:
                        continue
                    seen.add(head)
                    if head in rank_of:
                        ways[rank, rank_of[head]] = [*way, index]
                    else:
                        following.append((head, [*way, index]))
            wave = following
    return ways


@dataclasses.dataclass(frozen=True)
class Gossip:
    """Averaging in rounds x <- weights x: in a round each rank sends its vector to its neighbours and averages with theirs."""

    weights: numpy.ndarray  #: (ranks, ranks), symmetric, every row sums to 1; zero where ranks are no neighbours.
    spectral_gap: float  #: 1 - the second largest absolute eigenvalue: a round leaves at most 1 - gap of the distance to the mean.
    schedule: Schedule  #: Of a round, as the beginning of an all_gather.

    @property
    def neighbours(self):
        """[[rank, ...]], by rank.

        >>> import espalier
        >>> espalier.gossip(espalier.Topology.generate("ring", [4])).neighbours[0]
        [1, 3]
        """
        return [[int(j) for j in numpy.flatnonzero(row) if j != i] for i, row in enumerate(self.weights)]

    def rounds(self, accuracy=1e-3):
        """Rounds until the distance to the mean is at most `accuracy` of what it was, whatever the vectors are."""
        if not 0 < accuracy < 1:
            raise Error("invalid_input", f"an accuracy of {accuracy}", "give a part below 1, such as 1e-3")
        rate = 1 - self.spectral_gap
        return 1 if rate <= accuracy else math.ceil(math.log(accuracy) / math.log(rate))

    def round_time(self, size):
        """Simulated seconds of one round of vectors of `size` bytes."""
        size = parse_size(size)
        ranks = len(self.weights)
        return Simulator.unverified(self.schedule).run(size * ranks).time

    def compare(self, size, accuracy=1e-3, algorithm="auto"):
        """A Table of two rows, gossip to this accuracy and all_reduce: rounds, time (seconds), bytes that a rank sends (the most).

        >>> import espalier
        >>> rows = espalier.gossip(espalier.Topology.generate("ring", [16])).compare("16M", accuracy=1e-2)
        >>> [(row["way"], row["rounds"], row["bytes"] >> 20) for row in rows]
        [('gossip', 89, 2848), ('all_reduce by ring', 1, 30)]
        """
        size, rounds = parse_size(size), self.rounds(accuracy)
        topology = self.schedule.topology
        best = plan(topology, "all_reduce", algorithm=algorithm, size=size)
        run = simulate(best, size)
        sent = [0.0] * topology.rank_count
        units = {index: int(slice_["length"]) for index, slice_ in enumerate(best.slices)}
        for transfer in best.transfers:
            first, count = int(transfer["first_slice"]), int(transfer["slice_count"])
            sent[best.routes[int(transfer["route"])][0]] += sum(units[index] for index in range(first, first + count))
        degree = max(len(others) for others in self.neighbours)
        return Table([
            {"way": "gossip", "rounds": rounds, "time": rounds * self.round_time(size), "bytes": rounds * degree * size},
            {"way": f"all_reduce by {best.algorithm}", "rounds": 1, "time": run.time, "bytes": round(max(sent) / best.units * size)}])


def gossip(topology):
    """Decentralised averaging on a topology, with Metropolis weights: 1 / (1 + the larger number of neighbours) for each pair.

    Neighbours are ranks with a link between them, or with a way through switches and other nodes that are no ranks.
    Source: S. Boyd, A. Ghosh, B. Prabhakar, D. Shah, "Randomized gossip algorithms" (2006); L. Xiao, S. Boyd, "Fast linear iterations for
    distributed averaging" (2004), which has these weights.

    The ring of n ranks has the eigenvalues (1 + 2 cos(2 pi k / n)) / 3:

    >>> import espalier, math
    >>> ring = espalier.gossip(espalier.Topology.generate("ring", [8]))
    >>> abs(ring.spectral_gap - (1 - (1 + 2 * math.cos(math.pi / 4)) / 3)) < 1e-12
    True
    >>> ring.rounds(1e-3), ring.round_time("1M") > 0
    (32, True)
    >>> isinstance(ring, espalier.Gossip), float(ring.weights.sum()), ring.schedule.algorithm
    (True, 8.0, 'gossip')
    """
    ways = _neighbours(as_topology(topology))
    ways = {pair: way for pair, way in ways.items() if pair[::-1] in ways}  # Weights are symmetric.
    ranks = topology.rank_count
    degrees = [sum(pair[0] == rank for pair in ways) for rank in range(ranks)]
    weights = numpy.zeros((ranks, ranks))
    for a, b in ways:
        weights[a, b] = 1 / (1 + max(degrees[a], degrees[b]))
    weights += numpy.diag(1 - weights.sum(axis=1))
    values = numpy.sort(numpy.abs(numpy.linalg.eigvalsh(weights)))
    gap = 1.0 if ranks == 1 else float(1 - values[-2])
    if gap < 1e-12:
        raise Error("infeasible", "the ranks fall into parts that never hear of each other", "averaging needs ways in both directions")
    pairs = sorted(ways)
    schedule = Schedule.from_arrays(topology, "all_gather", ranks, [(rank, 1, rank, -1) for rank in range(ranks)],
                                    [(a, b, ways[a, b]) for a, b in pairs], [(a, 1, index, 0, 0) for index, (a, b) in enumerate(pairs)],
                                    algorithm="gossip")
    weights.flags.writeable = False
    return Gossip(weights, gap, schedule)
