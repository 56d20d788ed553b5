#!/usr/bin/env python3
"""How near `auto` comes to the floor, and to one greedy tree, on random networks of 65 to 512 ranks, for docs/benchmarks.md.

    bench/random_table.py run build/release/espalier RESULTS [--networks N] [--collectives LIST] [--filter TEXT] [--limit SECONDS]
    bench/random_table.py table RESULTS [BEFORE]

`run` simulates 256 MiB by auto on the networks of random_networks.py and appends a line of JSON for each to RESULTS; what stands there is
not run again. For an all_reduce far from the floor it also finds the best single tree up and down, by its loads. `table` prints by collective and kind of network
how much of the floor is reached, beside what another file of results says of the same networks.
"""
import argparse
import functools
import heapq
import json
import pathlib
import statistics
import sys
import tempfile

from bound_table import add_row, measured, results_of
from random_networks import KINDS, make_network, network_names

COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all"]


class Fabric:
    """Cables by node, those between the same two nodes as one: what a tree up and down may take."""

    def __init__(self, net):
        rates = {}
        for a, b, rate in net.links:
            rates[a, b] = rates.get((a, b), 0) + rate
        self.rates = {ends: min(rate, rates[ends[1], ends[0]]) for ends, rate in rates.items()}
        self.near = {}
        for a, b in self.rates:
            self.near.setdefault(a, []).append(b)
        self.ranks = {name for name, is_rank, _ in net.nodes if is_rank}

    def has_tree(self, root, rate):
        """Whether a tree that grows breadth first from a rank, along cables that have room for the rate, spans all ranks."""
        room = {ends: int(capacity / rate + 1e-9) for ends, capacity in self.rates.items()}
        depth = {root: 0}
        while len(depth) < len(self.ranks):
            open_ends, seen, path = [(d, v, ()) for v, d in depth.items()], set(), None
            heapq.heapify(open_ends)
            while open_ends:
                d, v, path = heapq.heappop(open_ends)
                if v in seen:
                    continue
                seen.add(v)
                if v in self.ranks and v not in depth:
                    break
                for b in self.near[v]:
                    if room[v, b] > 0 and b not in depth:
                        heapq.heappush(open_ends, (d + 1, b, path + ((v, b),)))
            else:
                return False
            for a, b in path:
                room[a, b] -= 1
                room[b, a] -= 1
            depth[path[-1][1]] = depth[path[0][0]] + 1
        return True

    def best_tree(self, floor):
        """The highest rate of such a tree of a few roots, in twentieths of the floor's."""
        roots = sorted(self.ranks)[:: max(1, len(self.ranks) // 4)]
        for part in range(20, 0, -1):
            rate = part / 20 * floor * 0.999
            if any(self.has_tree(root, rate) for root in roots):
                return rate
        return 0


def run_one(flags, net, path, collective):
    """By auto as a row; where that is more than 3 % below the floor, an all_reduce also by the best single tree."""
    words = [flags.command, "simulate", str(path), collective, "-a", "auto", "-s", "256M", "--profile", "ideal", "--json"]
    document, row = measured(words, flags.limit)
    if document is not None:
        row |= results_of(document)[0]
        row["floor"] = document["bound"]["algbw"] / 1e9
        if collective == "all_reduce" and row["of_bound"] < 0.97:
            row["tree"] = Fabric(net).best_tree(row["floor"])
    return row


def run(flags):
    results = pathlib.Path(flags.results)
    with tempfile.TemporaryDirectory() as folder:
        for kind, ranks, seed in network_names(flags.networks):
            net = make_network(kind, ranks, seed)
            if flags.filter and flags.filter not in net.name:
                continue
            path = pathlib.Path(folder) / "network.yaml"
            path.write_text(net.yaml())
            for collective in flags.collectives.split(","):
                add_row(results, [kind, ranks, seed, collective], functools.partial(run_one, flags, net, path, collective))


def read_rows(path):
    return {tuple(row["key"]): row for row in map(json.loads, pathlib.Path(path).read_text().splitlines())}


def best_known(row):
    """The part of the floor that the better of the planned schedule and one tree would reach."""
    return max(row["of_bound"], row.get("tree", 0) / row["floor"])


def cells(rows):
    """Networks, how many are more than 3 % below the floor and below the best known, the least part, and processor seconds."""
    done = [row for row in rows if "error" not in row]
    if not done:
        return [f"{len(rows)}"] + ["-"] * 5
    parts = [row["of_bound"] for row in done]
    below = sum(part < 0.97 for part in parts)
    beaten = sum(row["of_bound"] < 0.97 * best_known(row) for row in done)
    seconds = [row["cpu_seconds"] for row in rows]
    failed = f" ({len(rows) - len(done)} not done)" if len(done) < len(rows) else ""
    return [
        f"{len(rows)}{failed}", f"{below}", f"{beaten}", f"{100 * min(parts):.1f} %", f"{100 * statistics.median(parts):.1f} %",
        f"{statistics.median(seconds):.1f}, {max(seconds):.1f}",
    ]  # fmt: skip


def table(flags):
    now = read_rows(flags.results)
    before = read_rows(flags.before) if flags.before else {}
    print("| collective | kind | networks | > 3 % below the floor | > 3 % below one tree | least | median | s of processor: median, most |")
    print("|---|---|---|---|---|---|---|---|")
    for collective in COLLECTIVES:
        for kind in [*KINDS, "all"]:
            for name, found in (("before", before), ("now", now)):
                keys = [key for key in found if key[3] == collective and kind in (key[0], "all")]
                if before and found is now:
                    keys = [key for key in keys if key in before]
                rows = [found[key] for key in keys]
                if rows:
                    label = f"{kind}, {name}" if before else kind
                    print(f"| {collective} | {label} | {' | '.join(cells(rows))} |")
    for key, row in sorted(now.items()):
        if "error" in row:
            print(f"\n{key}: {row['error']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    runs.add_argument("command")
    runs.add_argument("results")
    runs.add_argument("--networks", type=int, default=300)
    runs.add_argument("--collectives", default=",".join(COLLECTIVES))
    runs.add_argument("--filter", default="")
    runs.add_argument("--limit", type=float, default=600)
    runs.set_defaults(act=run)
    tables = verbs.add_parser("table")
    tables.add_argument("results")
    tables.add_argument("before", nargs="?")
    tables.set_defaults(act=table)
    flags = parser.parse_args()
    flags.act(flags)


if __name__ == "__main__":
    sys.exit(main())
