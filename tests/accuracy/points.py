#!/usr/bin/env python3
"""Holds predictions under profiles against single points of nccl-tests on one box.

    points.py ESPALIER POINTS.csv            a table: system, collective and GPUs by size band
    points.py ESPALIER POINTS.csv --json     the same as JSON, with every row's prediction
    points.py ESPALIER POINTS.csv --check    exits 1 when a median factor is worse than LIMITS

POINTS.csv has the columns system, nccl, collective, type, gpus, size (bytes as nccl-tests counts them) and time_us. A system's
name says its machine (MACHINES); `gpus` of its GPUs take part, a thread of one process each (nccl-tests -t GPUS).
A factor is of a prediction and a measurement the larger over the smaller.
"""
import collections
import concurrent.futures
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent

# (what a system's name begins with, machine, its GPUs); the first that fits.
MACHINES = [
    ("gb200", "gb200-nvl72", ["tray[0-17].gpu[0-3]", 4]), ("gb300", "gb300-nvl72", ["tray[0-17].gpu[0-3]", 4]),
    ("a100", "dgx-a100", None), ("h100", "dgx-h100", None), ("h200", "dgx-h200", None), ("b200", "dgx-b200", None),
    ("b300", "dgx-b300", None), ("l40s", "l40s-pcie", None), ("rtx_pro_6000", "rtx-pro-6000-pcie", None),
]
BANDS = [("small", 0, 1 << 16), ("middle", 1 << 16, 1 << 26), ("large", 1 << 26, 1 << 60)]
# The medians by band that are not to get worse.
LIMITS = [1.06, 1.05, 1.035]


def machine_of(system):
    """(machine, GPUs of a tray or None) of a system's name, or None."""
    for prefix, machine, tray in MACHINES:
        if system.startswith(prefix):
            return machine, tray
    return None


def ranks_of(gpus, tray):
    """The first so many GPUs of a machine; of a rack tray by tray."""
    if tray is None:
        return f"gpu[0-{gpus - 1}]"
    of_tray = tray[1]
    if gpus <= of_tray:
        return f"tray0.gpu[0-{gpus - 1}]"
    return f"tray[0-{gpus // of_tray - 1}].gpu[0-{of_tray - 1}]"


def profile_of(machine):
    for line in (REPOSITORY / "configs" / f"{machine}.yaml").read_text(encoding="utf-8").splitlines():
        if line.startswith("profile: "):
            return line.split()[1].partition(":")[0]
    return None


def read_points(path):
    """{(system, nccl, collective, type, gpus): {size: seconds}}."""
    runs = collections.defaultdict(dict)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = (row["system"], row["nccl"], row["collective"], row["type"], int(row["gpus"]))
            runs[key][int(row["size"])] = float(row["time_us"]) * 1e-6
    return runs


def predict(espalier, key, sizes):
    """{size: (seconds, planner/protocol)} of a run, or why not."""
    system, nccl, collective, kind, gpus = key
    found = machine_of(system)
    if found is None:
        return f"no machine of {system}"
    machine, tray = found
    command = [espalier, "--json", "simulate", machine, collective, "-a", "nccl", "--profile", f"{profile_of(machine)}:threads",
               "--ranks", ranks_of(gpus, tray), "-d", kind, "--nccl-version", nccl,
               "-s", ",".join(map(str, sizes))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[0]
    return {row["size"]: (row["time"], f"{row['planner'].removeprefix('nccl/')}/{row['protocol']}")
            for row in json.loads(done.stdout)["results"]}


def compare(espalier, runs):
    """Rows of predicted points, and what could not be predicted, with its reason and number of points."""
    keys = sorted(runs)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda key: predict(espalier, key, sorted(runs[key])), keys))
    rows, refused = [], collections.Counter()
    for key, answer in zip(keys, answers):
        if isinstance(answer, str):
            refused[answer] += len(runs[key])
            continue
        names = dict(zip(("system", "nccl", "collective", "type", "gpus"), key))
        rows += [{**names, "size": size, "measured": runs[key][size], "predicted": seconds, "by": by}
                 for size, (seconds, by) in sorted(answer.items())]
    return rows, refused


def factor(row):
    return math.exp(abs(math.log(row["predicted"] / row["measured"])))


def summary(rows):
    """{band: {rows, median, p90}} of the bands that have rows."""
    said = {}
    for name, above, up_to in BANDS:
        factors = sorted(factor(row) for row in rows if above < row["size"] <= up_to)
        if factors:
            said[name] = {"rows": len(factors), "median": round(statistics.median(factors), 4),
                          "p90": round(factors[min(len(factors) - 1, math.ceil(0.9 * len(factors)) - 1)], 4)}
    return said


def grouped(rows, *names):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return sorted(groups.items())


def as_json(rows, refused):
    return {"points": len(rows), "refused": dict(refused), "all": summary(rows),
            "systems": {f"{system} {nccl}": summary(of) for (system, nccl), of in grouped(rows, "system", "nccl")},
            "classes": [{"system": system, "collective": collective, "gpus": gpus, **summary(of)}
                        for (system, collective, gpus), of in grouped(rows, "system", "collective", "gpus")],
            "rows": rows}


def line(names, rows):
    cells = [f"{of['median']:.2f}, {of['p90']:.2f} ({of['rows']})" if of else "-" for of in (summary(rows).get(name) for name, _, _ in BANDS)]
    return "| " + " | ".join([*map(str, names), *cells]) + " |"


def table(rows):
    bands = " | ".join(f"{name}: median, p90" for name, _, _ in BANDS)
    lines = [f"| system | collective | GPUs | {bands} |", "|---" * (3 + len(BANDS)) + "|"]
    lines += [line(key, of) for key, of in grouped(rows, "system", "collective", "gpus")]
    lines += [line((*key, ""), of) for key, of in grouped(rows, "system", "nccl")]
    return "\n".join([*lines, line(("**all**", "", ""), rows)])


def main():
    espalier, path, options = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], sys.argv[3:]
    rows, refused = compare(espalier, read_points(path))
    print(json.dumps(as_json(rows, refused), indent=1) if "--json" in options else table(rows))
    for reason, count in refused.items():
        print(f"{count} points: {reason}", file=sys.stderr)
    if "--check" in options:
        said = summary(rows)
        worse = [f"{name}: {said[name]['median']}, at most {limit}"
                 for (name, _, _), limit in zip(BANDS, LIMITS) if name in said and said[name]["median"] > limit]
        if worse or refused or not rows:
            sys.exit("the median factor got worse: " + "; ".join(worse))


if __name__ == "__main__":
    main()
