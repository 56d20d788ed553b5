"""Random networks of many kinds with 65 to 512 ranks, for random_table.py: the same name is the same network everywhere."""
import random

RATES = [10, 25, 50, 100]  # GB/s
SIZES = [65, 96, 128, 192, 256, 384, 512]


class Network:
    """Nodes and cables, as YAML text; latencies are 1 us."""

    def __init__(self, name):
        self.name = name
        self.nodes = []  # name, whether it is a rank, host
        self.links = []  # from, to, GB/s

    def rank(self, name, host=None):
        self.nodes.append((name, True, host))
        return name

    def switch(self, name):
        self.nodes.append((name, False, None))
        return name

    def cable(self, a, b, rate, back=None):
        self.links += [(a, b, rate), (b, a, rate if back is None else back)]

    def yaml(self):
        lines = ["espalier: 1", f"name: {self.name}", "nodes:"]
        for name, is_rank, host in self.nodes:
            where = f", host: {host}" if host else ""
            lines.append(f"  - {{id: {name}, kind: {'gpu' if is_rank else 'switch'}{where}}}")
        lines.append("links:")
        lines += [f"  - {{from: {a}, to: {b}, bandwidth: {rate} GB/s, latency: 1 us}}" for a, b, rate in self.links]
        return "\n".join(lines) + "\n"


def is_connected(count, edges):
    near = [[] for _ in range(count)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    seen, open_ends = {0}, [0]
    while open_ends:
        for b in near[open_ends.pop()]:
            if b not in seen:
                seen.add(b)
                open_ends.append(b)
    return len(seen) == count


def graph(net, rng, n):
    """A tree of ranks and switches, and as many cables more as ranks, of four rates."""
    names = [net.rank(f"r{i}") for i in range(n)] + [net.switch(f"s{i}") for i in range(n // 4)]
    rng.shuffle(names)
    for i in range(1, len(names)):
        net.cable(names[i], rng.choice(names[:i]), rng.choice(RATES))
    for _ in range(n):
        net.cable(*rng.sample(names, 2), rng.choice(RATES))


def regular_edges(rng, n, degree):
    while True:
        stubs, edges = [i for i in range(n) for _ in range(degree)], set()
        for _ in range(200):
            rng.shuffle(stubs)
            left = []
            for a, b in zip(stubs[::2], stubs[1::2]):
                if a == b or (min(a, b), max(a, b)) in edges:
                    left += [a, b]
                else:
                    edges.add((min(a, b), max(a, b)))
            stubs = left
        if is_connected(n, edges):
            return sorted(edges)


def regular(net, rng, n, degree=4, rates=(25,)):
    """Ranks of four cables each, of one rate (one rank has fewer where that cannot be)."""
    names = [net.rank(f"r{i}") for i in range(n)]
    for a, b in regular_edges(rng, n, degree):
        net.cable(names[a], names[b], rng.choice(rates))


def mixed(net, rng, n):
    """Ranks of five cables each, of four rates."""
    regular(net, rng, n, 5, RATES)


def torus(net, rng, n):
    """A torus of two or three dimensions without one cable of twenty."""
    dims = {65: (5, 13), 96: (4, 4, 6), 128: (4, 4, 8), 192: (12, 16), 256: (8, 8, 4), 384: (8, 8, 6), 512: (8, 8, 8),
            1024: (8, 8, 16)}[n]  # fmt: skip
    edges, step = set(), 1
    for size in dims:
        for i in range(n):
            place = i // step % size
            j = i + ((place + 1) % size - place) * step
            edges.add((min(i, j), max(i, j)))
        step *= size
    kept = []
    while not kept or not is_connected(n, kept):
        kept = [edge for edge in sorted(edges) if rng.random() > 0.05]
    for i in range(n):
        net.rank(f"r{i}")
    for a, b in kept:
        net.cable(f"r{a}", f"r{b}", 50)


def boxes(net, rng, n):
    """Boxes of eight on rails below spines: dead NICs, and NICs, NVLinks and spine cables that are slow or dead."""
    count = max(9, n // 8)
    for k in range(8):
        net.switch(f"rail{k}")
    for k in range(4):
        net.switch(f"spine{k}")
    for b in range(count):
        inside = net.switch(f"box{b}.nvswitch")
        alive = [rng.random() > 0.06 for _ in range(8)]
        for k in range(8):
            gpu = net.rank(f"box{b}.gpu{k}", f"box{b}")
            net.cable(gpu, inside, 450 if rng.random() > 0.03 else 225)
            if alive[k] or not any(alive):
                net.cable(gpu, f"rail{k}", 50 if rng.random() > 0.04 else 25)
    for k in range(8):
        for s in range(4):
            if s == 0 or rng.random() > 0.05:
                net.cable(f"rail{k}", f"spine{s}", 100 * max(1, count // 8))


def fabric(net, rng, n):
    """Leaves below four spines, some cables between them dead; ranks of three rates."""
    leaves = max(4, n // 16)
    for s in range(4):
        net.switch(f"spine{s}")
    for leaf in range(leaves):
        net.switch(f"leaf{leaf}")
        dead = rng.randrange(12)
        for s in range(4):
            if s != dead:
                net.cable(f"leaf{leaf}", f"spine{s}", rng.choice([100, 200]))
    for i in range(n):
        net.cable(net.rank(f"r{i}"), f"leaf{i % leaves}", rng.choice([25, 50, 50, 100]))


def mixture(net, rng, n):
    """Boxes of eight behind a switch, meshes of four and single ranks, each second rank with a NIC, under three switches."""
    core = [net.switch(f"core{k}") for k in range(3)]
    made, box = 0, 0
    while made < n:
        kind = rng.choice(["switch", "mesh", "single"])
        size = min(n - made, {"switch": 8, "mesh": 4, "single": 1}[kind])
        ranks = [net.rank(f"r{made + k}", f"box{box}") for k in range(size)]
        if kind == "switch":
            inside = net.switch(f"box{box}.switch")
            for rank in ranks:
                net.cable(rank, inside, 300)
        else:
            for p in range(size):
                for q in range(p):
                    net.cable(ranks[p], ranks[q], 50)
        for k in range(max(1, size // 2)):
            net.cable(ranks[k], rng.choice(core), rng.choice([25, 50]))
        made, box = made + size, box + 1
    for k in range(3):
        net.cable(core[k], core[(k + 1) % 3], 50 * n)


def oneway(net, rng, n):
    """A circle and twice as many cables more, whose two directions have rates of their own."""
    names = [net.rank(f"r{i}") for i in range(n)]
    for i in range(n):
        net.cable(names[i], names[(i + 1) % n], rng.choice(RATES), rng.choice(RATES))
    for _ in range(2 * n):
        net.cable(*rng.sample(names, 2), rng.choice(RATES), rng.choice(RATES))


KINDS = {make.__name__: make for make in (graph, regular, mixed, torus, boxes, fabric, mixture, oneway)}


def make_network(kind, n, seed):
    net = Network(f"{kind}-{n}-{seed}")
    KINDS[kind](net, random.Random(net.name), n)
    return net


def network_names(count, sizes=SIZES):
    """So many of them: all kinds and sizes in turn."""
    kinds = list(KINDS)
    for i in range(count):
        yield kinds[i % len(kinds)], sizes[i // len(kinds) % len(sizes)], i // (len(kinds) * len(sizes)) + 1
