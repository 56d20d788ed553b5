#!/usr/bin/env python3
"""Compares engines on this machine in one run: the oracle (the least work), Open MPI, Gloo and Espalier.

Every engine runs the same cells in the same harness (harness.h): float32 sums, the first call checked element by element,
a barrier before every call, the slowest rank's own time, of which the table shows the median. With --repeat everything is run
in rounds: engines are compared within a round, when the machine was in one state, and the table shows the medians of the rounds.
Build with the preset bench first.

  bench/engine/run.py build/bench                         all cells, some minutes
  bench/engine/run.py build/bench --quick                 all_reduce of 1 KiB, 1 MiB and 16 MiB, few calls
  bench/engine/run.py build/bench --ranks 4 --sizes 1K,16M --collectives all_reduce --engines oracle,openmpi
  bench/engine/run.py build/bench --neighbours 2          beside two busy loops
  bench/engine/run.py build/bench --realtime              real-time priority, for a machine with other work
  bench/engine/run.py build/bench --repeat 5 --effort 0.2 --seconds 0.5   short rounds, for a machine whose speed changes
  bench/engine/run.py build/bench --against-peers         all_reduce from 8 B to 64 MiB over Open MPI, as users run it and
                                                          under real-time priority, in short rounds: some ten minutes
  scripts/verbs-vm -- bench/engine/run.py build/bench --rdma --ranks 2,4 --sizes 64K,1M --collectives all_reduce
                                                          over RDMA, where there is a device
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

KIB, MIB = 1 << 10, 1 << 20
ALL_REDUCE_SIZES = [KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB]
OTHER_SIZES = [16 * MIB]
COLLECTIVES = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "counts"]
REAL_TIME = ["chrt", "--rr", "10"]
# What --against-peers runs.
PEER_SIZES = [8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB]
PEER_RANKS = [2, 3, 4, 6, 8]
PEER_VARIANTS = ["vader", "ucx", "registered", "private"]
# What follows --mca pml on mpirun's command line.
MPI_VARIANTS = {
    "vader": ["ob1", "--mca", "btl", "vader,self"],
    "vader without CMA": ["ob1", "--mca", "btl", "vader,self", "--mca", "btl_vader_single_copy_mechanism", "none"],
    "coll/sm": ["ob1", "--mca", "btl", "vader,self", "--mca", "coll_sm_priority", "95"],
    "coll/adapt": ["ob1", "--mca", "btl", "vader,self", "--mca", "coll_adapt_priority", "100"],
    "ucx": ["ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"],
    "tcp": ["ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"],
}
# Over RDMA, with --rdma; "tcp" of both beside it.
RDMA_MPI_VARIANTS = {
    "verbs": ["ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x", "UCX_TLS=rc_v,self"],
    "tcp": MPI_VARIANTS["tcp"],
}
GLOO_VARIANTS = ["ring", "halving_doubling", "bcube", "ring_chunked", "direct"]
ESPALIER_VARIANTS = ["registered", "private", "tcp"]
RDMA_ESPALIER_VARIANTS = ["verbs", "tcp"]


def transport_of(engine, variant):
    return "tcp" if engine == "gloo" or variant == "tcp" else "verbs" if variant == "verbs" else "shm"


def parse_size(text):
    factors = {"K": KIB, "M": MIB}
    return int(float(text[:-1]) * factors[text[-1]]) if text[-1] in factors else int(text)


def format_size(size):
    return f"{size / MIB:g} MiB" if size >= MIB else f"{size / KIB:g} KiB" if size >= KIB else f"{size} B"


def format_time(microseconds):
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.3g} us"


def iterations_of(size, effort):
    return max(5, int(effort * min(1000, 320 * MIB / max(size, 1) + 5)))


class Runner:
    """Starts the engines' drivers and collects the lines that they print."""

    def __init__(self, build, arguments):
        self.drivers = pathlib.Path(build) / "bench" / "engine"
        self.arguments = arguments
        self.results = []
        self.cores = []
        self.remarks = []
        self.round = 0

    def has(self, engine):
        return (self.drivers / f"bench_engine_{engine}").exists()

    def command(self, engine, variant, ranks, cells, board):
        driver = [str(self.drivers / f"bench_engine_{engine}")]
        # Spinning real-time ranks would stay together on a core where they happened to start.
        options = ["--variant", variant, "--cells", cells, "--seconds", str(self.arguments.seconds),
                   "--warm-up", str(self.arguments.warm_up), "--pin", "yes" if self.arguments.realtime else "no"]
        priority = REAL_TIME if self.arguments.realtime else []
        if engine == "openmpi":
            # Told of too many ranks, it yields while it waits.
            crowded = ["--oversubscribe"] if ranks > os.cpu_count() else []
            launcher = ["mpirun", *crowded, "--bind-to", "none", "-np", str(ranks), "--mca", "pml"]
            return priority + launcher + {**RDMA_MPI_VARIANTS, **MPI_VARIANTS}[variant] + driver + options + ["--board", board]
        return priority + driver + options + ["--ranks", str(ranks)]

    def look_at_cores(self):
        """What the cores do just now belongs to every measurement."""
        priority = REAL_TIME if self.arguments.realtime else []
        output = subprocess.run(priority + [str(self.drivers / "bench_engine_cores")], capture_output=True, text=True,
                                timeout=60, check=False).stdout
        self.cores += [json.loads(line) for line in output.splitlines()]
        if self.results and self.cores:
            self.results[-1]["cores"] = self.cores[-1]

    def run(self, engine, variant, ranks, cells):
        if not cells:
            return
        text = ",".join(f"{collective}:{size}:{iterations_of(size, self.arguments.effort)}" for collective, size in cells)
        limit = 20 + len(cells) * (10 + 3 * self.arguments.seconds)
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(dir=shared, prefix="espalier-bench-") as directory:
            command = self.command(engine, variant, ranks, text, f"{directory}/board")
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=environment, process_group=0)
            try:
                output, errors = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                errors = f"not done after {limit:.0f} s\n{errors}"
        found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.results += [dict(result, round=self.round, realtime=self.arguments.realtime) for result in found]
        self.look_at_cores()
        if process.returncode != 0:
            reason = next((line for line in errors.splitlines() if line.strip()), f"status {process.returncode}")
            self.remarks.append(f"{engine} {variant}, {ranks} ranks: {reason} (after {len(found)} of {len(cells)} cells)")


def cells_of(engine, variant, arguments):
    cells = [(collective, size) for collective in arguments.collectives
             for size in arguments.sizes or (ALL_REDUCE_SIZES if collective == "all_reduce" else OTHER_SIZES)]
    if engine == "gloo" and variant in ("bcube", "ring_chunked"):
        cells = [cell for cell in cells if cell[0] == "all_reduce"]
    if engine in ("oracle", "gloo"):
        kept = ["all_to_all"] if variant == "direct" else COLLECTIVES[:4]
        cells = [cell for cell in cells if cell[0] in kept]
    return cells


def variants_of(engine, is_rdma):
    if is_rdma:
        return {"openmpi": list(RDMA_MPI_VARIANTS), "espalier": RDMA_ESPALIER_VARIANTS}.get(engine, [])
    return {"oracle": ["fused", "blocked"], "openmpi": list(MPI_VARIANTS), "gloo": GLOO_VARIANTS,
            "espalier": ESPALIER_VARIANTS}[engine]


def run_everything(runner, arguments):
    for engine in arguments.engines:
        if not runner.has(engine) or (engine == "openmpi" and shutil.which("mpirun") is None):
            runner.remarks.append(f"{engine} is missing: not built or not installed (scripts/setup --bench)")
    for ranks in arguments.ranks:
        runner.round += 1
        if not arguments.against_peers and not arguments.rdma:
            runner.run("tcp_limit", "", 2, [("all_reduce", 128 * MIB)])
        for engine in arguments.engines:
            for variant in variants_of(engine, arguments.rdma) if runner.has(engine) else []:
                if arguments.variants and variant not in arguments.variants and engine != "oracle":
                    continue
                print(f"{ranks} ranks: {engine} {variant}", file=sys.stderr)
                runner.run(engine, variant, ranks, cells_of(engine, variant, arguments))


def merge(results):
    """The results of each cell and variant, one a round, by (collective, ranks, bytes)."""
    cells = {}
    for result in results:
        key = (result["collective"], result["ranks"], result["bytes"])
        cells.setdefault(key, {}).setdefault((result["engine"], result["variant"]), []).append(result)
    return cells


def best_by_round(rows, engines):
    """The best median of some engines in each round."""
    best = {}
    for (engine, _), results in rows.items():
        for result in results if engine in engines else []:
            best[result["round"]] = min(best.get(result["round"], float("inf")), result["median_us"])
    return best


def median_ratio(results, reference):
    """The median over the rounds that have both; None where none has."""
    ratios = [result["median_us"] / reference[result["round"]] for result in results if result["round"] in reference]
    return statistics.median(ratios) if ratios else None


def tcp_rates(results):
    """GB/s by round."""
    return {result["round"]: result["bytes"] / result["median_us"] / 1000 for result in results
            if result["engine"] == "tcp_limit"}


def note_of(results, limits):
    notes = []
    wrong = sum(result["wrong"] for result in results)
    if wrong:
        notes.append(f"{wrong} WRONG")
    first = results[0]
    if limits and first["collective"] == "all_reduce" and transport_of(first["engine"], first["variant"]) == "tcp":
        bytes_moved = 2 * (first["ranks"] - 1) * first["bytes"]
        floors = {round: bytes_moved / limit / 1000 for round, limit in limits.items()}
        notes.append(f"{100 / median_ratio(results, floors):.0f} % of the TCP limit")
    return ", ".join(notes)


def print_range(what, values, unit):
    if values:
        print(f"{what}: {min(values):g} to {max(values):g} {unit} during the run")


def print_table(results, cores):
    print_range("A flag from core to core", [look["flag_ns"] for look in cores], "ns")
    print_range("Writing over what the other core read", [look["write_gb_per_s"] for look in cores], "GB/s")
    print_range("Copying what the other core wrote", [look["copy_gb_per_s"] for look in cores], "GB/s")
    limits = tcp_rates(results)
    print_range("TCP on the loopback, two cold streams, both directions together",
                [round(limit, 2) for limit in limits.values()], "GB/s")
    cells = merge(result for result in results if result["engine"] != "tcp_limit")
    for (collective, ranks, size), rows in sorted(cells.items(), key=lambda item: (COLLECTIVES.index(item[0][0]), item[0][1:])):
        print(f"\n{collective}, {ranks} ranks, {format_size(size)}")
        print(f"  {'engine':<28} {'min':>10} {'median':>10} {'/ oracle':>9} {'/ best peer':>12}")
        oracle = best_by_round(rows, ["oracle"])
        peer = best_by_round(rows, ["openmpi", "gloo"])
        lines = []
        for (engine, variant), found in rows.items():
            median = statistics.median(result["median_us"] for result in found)
            least = min(result["min_us"] for result in found)
            to_oracle = median_ratio(found, oracle)
            to_peer = median_ratio(found, peer) if engine != "oracle" else None
            ratios = [f"{ratio:.2f}" if ratio is not None else "-" for ratio in (to_oracle, to_peer)]
            lines.append((median, f"  {engine + ' ' + variant:<28} {format_time(least):>10} {format_time(median):>10} "
                                  f"{ratios[0]:>9} {ratios[1]:>12}  {note_of(found, limits)}".rstrip()))
        print("\n".join(line for _, line in sorted(lines)))


def run_against_peers(runner, arguments):
    """Rounds in which every mode, number of ranks and engine has its turn."""
    modes = [False, True]
    if subprocess.run([*REAL_TIME, "true"], capture_output=True, check=False).returncode != 0:
        modes.remove(True)
        runner.remarks.append("no right to real-time priority: only measured without")
    for round in range(arguments.repeat):
        for arguments.realtime in modes:
            print(f"round {round + 1} of {arguments.repeat}, {mode_name(arguments.realtime)}", file=sys.stderr)
            run_everything(runner, arguments)


def mode_name(realtime):
    return "under SCHED_RR" if realtime else "as users run it"


def ratios_to_peer(rows, variant):
    """How many times as fast as the better peer of the same round, sorted."""
    peer = best_by_round(rows, ["openmpi"])
    return sorted(peer[result["round"]] / result["median_us"] for result in rows.get(("espalier", variant), [])
                  if result["round"] in peer)


def print_peer_tables(results, cores):
    print_range("A flag from core to core", [look["flag_ns"] for look in cores], "ns")
    for realtime in sorted({result["realtime"] for result in results}):
        print(f"\nall_reduce in place, {mode_name(realtime)}: medians of the rounds; times as fast as the better of vader and UCX: "
              "median (least to most)\n")
        print("| ranks | size | Open MPI | registered | private | registered over it | private over it |")
        print("|---|---|---|---|---|---|---|")
        cells = merge(result for result in results if result["realtime"] == realtime and result["engine"] != "tcp_limit")
        for (_, ranks, size), rows in sorted(cells.items(), key=lambda item: item[0][1:]):
            peer = best_by_round(rows, ["openmpi"])
            line = [ranks, format_size(size), format_time(statistics.median(peer.values())) if peer else "-"]
            for variant in ("registered", "private"):
                times = [result["median_us"] for result in rows.get(("espalier", variant), [])]
                line.append(format_time(statistics.median(times)) if times else "-")
            for variant in ("registered", "private"):
                ratios = ratios_to_peer(rows, variant)
                line.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})" if ratios else "-")
            print("| " + " | ".join(str(field) for field in line) + " |")


class Neighbours:
    """Busy loops, one core after the other, while the engines run."""

    def __init__(self, count):
        self.count = count
        self.processes = []

    def __enter__(self):
        for index in range(self.count):
            core = str(index % os.cpu_count())
            self.processes.append(subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"]))

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder of preset bench")
    parser.add_argument("--ranks", help="for example 2,4 (default: 2,4,8)")
    parser.add_argument("--sizes", help="for example 1K,16M (default: 1K to 64M for all_reduce, 16M for the others)")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES[:5]))
    parser.add_argument("--engines", default="oracle,openmpi,gloo,espalier")
    parser.add_argument("--variants", help="only these variants, for example registered,vader")
    parser.add_argument("--effort", type=float, help="factor on the number of calls")
    parser.add_argument("--seconds", type=float, help="at most this long per cell")
    parser.add_argument("--repeat", type=int, help="whole rounds, of which the medians count")
    parser.add_argument("--neighbours", type=int, default=0, help="busy loops beside the engines")
    parser.add_argument("--realtime", action="store_true", help="run the engines under SCHED_RR (needs the right to)")
    parser.add_argument("--against-peers", action="store_true", help="the whole comparison with Open MPI, as a table")
    parser.add_argument("--rdma", action="store_true", help="Open MPI over UCX and Espalier over verbs, and both over TCP")
    parser.add_argument("--quick", action="store_true", help="few cells and calls")
    parser.add_argument("--json", metavar="FILE", help="also write every result")
    arguments = parser.parse_args()
    arguments.warm_up = 0.05
    short = arguments.against_peers
    arguments.effort = arguments.effort or (0.2 if short else 1)
    arguments.seconds = arguments.seconds or (0.05 if short else 3)
    arguments.repeat = arguments.repeat or (5 if short else 1)
    if short:
        arguments.collectives, arguments.engines = "all_reduce", "openmpi,espalier"
        arguments.variants = ",".join(PEER_VARIANTS)
        arguments.ranks = arguments.ranks or ",".join(map(str, PEER_RANKS))
        arguments.sizes = arguments.sizes or ",".join(map(str, PEER_SIZES))
    arguments.ranks = arguments.ranks or "2,4,8"
    if arguments.quick:
        arguments.collectives, arguments.sizes = "all_reduce", arguments.sizes or "1K,1M,16M"
        arguments.effort, arguments.seconds = min(arguments.effort, 0.3), min(arguments.seconds, 1)
    arguments.ranks = [int(text) for text in arguments.ranks.split(",")]
    arguments.sizes = [parse_size(text) for text in arguments.sizes.split(",")] if arguments.sizes else None
    for name in ("collectives", "engines", "variants"):
        text = getattr(arguments, name)
        setattr(arguments, name, text.split(",") if text else None)
    return arguments


def main():
    arguments = parse_arguments()
    runner = Runner(arguments.build, arguments)
    with Neighbours(arguments.neighbours):
        if arguments.against_peers:
            run_against_peers(runner, arguments)
            print_peer_tables(runner.results, runner.cores)
        else:
            for _ in range(arguments.repeat):
                run_everything(runner, arguments)
            print_table(runner.results, runner.cores)
    for remark in dict.fromkeys(runner.remarks):
        print(f"note: {remark}")
    if arguments.json:
        document = {"cores": os.cpu_count(), "load": os.getloadavg(), "neighbours": arguments.neighbours,
                    "realtime": arguments.realtime, "results": runner.results, "notes": runner.remarks}
        pathlib.Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(result["wrong"] for result in runner.results) else 0


if __name__ == "__main__":
    sys.exit(main())
