"""Simple schemes for all_reduce, all_gather, reduce_scatter and broadcast on any network, made without Espalier's planners, for random_table.py.

Each is known by its loads: the rate that its fullest link allows, which no run of it exceeds.

- trees: k spanning trees of equal weight, grown one after the other, breadth first, in the room that those before left.
- residual: the same with one thick tree after the other, each the thickest that still fits.
- ring: nearest neighbour by hops, improved by 2-opt, one way and both ways.
- direct: every rank sends every other its part by a shortest path.
- hierarchical: parts are gathered at the ranks of a host that have cables to the outside, which form a ring over the hosts.
"""
import collections
import random

TREES = (1, 2, 4, 8, 16)
STEPS = 40  # Of the floor's rate, in which trees are tried.


class Fabric:
    """Cables by node, those between the same two nodes as one; `backwards`: every cable the other way."""

    def __init__(self, net, backwards=False):
        self.rates = collections.Counter()
        for a, b, rate in net.links:
            self.rates[(b, a) if backwards else (a, b)] += rate
        self.near = collections.defaultdict(list)
        for a, b in self.rates:
            self.near[a].append(b)
        self.ranks = [name for name, is_rank, _ in net.nodes if is_rank]
        self.hosts = collections.defaultdict(list)
        for name, is_rank, host in net.nodes:
            if is_rank and host is not None:
                self.hosts[host].append(name)
        self.is_rank = set(self.ranks)
        order = random.Random(net.name)
        for ends in self.near.values():
            order.shuffle(ends)
        self.parents = {}

    def parents_from(self, source):
        """Of every node its node before on a shortest path from the source, in the order of distance."""
        if source not in self.parents:
            parent, queue = {source: None}, collections.deque([source])
            while queue:
                a = queue.popleft()
                for b in self.near[a]:
                    if b not in parent:
                        parent[b] = a
                        queue.append(b)
            self.parents[source] = parent
        return self.parents[source]

    def path(self, a, b):
        parent, nodes = self.parents_from(a), [b]
        while nodes[-1] != a:
            nodes.append(parent[nodes[-1]])
        return list(zip(nodes[:0:-1], nodes[-2::-1]))

    def rate(self, loads):
        """Of a message of 1, from the parts of it that links carry."""
        return 1 / max(load / self.rates[ends] for ends, load in loads.items())


def reach_new(fabric, room, a, spanned):
    """The path from a rank of the tree to the nearest rank outside, through switches, along cables with room both ways."""
    seen, queue = {a}, collections.deque([(a, ())])
    while queue:
        at, path = queue.popleft()
        for b in fabric.near[at]:
            if b in seen or room.get((at, b), 0) <= 0 or room.get((b, at), 0) <= 0:
                continue
            seen.add(b)
            if b not in fabric.is_rank:
                queue.append((b, path + ((at, b),)))
            elif b not in spanned:
                return path + ((at, b),)
    return None


def grow_tree(fabric, room, root):
    """Takes the cables of a spanning tree from `room`; false where none is found."""
    spanned, queue = {root}, collections.deque([root])
    while queue:
        path = reach_new(fabric, room, queue[0], spanned)
        if path is None:
            queue.popleft()
            continue
        for a, b in path:
            room[a, b] -= 1
            room[b, a] -= 1
        spanned.add(path[-1][1])
        queue.append(path[-1][1])
    return len(spanned) == len(fabric.ranks)


def has_trees(fabric, count, rate, start):
    room = {ends: int(capacity * count / rate + 1e-9) for ends, capacity in fabric.rates.items()}
    roots = [fabric.ranks[(start + i * len(fabric.ranks) // count) % len(fabric.ranks)] for i in range(count)]
    return all(grow_tree(fabric, room, root) for root in roots)


def tree_rate(fabric, count, floor):
    """The highest rate, in steps, at which so many trees up and down fit, from a few roots."""
    low, high = 0, STEPS
    while low < high:
        middle = (low + high + 1) // 2
        rate = middle / STEPS * floor * 0.999
        if any(has_trees(fabric, count, rate, start) for start in (0, len(fabric.ranks) // 3)):
            low = middle
        else:
            high = middle - 1
    return low / STEPS * floor * 0.999


def residual_rate(fabric, floor, most=16):
    """One tree after the other, each the thickest that fits in what those before left, until little is gained."""
    left, total = dict(fabric.rates), 0
    for number in range(most):
        low, high, best = 0, STEPS, None
        while low < high:
            middle = (low + high + 1) // 2
            rate = middle / STEPS * floor * 0.999
            room = {ends: int(capacity / rate + 1e-9) for ends, capacity in left.items()}
            before = dict(room)
            if grow_tree(fabric, room, fabric.ranks[number * 7 % len(fabric.ranks)]):
                low, best = middle, (rate, before, room)
            else:
                high = middle - 1
        if best is None:
            break
        rate, before, room = best
        left = {ends: capacity - (before[ends] - room[ends]) * rate for ends, capacity in left.items()}
        total += rate
        if total >= floor * 0.998 or rate < total / 50:
            break
    return min(total, floor)


def short_ring(fabric):
    """Ranks in a circle: each next to the nearest one that is left, then turned around wherever that is shorter."""
    n = len(fabric.ranks)
    hops = []
    for a in fabric.ranks:
        depth = {}
        for b, parent in fabric.parents_from(a).items():
            depth[b] = 0 if parent is None else depth[parent] + 1
        hops.append([depth[b] for b in fabric.ranks])
    ring, left = [0], set(range(1, n))
    while left:
        ring.append(min(left, key=lambda b: (hops[ring[-1]][b], b)))
        left.remove(ring[-1])
    for _ in range(3):
        gained = False
        for i in range(n - 2):
            for j in range(i + 2, n - (i == 0)):
                a, b, c, d = ring[i], ring[i + 1], ring[j], ring[(j + 1) % n]
                if hops[a][c] + hops[b][d] < hops[a][b] + hops[c][d]:
                    ring[i + 1 : j + 1] = ring[i + 1 : j + 1][::-1]
                    gained = True
        if not gained:
            break
    return [fabric.ranks[i] for i in ring]


def ring_rates(fabric, passes):
    ring = short_ring(fabric)
    share = passes * (len(ring) - 1) / len(ring)
    one_way, both = collections.Counter(), collections.Counter()
    for a, b in zip(ring, ring[1:] + ring[:1]):
        for ends in fabric.path(a, b):
            one_way[ends] += share
            both[ends] += share / 2
        for ends in fabric.path(b, a):
            both[ends] += share / 2
    return {"ring": fabric.rate(one_way), "ring both ways": fabric.rate(both)}


def direct_rate(fabric, passes):
    loads, n = collections.Counter(), len(fabric.ranks)
    for a in fabric.ranks:
        parent, below = fabric.parents_from(a), collections.Counter()
        for b in reversed(parent):  # The farthest first.
            below[b] += b in fabric.is_rank
            if parent[b] is not None:
                below[parent[b]] += below[b]
                loads[parent[b], b] += passes * below[b] / n
    return fabric.rate(loads)


def hierarchical_rate(fabric):
    """Of an all_reduce; nothing where hosts are none or have no way out."""
    hosts = list(fabric.hosts.values())
    if len(hosts) < 2 or sum(map(len, hosts)) < len(fabric.ranks):
        return None
    inside = {rank: number for number, ranks in enumerate(hosts) for rank in ranks}

    def leads_out(rank):
        return any(set(fabric.near[b]) & set(inside) - set(hosts[inside[rank]]) or len(fabric.near[b]) > 8 for b in fabric.near[rank] if b not in inside)

    leaders = [[rank for rank in ranks if leads_out(rank)] for ranks in hosts]
    columns = min(map(len, leaders))
    if columns == 0:
        return None
    loads = collections.Counter()
    for ranks, heads in zip(hosts, leaders):
        for head in heads[:columns]:
            for rank in ranks:
                for ends in [*fabric.path(rank, head), *fabric.path(head, rank)]:
                    loads[ends] += 1 / columns
    for column in range(columns):
        ring = [heads[column] for heads in leaders]
        for a, b in zip(ring, ring[1:] + ring[:1]):
            for ends in fabric.path(a, b):
                loads[ends] += 2 * (len(ring) - 1) / len(ring) / columns
    return fabric.rate(loads)


def simple_rates(net, collective, floor):
    """GB/s by scheme; `floor`: the rate that no schedule exceeds."""
    fabric = Fabric(net, backwards=collective == "reduce_scatter")
    rates = {f"{k} tree{'s' if k > 1 else ''}": tree_rate(fabric, k, floor) for k in TREES}
    rates["residual"] = residual_rate(fabric, floor)
    if collective == "broadcast":
        return rates
    passes = 2 if collective == "all_reduce" else 1
    rates |= ring_rates(fabric, passes) | {"direct": direct_rate(fabric, passes)}
    if collective == "all_reduce" and (hierarchical := hierarchical_rate(fabric)):
        rates["hierarchical"] = hierarchical
    return rates
