#!/usr/bin/env python3
"""Holds predictions under profiles against published nccl-tests tables.

    accuracy.py ESPALIER            exits 1 when a median error is worse than LIMITS
    accuracy.py ESPALIER --record   writes docs/accuracy.md between its marks, and docs/accuracy.svg and accuracy-tables.svg
    accuracy.py ESPALIER --calibrate PROFILE [ARGUMENTS]
                                    fits a profile to all tables of its name but those of NOT_FITTED, and predicts each table
                                    and each machine by a fit without it (espalier calibrate --profile); PROFILE may be
                                    a file that is named as the profile

An error is a factor: of a prediction and a measurement the larger over the smaller. Outliers count as all others do.
"""
import concurrent.futures
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent

# (table, machine, profile, further options). A machine is shipped, or a file in machines/.
CASES = [
    ("v100-hcm-x1-allreduce-2019", "dgx1v", "nccl-volta:one-process", ["--nccl-version", "2.4"]),
    ("dgx2-12of16gpu-allreduce", "dgx2", "nccl-volta:one-process", ["--ranks", "gpu[0-11]"]),
    ("dgx2-12of16gpu-broadcast", "dgx2", "nccl-volta:one-process", ["--ranks", "gpu[0-11]"]),
    ("a100-ndv4-x1-allreduce-superbench", "dgx-a100", "nccl-ampere:one-process", []),
    ("a100-ndv4-x1-allgather-superbench", "dgx-a100", "nccl-ampere:one-process", []),
    ("a100-ndv4-x1-alltoall-superbench", "dgx-a100", "nccl-ampere:one-process", []),
    ("p4de-a100-x2-allreduce-simple-nccl2.17.1", "p4de-x2", "nccl-ampere", ["--protocol", "simple"]),
    ("a100-abci-x2-allreduce-collnet-sharp-nccl2.8", "abci-a100-x2", "nccl-ampere", []),
    ("rtx4090-x8-pcie-p2p-allreduce", "rtx4090-p2p", "nccl-pcie:one-process", []),
    ("h100-x1-allreduce-nvls-nccl2.26.2", "dgx-h100", "nccl-hopper:one-process", []),
    ("h100-x1-allreduce-ring-nccl2.26.2", "dgx-h100-without-nvls", "nccl-hopper:one-process", ["-a", "nccl/ring"]),
    ("h100-ib-x1-8gpu-allreduce-nccl2.29.2", "dgx-h100", "nccl-hopper", []),
    ("h100-ib-x1-8gpu-allgather-nccl2.29.2", "dgx-h100", "nccl-hopper", []),
    ("h100-hgx-x2-allreduce-nccl2.26.2", "hgx-h100-x2", "nccl-hopper", []),
    ("h100-ib-x10-8gpu-allreduce-nccl2.29.2", "hgx-h100-x10", "nccl-hopper", []),
    ("h100-ib-x10-8gpu-allgather-nccl2.29.2", "hgx-h100-x10", "nccl-hopper", []),
    ("h100-ib-x10-1gpu-allreduce-nccl2.29.2", "hgx-h100-x10-1gpu", "nccl-hopper", []),
    ("h100-coreweave-96gpu-allreduce", "hgx-h100-x12", "nccl-hopper", []),
    ("p5-h100-x2-allreduce-nccl2.22.3-runA", "p5-x2", "nccl-hopper", []),
    ("gcp-a3mega-h100-x2-allreduce", "a3mega-x2", "nccl-hopper", ["--protocol", "simple"]),
    ("gb200-oci-2rack-128gpu-allreduce-nccl2.29.2", "gb200-two-racks", "nccl-blackwell", []),
    ("gb200-nvl72-2rack-128gpu-allreduce-nccl2.26.2", "gb200-two-racks", "nccl-blackwell", []),
    ("mi300x-x1-allreduce-rccl2.22.3", "mi300x", "rccl-mi300x", []),
    ("mi300x-x1-allreduce-graph-rccl2.22.3", "mi300x", "rccl-mi300x:graph", []),
]
# Too slow to simulate hundreds of times; so these tell how a fit foretells larger machines.
NOT_FITTED = {"a100-abci-x2-allreduce-collnet-sharp-nccl2.8", "h100-ib-x10-8gpu-allreduce-nccl2.29.2", "h100-ib-x10-8gpu-allgather-nccl2.29.2", "h100-coreweave-96gpu-allreduce",
              "gb200-oci-2rack-128gpu-allreduce-nccl2.29.2", "gb200-nvl72-2rack-128gpu-allreduce-nccl2.26.2"}
BANDS = [("up to 64 KiB", 0, 1 << 16), ("64 KiB to 64 MiB", 1 << 16, 1 << 26), ("above 64 MiB", 1 << 26, 1 << 50)]
# The medians over all points that are not to get worse, by band.
LIMITS = [1.045, 1.09, 1.035]
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
COLORS = {"nccl-pcie": "#a6761d", "nccl-volta": "#1b9e77", "nccl-ampere": "#d95f02", "nccl-hopper": "#7570b3", "nccl-blackwell": "#e7298a",
          "rccl-mi300x": "#66a61e"}


def predict(espalier, table, machine, profile, options):
    """[(size, algorithm, predicted, measured)] in seconds."""
    own = HERE / "machines" / f"{machine}.yaml"
    command = [espalier, "--json", "compare", str(own) if own.exists() else machine, str(HERE / "tables" / f"{table}.txt"),
               "--profile", profile, *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return [(row["size"], row["algorithm"], row["a"], row["b"]) for row in json.loads(done.stdout)["sizes"]]


def calibrate(espalier, profile, arguments):
    """What espalier calibrate says of the tables of one profile."""
    name = pathlib.Path(profile).stem
    sources = []
    for table, machine, of, options in CASES:
        launch = of.partition(":")
        if launch[0] != name or table in NOT_FITTED:
            continue
        own = HERE / "machines" / f"{machine}.yaml"
        source = f"{HERE / 'tables' / table}.txt@{own if own.exists() else machine}" + (f",launch={launch[2]}" if launch[2] else "")
        words = {"--ranks": "ranks", "--protocol": "protocol", "-a": "algorithm", "--nccl-version": "version"}
        sources.append(source + "".join(f",{words[key]}={value}" for key, value in zip(options[::2], options[1::2])))
    command = [espalier, "calibrate", "dgx-a100", "--profile", profile, "--from", *sources, *arguments]
    return subprocess.run(command, cwd=REPOSITORY).returncode


def factors(rows, band):
    _, above, up_to = band
    return [math.exp(abs(math.log(a / b))) for size, _, a, b in rows if above < size <= up_to]


def cell(rows, band):
    of_band = factors(rows, band)
    return f"{statistics.median(of_band):.2f}, {max(of_band):.2f} ({len(of_band)})" if of_band else "-"


def tables_text(results):
    lines = ["| table | machine | profile | " + " | ".join(name for name, _, _ in BANDS) + " |", "|---|---|---" + "|---" * len(BANDS) + "|"]
    for (table, machine, profile, options), rows in results:
        shown = profile + (f" `{' '.join(options)}`" if options else "")
        lines.append(f"| {table} | {machine} | {shown} | " + " | ".join(cell(rows, band) for band in BANDS) + " |")
    everything = [row for _, rows in results for row in rows]
    lines.append("| **all** | | | " + " | ".join(f"**{cell(everything, band)}**" for band in BANDS) + " |")
    return "\n".join(lines)


def picture(results):
    """Predicted over measured against size, a color per profile."""
    width, height, left, right, top, bottom = 760, 420, 60, 20, 36, 46
    low, high, span = 2, 36, math.log2(4)

    def x_of(size):
        return left + (math.log2(size) - low) / (high - low) * (width - left - right)

    def y_of(ratio):
        bounded = min(max(math.log2(ratio), -span), span)
        return top + (span - bounded) / (2 * span) * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="20" font-size="14">Predicted over measured time, published nccl-tests tables</text>']
    for power in range(5, high, 5):
        name = f"{2 ** power} B" if power < 10 else f"{2 ** (power - 10)} KiB" if power < 20 else f"{2 ** (power - 20)} MiB" if power < 30 else f"{2 ** (power - 30)} GiB"
        out.append(f'<line x1="{x_of(2**power):.1f}" y1="{top}" x2="{x_of(2**power):.1f}" y2="{height - bottom}" stroke="#eee"/>')
        out.append(f'<text x="{x_of(2**power):.1f}" y="{height - bottom + 16}" text-anchor="middle">{name}</text>')
    for ratio in (0.25, 0.5, 1, 2, 4):
        stroke = "#888" if ratio == 1 else "#ddd"
        out.append(f'<line x1="{left}" y1="{y_of(ratio):.1f}" x2="{width - right}" y2="{y_of(ratio):.1f}" stroke="{stroke}"/>')
        out.append(f'<text x="{left - 6}" y="{y_of(ratio) + 4:.1f}" text-anchor="end">{ratio}</text>')
    for (_, _, profile, _), rows in results:
        color = COLORS[profile.split(":")[0]]
        points = " ".join(f"{x_of(size):.1f},{y_of(a / b):.1f}" for size, _, a, b in sorted(rows))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.2" opacity="0.8"/>')
        out += [f'<circle cx="{x_of(size):.1f}" cy="{y_of(a / b):.1f}" r="2" fill="{color}"/>' for size, _, a, b in rows]
    for index, (name, color) in enumerate(COLORS.items()):
        out.append(f'<rect x="{left + 10 + 135 * index}" y="{height - 16}" width="12" height="4" fill="{color}"/>')
        out.append(f'<text x="{left + 28 + 135 * index}" y="{height - 10}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def panels(results):
    """Measured and predicted time against size, a panel per table; both axes logarithmic, the same ranges in each row."""
    columns, width, height, left, top, gap = 4, 240, 170, 34, 30, 26
    rows = -(-len(results) // columns)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * width} {rows * height + top}" font-family="sans-serif" '
           'font-size="9">', f'<rect width="{columns * width}" height="{rows * height + top}" fill="white"/>',
           '<text x="10" y="18" font-size="13">Time in us against bytes: measured (dots) and predicted (line)</text>']
    low, high, quickest, slowest = 2, 36, 0, 6  # powers of two bytes, powers of ten microseconds

    def panel(index, case, points):
        table, _, profile, _ = case
        color = COLORS[profile.split(":")[0]]
        x0, y0 = index % columns * width + left, index // columns * height + top
        wide, tall = width - left - 10, height - gap - 20

        def place(size, seconds):
            return (x0 + (math.log2(size) - low) / (high - low) * wide,
                    y0 + 14 + tall - (math.log10(seconds * 1e6) - quickest) / (slowest - quickest) * tall)

        out.append(f'<text x="{x0}" y="{y0 + 8}">{table}</text>')
        out.append(f'<rect x="{x0}" y="{y0 + 14}" width="{wide}" height="{tall}" fill="none" stroke="#ccc"/>')
        for power in range(10, high, 10):
            x = place(2**power, 1)[0]
            out.append(f'<line x1="{x:.1f}" y1="{y0 + 14}" x2="{x:.1f}" y2="{y0 + 14 + tall}" stroke="#eee"/>')
            out.append(f'<text x="{x:.1f}" y="{y0 + 24 + tall}" text-anchor="middle">{("1 KiB", "1 MiB", "1 GiB")[power // 10 - 1]}</text>')
        for power in range(quickest, slowest + 1, 2):
            y = place(1, 10**power * 1e-6)[1]
            out.append(f'<text x="{x0 - 3}" y="{y + 3:.1f}" text-anchor="end">{10**power:,}</text>')
        line = " ".join("{:.1f},{:.1f}".format(*place(size, a)) for size, _, a, _ in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.4"/>')
        out.extend('<circle cx="{:.1f}" cy="{:.1f}" r="1.8" fill="#333"/>'.format(*place(size, b)) for size, _, _, b in points)

    for index, (case, points) in enumerate(results):
        panel(index, case, sorted(points))
    return "\n".join(out + ["</svg>", ""])


def main():
    espalier = str(pathlib.Path(sys.argv[1]).resolve())
    if sys.argv[2:3] == ["--calibrate"]:
        sys.exit(calibrate(espalier, sys.argv[3], sys.argv[4:]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(zip(CASES, pool.map(lambda case: predict(espalier, *case), CASES)))
    if sys.argv[2:] == ["--record"]:
        path = REPOSITORY / "docs" / "accuracy.md"
        text = path.read_text(encoding="utf-8")
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        path.write_text(text[:begin] + "\n" + tables_text(results) + "\n" + text[end:], encoding="utf-8")
        (REPOSITORY / "docs" / "accuracy.svg").write_text(picture(results), encoding="utf-8")
        (REPOSITORY / "docs" / "accuracy-tables.svg").write_text(panels(results), encoding="utf-8")
    print(tables_text(results))
    everything = [row for _, rows in results for row in rows]
    worse = [f"{band[0]}: {statistics.median(factors(everything, band)):.3f}, at most {limit}"
             for band, limit in zip(BANDS, LIMITS) if statistics.median(factors(everything, band)) > limit]
    if worse:
        sys.exit("the median factor got worse: " + "; ".join(worse))


if __name__ == "__main__":
    main()
