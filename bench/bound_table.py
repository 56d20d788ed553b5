#!/usr/bin/env python3
"""How much of the proven bound plans reach, on every network of tests/data and every shipped machine, for docs/benchmarks.md.

    bench/bound_table.py run build/release/espalier RESULTS [--model fair] [--most-ranks N] [--filter TEXT] [--limit SECONDS]
    bench/bound_table.py table RESULTS...

`run` simulates all_gather, reduce_scatter, broadcast, reduce, all_reduce (by packing and auto) and all_to_all (by lp and auto) at
16 MiB and 1 GiB, in the model fair by packing and lp at 1 GiB, and appends a line of JSON for each command to RESULTS. What stands there
is not run again, so it can be stopped and started at any time; processes may share RESULTS. `table` prints, by collective and planner,
how many networks stay below 99 % and 95 % of the bound, and names those below what is aimed at.
"""
import argparse
import functools
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLLECTIVES = ["all_gather", "reduce_scatter", "broadcast", "reduce", "all_reduce", "all_to_all"]
SIZES = {2**24: "16 MiB", 2**30: "1 GiB"}
LATENCY = "1 us"


def case_yaml(case):
    """A network of planner_cases.json: capacities in GB/s, every link 1 us."""
    names = [f"r{i}" for i in range(case["ranks"])] + [f"s{i}" for i in range(case["switches"])]
    lines = ["espalier: 1", f"name: {case['name']}", "nodes:"]
    lines += [f"  - {{id: {name}, kind: {'gpu' if name[0] == 'r' else 'switch'}}}" for name in names]
    lines.append("links:")
    lines += [
        f"  - {{from: {names[a]}, to: {names[b]}, bandwidth: {rate} GB/s, latency: {LATENCY}}}" for a, b, rate in case["edges"]
    ]
    return "\n".join(lines) + "\n"


def ranks_of(command, path):
    shown = subprocess.run([command, "bound", str(path), "all_gather", "--json"], capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)["ranks"]


def networks(command, most_ranks):
    """Name, ranks and YAML text of each network, small ones first; shipped machines have no text: they are read from configs."""
    cases = json.loads((ROOT / "tests/data/planner_cases.json").read_text())["cases"]
    found = [(case["name"], case["ranks"], case_yaml(case)) for case in cases if case["optimum"]]
    found += [(path.stem, ranks_of(command, path), None) for path in sorted((ROOT / "configs").glob("*.yaml"))]
    return sorted((entry for entry in found if entry[1] <= most_ranks or entry[2] is None), key=lambda entry: entry[1])


def measured(words, limit):
    """What a command printed as JSON, and as a row the processor time that it took, or why it printed nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.time()
    stop = lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))  # noqa: E731
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=stop, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = {"cpu_seconds": round(spent, 2), "seconds": round(time.time() - begin, 2)}
    if done.returncode < 0:
        return None, {**row, "error": f"not done within {limit} s of processor"}
    if done.returncode != 0:
        return None, {**row, "error": done.stderr.strip().splitlines()[0] if done.stderr else f"exit {done.returncode}"}
    return json.loads(done.stdout), row


def results_of(document):
    kept = ("size", "algorithm", "planner", "time", "of_bound", "chunk", "ahead")
    return [{key: entry.get(key) for key in kept} for entry in document["results"]]


def add_row(results, key, make_row):
    """Appends what `make_row` finds as a line of JSON, unless the key stands there already; read anew each time, as another process
    may have been there."""
    lines = results.read_text().splitlines() if results.exists() else []
    if any(json.loads(line)["key"] == key for line in lines):
        return
    row = make_row()
    with results.open("a") as out:
        out.write(json.dumps({"key": key, **row}) + "\n")


def run_one(command, path, collective, model, limit):
    """The results of one command as a row, with the processor time that it took."""
    planner = "lp" if collective == "all_to_all" else "packing"
    words = [command, "simulate", path, collective, "--profile", "ideal", "--json", "--model", model]
    words += ["-a", planner, "-s", "1G"] if model == "fair" else ["-a", f"{planner},auto", "-b", "16M", "-e", "1G", "-f", "64"]
    document, row = measured(words, limit)
    if document is None:
        return row
    row["ranks"] = document["ranks"] if isinstance(document["ranks"], int) else len(document["ranks"])
    row["results"] = results_of(document)
    return row


def run(flags):
    results = pathlib.Path(flags.results)
    with tempfile.TemporaryDirectory() as folder:
        for name, ranks, text in networks(flags.command, flags.most_ranks):
            if flags.filter and flags.filter not in name:
                continue
            path = ROOT / "configs" / f"{name}.yaml"
            if text is not None:
                path = pathlib.Path(folder) / f"{name}.yaml"
                path.write_text(text)
            for collective in flags.collectives.split(","):
                make_row = functools.partial(run_one, flags.command, str(path), collective, flags.model, flags.limit)
                add_row(results, [name, text is None, collective, flags.model], make_row)


def read_rows(paths):
    """Every result as (model, size, collective, algorithm, network, result); of a network that was run twice the last."""
    found = {}
    failed = {}
    for path in paths:
        for line in pathlib.Path(path).read_text().splitlines():
            row = json.loads(line)
            name, is_shipped, collective, model = row["key"]
            shown = f"{name}.yaml" if is_shipped else name
            if "error" in row:
                failed[(model, collective, shown)] = row["error"]
            for entry in row.get("results", []):
                kind = "auto" if entry["algorithm"] == "auto" else entry["algorithm"]
                found[(model, entry["size"], collective, kind, shown)] = {**entry, "ranks": row["ranks"]}
    return found, failed


def aim(collective):
    return 0.98 if collective == "all_to_all" else 0.99


def table(flags):
    found, failed = read_rows(flags.results)
    print("| model, size | collective | planner | networks | below 99 % | below 95 % | least |")
    print("|---|---|---|---|---|---|---|")
    groups = sorted({(m, s, c, a) for m, s, c, a, _ in found}, key=lambda g: (g[0] == "fair", -g[1], COLLECTIVES.index(g[2]), g[3]))
    for group in groups:
        model, size, collective, planner = group
        parts = {key[4]: row["of_bound"] for key, row in found.items() if key[:4] == group and row["of_bound"]}
        least = sorted(parts, key=parts.get)[:1]
        low = [sum(part < limit for part in parts.values()) for limit in (0.99, 0.95)]
        print(
            f"| {model}, {SIZES[size]} | {collective} | {planner} | {len(parts)} | {low[0]} | {low[1]} | "
            f"{', '.join(f'{100 * parts[name]:.1f} % {name}' for name in least)} |"
        )
    print("\nBelow what is aimed at, at 1 GiB:\n\n| model | collective | planner | network | ranks | of the bound | chunk |")
    print("|---|---|---|---|---|---|---|")
    for key, row in sorted(found.items(), key=lambda item: (item[0][0] == "fair", COLLECTIVES.index(item[0][2]), item[0][3], item[0][4])):
        model, size, collective, planner, name = key
        if size == 2**30 and model == "link" and row["of_bound"] and row["of_bound"] < aim(collective):
            print(f"| {model} | {collective} | {planner} | {name} | {row['ranks']} | {100 * row['of_bound']:.2f} % | {row['chunk']} |")
    print("\nfair slower than link by more than 3 %, at 1 GiB:\n\n| collective | planner | network | link | fair |\n|---|---|---|---|---|")
    for key, row in sorted(found.items()):
        model, size, collective, planner, name = key
        link = found.get(("link", size, collective, planner, name))
        if model == "fair" and link and row["of_bound"] and row["time"] > 1.03 * link["time"]:
            print(f"| {collective} | {planner} | {name} | {100 * link['of_bound']:.1f} % | {100 * row['of_bound']:.1f} % |")
    for (model, collective, name), error in sorted(failed.items()):
        print(f"\n{name}, {collective}, {model}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    runs.add_argument("command")
    runs.add_argument("results")
    runs.add_argument("--model", default="link", choices=["link", "fair"])
    runs.add_argument("--most-ranks", type=int, default=128)
    runs.add_argument("--filter", default="")
    runs.add_argument("--collectives", default=",".join(COLLECTIVES))
    runs.add_argument("--limit", type=float, default=600)
    runs.set_defaults(act=run)
    tables = verbs.add_parser("table")
    tables.add_argument("results", nargs="+")
    tables.set_defaults(act=table)
    flags = parser.parse_args()
    flags.act(flags)


if __name__ == "__main__":
    sys.exit(main())
