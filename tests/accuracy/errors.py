#!/usr/bin/env python3
"""How far measurements lie from predictions of their class, and how often a range from other systems holds them.

    errors.py ESPALIER              prints a table: class, range, how often it holds; as docs/accuracy.md has it
    errors.py ESPALIER --record     writes configs/profiles/errors.csv, which `simulate` reads, and docs/accuracy.md between its marks
    errors.py ESPALIER --check      exits 1 when the ranges of errors.csv hold less than nine in ten of the points

A class is a profile, a collective, one machine or several, and a band of sizes. `low` and `high` are the measured over the
predicted time that nine in ten points of the class lie between (the order statistics that do so for one more point of
the same kind). `held`: the part of points that lie in the range of the other systems of their class; a system is a
machine as measured with one version of NCCL. `wide`: by how much the range is widened so that ranges of others hold nine in ten.
Points: tests/accuracy/points and tests/accuracy/tables.
"""
import collections
import csv
import io
import math
import pathlib
import re
import sys

import accuracy
import points

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
RECORD = REPOSITORY / "configs/profiles/errors.csv"
DOCUMENT = REPOSITORY / "docs/accuracy.md"
BEGIN, END = "<!-- errors: begin -->", "<!-- errors: end -->"
COLUMNS = ["profile", "collective", "machines", "min_size", "max_size", "max_ranks", "min_version", "max_version", "points", "low", "median", "high", "held",
           "systems", "gpus"]
BANDS = points.BANDS
PART = 0.9
MIN_POINTS = 8  # Fewer say nothing of nine in ten.
COLLECTIVES = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all", "broadcast": "broadcast", "reducescatter": "reduce_scatter"}
GPUS = [("rtx-pro-6000", "rtx-pro-6000"), ("rtx4090", "rtx4090"), ("gb200", "gb200"), ("b200", "b200"), ("h100", "h100"), ("p5", "h100"), ("a3mega", "h100"),
        ("a100", "a100"), ("p4de", "a100"), ("dgx1v", "v100"), ("dgx2", "v100"), ("mi300x", "mi300x")]
VERSIONS = {"v100-hcm-x1-allreduce-2019": "2.4"}


def gpu_of(machine):
    """What the names of its GPUs in compute/gpu.h begin with."""
    return next(gpu for word, gpu in GPUS if word in machine)


def of_points(espalier):
    rows = []
    for path in sorted((HERE / "points").glob("*.csv")):
        found, refused = points.compare(espalier, points.read_points(path))
        if refused:
            sys.exit(f"{path}: {dict(refused)}")
        for row in found:
            machine, _ = points.machine_of(row["system"])
            rows.append({"profile": points.profile_of(machine), "collective": row["collective"], "machines": "one", "size": row["size"],
                         "ranks": row["gpus"], "version": row["nccl"], "system": f"{row['system']} {row['nccl']}", "gpu": gpu_of(machine),
                         "ratio": row["measured"] / row["predicted"]})
    return rows


def of_tables(espalier):
    rows = []
    for table, machine, profile, options in accuracy.CASES:
        kind = next(name for word, name in COLLECTIVES.items() if word in table)
        version = re.search(r"(?:nccl|rccl)(2\.\d+)", table)
        several = any(word in machine for word in ("-x2", "-x10", "-x12", "two-racks"))
        for size, _, predicted, measured in accuracy.predict(espalier, table, machine, profile, options):
            rows.append({"profile": profile.partition(":")[0], "collective": kind, "machines": "several" if several else "one", "size": size,
                         "ranks": RANKS.get(table, 8), "version": VERSIONS.get(table, version.group(1) if version else ""), "system": table, "gpu": gpu_of(machine),
                         "ratio": measured / predicted})
    return rows


RANKS = {"dgx2-12of16gpu-allreduce": 12, "dgx2-12of16gpu-broadcast": 12, "p4de-a100-x2-allreduce-simple-nccl2.17.1": 16,
         "a100-abci-x2-allreduce-collnet-sharp-nccl2.8": 16, "h100-hgx-x2-allreduce-nccl2.26.2": 16, "h100-ib-x10-8gpu-allreduce-nccl2.29.2": 80,
         "h100-ib-x10-8gpu-allgather-nccl2.29.2": 80, "h100-ib-x10-1gpu-allreduce-nccl2.29.2": 10, "h100-coreweave-96gpu-allreduce": 96,
         "p5-h100-x2-allreduce-nccl2.22.3-runA": 16, "gcp-a3mega-h100-x2-allreduce": 16, "gb200-oci-2rack-128gpu-allreduce-nccl2.29.2": 128,
         "gb200-nvl72-2rack-128gpu-allreduce-nccl2.26.2": 128}


def band_of(size):
    return next(index for index, (_, above, up_to) in enumerate(BANDS) if above < size <= up_to)


def class_of(row):
    return row["profile"], row["collective"], row["machines"], band_of(row["size"])


def range_of(ratios):
    """The order statistics between which one more of the same kind lies nine times in ten; of few points the ends."""
    ordered = sorted(ratios)
    count = len(ordered)
    beyond = max(0, math.floor((count + 1) * (1 - PART) / 2) - 1)
    return ordered[beyond], ordered[count - 1 - beyond]


def holds(ratio, low, high, wide):
    return low / wide <= ratio <= high * wide


def foretold(rows):
    """[(ratio, low, high, class)] of points of classes that other systems have points of: their range."""
    by_class = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        by_class[class_of(row)][row["system"]].append(row["ratio"])
    found = []
    for name, systems in by_class.items():
        for system, ratios in systems.items():
            others = [ratio for other, of in systems.items() if other != system for ratio in of]
            if len(others) >= MIN_POINTS:
                low, high = range_of(others)
                found += [(ratio, low, high, name) for ratio in ratios]
    return found


def widening(found):
    """The least factor, in steps of a hundredth, by which ranges of other systems hold nine in ten."""
    wide = 1.0
    while sum(holds(ratio, low, high, wide) for ratio, low, high, _ in found) < PART * len(found):
        wide = round(wide + 0.01, 2)
    return wide


def version_key(text):
    return [int(part) for part in text.split(".")]


def classes_of(rows, found, wide):
    by_class = collections.defaultdict(list)
    for row in rows:
        by_class[class_of(row)].append(row)
    said = []
    for name, of in sorted(by_class.items()):
        if len(of) < MIN_POINTS:
            continue
        profile, collective, machines, _ = name
        ratios = [row["ratio"] for row in of]
        low, high = range_of(ratios)
        others = [holds(ratio, least, most, wide) for ratio, least, most, of_class in found if of_class == name]
        versions = sorted({row["version"] for row in of if row["version"]}, key=version_key)
        said.append({"profile": profile, "collective": collective, "machines": machines, "min_size": min(row["size"] for row in of),
                     "max_size": max(row["size"] for row in of), "max_ranks": max(row["ranks"] for row in of),
                     "min_version": versions[0] if versions else "", "max_version": versions[-1] if versions else "", "points": len(of),
                     "low": f"{low / wide:.3f}", "median": f"{points.statistics.median(ratios):.3f}", "high": f"{high * wide:.3f}",
                     "held": f"{sum(others) / len(others):.2f}" if others else "", "systems": len({row["system"] for row in of}),
                     "gpus": " ".join(sorted({row["gpu"] for row in of}))})
    return said


def as_csv(classes):
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(classes)
    return text.getvalue()


def size_text(size):
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):g} {unit}"
    return f"{size} B"


def table_text(classes, rows, found, wide):
    held = sum(holds(ratio, low, high, wide) for ratio, low, high, _ in found)
    before = sum(holds(ratio, low, high, 1) for ratio, low, high, _ in found)
    lines = [f"{len(rows)} points; of {len(found)} whose class other systems have, the others' range holds {100 * before / len(found):.0f} % as it is and "
             f"{100 * held / len(found):.0f} % widened by {100 * (wide - 1):.0f} %, as it is printed.", "",
             "| profile | collective | machines | sizes | points, systems | measured over predicted | others' range holds |", "|---|---|---|---|---|---|---|"]
    for each in classes:
        of_others = f"{100 * float(each['held']):.0f} %" if each["held"] else "one system"
        lines.append(f"| {each['profile']} | {each['collective']} | {each['machines']} | {size_text(each['min_size'])} to {size_text(each['max_size'])} | "
                     f"{each['points']}, {each['systems']} | {float(each['low']):.2f} to {float(each['high']):.2f} | {of_others} |")
    return "\n".join(lines)


def main():
    espalier, options = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    rows = of_points(espalier) + of_tables(espalier)
    found = foretold(rows)
    wide = widening(found)
    classes = classes_of(rows, found, wide)
    text = table_text(classes, rows, found, wide)
    if "--record" in options:
        RECORD.write_text(as_csv(classes), encoding="utf-8")
        document = DOCUMENT.read_text(encoding="utf-8")
        begin, end = document.index(BEGIN) + len(BEGIN), document.index(END)
        DOCUMENT.write_text(document[:begin] + "\n" + text + "\n" + document[end:], encoding="utf-8")
    print(text)
    if "--check" in options:
        recorded = list(csv.DictReader(RECORD.open(encoding="utf-8", newline="")))
        inside = sum(any(class_of(row) == (each["profile"], each["collective"], each["machines"], band_of(int(each["max_size"]))) and
                         float(each["low"]) <= row["ratio"] <= float(each["high"]) for each in recorded) for row in rows)
        if inside < PART * len(rows):
            sys.exit(f"the ranges of {RECORD.name} hold {inside} of {len(rows)} points: less than nine in ten (--record)")


if __name__ == "__main__":
    main()
