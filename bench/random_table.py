#!/usr/bin/env python3
"""How near `auto` comes to the floor, and to the best of simple schemes, on random networks of 65 to 512 ranks, for docs/benchmarks.md.

    bench/random_table.py run build/release/espalier RESULTS [--networks N] [--collectives LIST] [--filter TEXT] [--limit SECONDS]
    bench/random_table.py table RESULTS [BEFORE]

`run` simulates 256 MiB by auto on the networks of random_networks.py and appends a line of JSON for each to RESULTS; what stands there is
not run again. Where that is more than 3 % below the floor it also has what simple schemes reach at most, by their loads (simple_schemes.py). `table` prints by collective and kind of network
how much of the floor is reached, beside what another file of results says of the same networks.
"""
import argparse
import functools
import json
import pathlib
import statistics
import sys
import tempfile

from bound_table import add_row, measured, results_of
from random_networks import KINDS, SIZES, make_network, network_names
from simple_schemes import simple_rates

NEAR = 0.97  # Of the floor, or of the best that is known.
SIMPLE = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
COLLECTIVES = ["all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all"]


def run_one(flags, net, path, collective):
    """By auto as a row; where that is more than 3 % below the floor, also by simple schemes."""
    words = [flags.command, "simulate", str(path), collective, "-a", "auto", "-s", "256M", "--profile", "ideal", "--json"]
    document, row = measured(words, flags.limit)
    if document is not None:
        row |= results_of(document)[0]
        row["floor"] = document["bound"]["algbw"] / 1e9
        if row["of_bound"] < NEAR and collective in SIMPLE:
            row["simple"] = simple_rates(net, collective, row["floor"])
    return row


def run(flags):
    results = pathlib.Path(flags.results)
    with tempfile.TemporaryDirectory() as folder:
        for kind, ranks, seed in network_names(flags.networks, flags.sizes):
            seed += flags.seeds
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
    """The part of the floor that the better of the planned schedule and the simple schemes would reach."""
    return max([row["of_bound"], *(rate / row["floor"] for rate in row.get("simple", {}).values())])


def cells(rows):
    """Networks, how many are more than 3 % below the floor and below the best known, the least parts, and processor seconds."""
    done = [row for row in rows if "error" not in row]
    if not done:
        return [f"{len(rows)}"] + ["-"] * 5
    parts = [row["of_bound"] for row in done]
    below = sum(part < NEAR for part in parts)
    beaten = sum(row["of_bound"] < NEAR * best_known(row) for row in done)
    seconds = [row["cpu_seconds"] for row in rows]
    failed = f" ({len(rows) - len(done)} not done)" if len(done) < len(rows) else ""
    return [
        f"{len(rows)}{failed}", f"{below}", f"{beaten}", f"{100 * min(parts):.1f} %", f"{100 * statistics.median(parts):.1f} %",
        f"{statistics.median(seconds):.1f}, {max(seconds):.1f}",
    ]  # fmt: skip


def table(flags):
    now = read_rows(flags.results)
    before = read_rows(flags.before) if flags.before else {}
    print("| collective | kind | networks | > 3 % below the floor | > 3 % below the best simple scheme | least | median | s of processor: median, most |")
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
    runs.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES, help="ranks: 65,96")
    runs.add_argument("--seeds", type=int, default=0, help="added to every seed: other networks")
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
