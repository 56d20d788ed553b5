#!/usr/bin/env python3
"""Output that is lost is a failure of every verb: lost_output_test.py ESPALIER REPOSITORY

Every verb runs with a standard output that takes nothing (a full device, a closed descriptor, a pipe that nobody reads),
every flag that names an output file with a full device and with a disk that fills up late, and every verb with a
standard error that takes nothing. The verbs are taken from the command itself, so a new one without a line here fails.
"""
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

ESPALIER, REPOSITORY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

sys.path.insert(0, str(REPOSITORY / "tests" / "options"))
import fixtures  # noqa: E402

SWEEP = ["sweep", "rtx4090-pcie", "-c", "all_gather", "-a", "ring", "-s", "1M"]
FAMILIES = ["ring", "torus", "mesh", "hypercube", "fully-connected", "fat-tree", "leaf-spine", "dragonfly", "rail-boxes",
            "random", "cluster"]

# Of each verb: arguments with which it prints, and variants that write a file, whose name takes the place of FILE.
VERBS = {
    "topo show": (["topo", "show", "dgx1v"], []),
    "topo validate": (["topo", "validate", "dgx1v"], []),
    "topo expand": (["topo", "expand", "dgx1v"], [["topo", "expand", "dgx1v", "-o", "FILE"]]),
    "topo degrade": (["topo", "degrade", "rtx4090-pcie"], []),
    "topo detect": (["topo", "detect", "--root", "machine"],
                    [["topo", "detect", "--root", "machine", "-o", "FILE"],
                     ["topo", "detect", "--root", "machine", "-o", "-", "--record", "FILE"]]),
    "topo import": (["topo", "import", "box.txt", "--preset", "a100-sxm"], [["topo", "import", "box.txt", "--preset", "a100-sxm", "-o", "FILE"]]),
    **{f"topo gen {family}": (["topo", "gen", family], [["topo", "gen", family, "-o", "FILE"]]) for family in FAMILIES},
    "plan": (["plan", "rtx4090-pcie", "all_gather"],
             [["plan", "rtx4090-pcie", "all_gather", "-o", "FILE"], ["plan", "dgx1v", "all_gather", "-a", "ring", "-o", "FILE"]]),
    "bound": (["bound", "dgx1v", "all_gather"], []),
    "verify": (["verify", "plan.json"], []),
    "simulate": (["simulate", "rtx4090-pcie", "all_gather", "-a", "ring", "-s", "1M"],
                 [["simulate", "rtx4090-pcie", "all_gather", "-a", "ring", "-s", "1M", "--trace", "FILE"],
                  ["simulate", "--scenario", "training-step", "--trace", "FILE"]]),
    "report": (["report", "rtx4090-pcie", "all_gather", "-a", "ring", "-s", "1M"],
               [["report", "rtx4090-pcie", "all_gather", "-a", "ring", "-s", "1M", "-o", "FILE"]]),
    "sweep": (SWEEP, [SWEEP + ["-o", "FILE"]]),
    "merge": (["merge", "rows.csv"], [["merge", "rows.csv", "-o", "FILE"]]),
    "run": (["run", "one-host", "broadcast", "-p", "ranks=2", "-s", "1K", "-n", "1", "-w", "0"],
            [["run", "one-host", "broadcast", "-p", "ranks=2", "-s", "1K", "-n", "1", "-w", "0", "--trace", "FILE"]]),
    "explain": (["explain", "rtx4090-pcie", "all_gather", "-s", "1M"], []),
    "tune": (["tune", "rtx4090-pcie", "all_gather"], []),
    "nccl": (["nccl", "dgx1v"], []),
    "doctor": (["doctor"], []),
    "compare": (["compare", "results.json", "results.json"],
                [["compare", "trace.json", "trace.json", "--svg", "FILE"]]),
    "compare-designs": (["compare-designs", "rtx4090-pcie", "dgx1v", "-c", "all_gather", "-a", "ring", "-s", "1M", "--no-failures"], []),
    "diagnose": (["diagnose", "rtx4090-pcie", "results.json", "--profile", "ideal"], []),
    "compute": (["compute"], []),
    "experts": (["experts", "dgx-h100"], []),
    "probe": (["probe", "one-host", "-p", "ranks=2", "-s", "1K", "-n", "1"],
              [["probe", "one-host", "-p", "ranks=2", "-s", "1K", "-n", "1", "-o", "FILE"]]),
    "calibrate": (["calibrate", "rtx4090-pcie", "--from", "results.json"],
                  [["calibrate", "rtx4090-pcie", "--from", "results.json", "-o", "FILE"]]),
    "lab": (["lab", "--help"], []),  # Its traces and tables go the same ways; a network is not built here.
    "export": (["export", "plan.json", "--as", "msccl"], [["export", "plan.json", "--as", "msccl", "-o", "FILE"]]),
    "import": (["import", "ring.xml", "rtx4090-pcie"], [["import", "ring.xml", "rtx4090-pcie", "-o", "FILE"]]),
    "schema": (["schema", "plan"], []),
    "version": (["version"], []),
    "completion": (["completion", "bash"], []),
}

failures = []


def expect(condition, what, done=None):
    if condition:
        return
    failures.append(what)
    print(f"FAILED: {what}" + (f": exit {done.returncode}, {done.stderr[-300:]!r}" if done else ""), flush=True)


def run(arguments, folder, json=False, **streams):
    command = [str(ESPALIER)] + (["--json"] if json else []) + arguments
    streams.setdefault("stdout", subprocess.DEVNULL)
    streams.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, timeout=120, text=True, errors="replace", **streams)


def verbs_of_command(folder):
    """All verbs that have none below them, as the completion of bash lists them."""
    script = subprocess.run([str(ESPALIER), "completion", "bash"], cwd=folder, capture_output=True, text=True, check=True)
    paths = re.findall(r"^      '([^']+)'\) path=", script.stdout, re.MULTILINE)
    return {path for path in paths if not any(other.startswith(path + " ") for other in paths)}


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


def check_standard_output(verb, arguments, folder):
    for json in (False, True) if verb not in ("completion", "export") else (False,):  # Their output has a form of its own.
        name = f"{'--json ' if json else ''}{verb}"
        with open("/dev/full", "w") as full:
            done = run(arguments, folder, json, stdout=full)
        expect(done.returncode == 1 and "No space left on device" in done.stderr, f"{name} > /dev/full", done)
        done = run(arguments, folder, json, stdout=None, preexec_fn=lambda: os.close(1))
        expect(done.returncode == 1 and "Bad file descriptor" in done.stderr, f"{name} >&-", done)
        reader, writer = os.pipe()
        os.close(reader)
        done = run(arguments, folder, json, stdout=writer)
        os.close(writer)
        quiet = done.returncode == -signal.SIGPIPE and done.stderr == ""
        # The ranks of a job are processes of their own: the one that prints dies so, and the command tells of it.
        expect(quiet or (verb in ("run", "probe") and done.returncode > 0), f"{name} | true", done)


def check_standard_error(verb, arguments, folder):
    for given in (arguments, arguments + ["--no-such-flag"], arguments[:1] + ["/no/such/file"]):
        usual = run(given, folder).returncode
        with open("/dev/full", "w") as full:
            done = run(given, folder, stderr=full)
        expect(done.returncode == usual, f"{' '.join(given)} 2> /dev/full: exit {done.returncode}, not {usual}")
        done = run(given, folder, stderr=None, preexec_fn=lambda: os.close(2))
        expect(done.returncode == usual, f"{' '.join(given)} 2>&-: exit {done.returncode}, not {usual}")


def check_files(arguments, folder):
    name = " ".join(arguments)
    done = run([argument.replace("FILE", "/dev/full") for argument in arguments], folder)
    expect(done.returncode == 1 and "/dev/full: No space left on device" in done.stderr, f"{name}, to /dev/full", done)
    suffix = ".csv" if arguments[0] in ("sweep", "merge") else ".json"
    out = pathlib.Path(folder) / ("out" + suffix)
    before = set(os.listdir(folder))
    given = [argument.replace("FILE", out.name) for argument in arguments]
    done = run(given, folder, preexec_fn=limit_file_size)
    # A sweep leaves the rows that fit; nothing else leaves a file, and nothing leaves an unfinished one.
    left = set(os.listdir(folder)) - before - ({out.name} if arguments[0] == "sweep" else set())
    expect(done.returncode == 1 and "File too large" in done.stderr and not left, f"{name}, to a small disk {left}", done)
    out.unlink(missing_ok=True)
    done = run(given, folder)
    expect(done.returncode == 0 and out.stat().st_size > 64, f"{name}, to a file", done)
    out.unlink(missing_ok=True)


def make_inputs(folder):
    for name, text in fixtures.SYSFS.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    pathlib.Path(folder, "box.txt").write_text("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n")
    run(["plan", "rtx4090-pcie", "all_gather", "-o", "plan.json"], folder)
    run(SWEEP + ["-o", "rows.csv"], folder)
    run(["export", "plan.json", "--as", "msccl", "-o", "ring.xml"], folder)
    run(["simulate", "rtx4090-pcie", "all_gather", "-a", "ring", "-s", "1M", "--trace", "trace.json"], folder)
    with open(pathlib.Path(folder) / "results.json", "w") as results:
        run(["simulate", "rtx4090-pcie", "all_gather", "-a", "ring", "-b", "64K", "-e", "16M", "-f", "4"], folder, True,
            stdout=results)


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_inputs(folder)
        known = verbs_of_command(folder)
        expect(known == set(VERBS), f"verbs without a line here, or the other way round: {sorted(known ^ set(VERBS))}")
        for verb, (arguments, files) in VERBS.items():
            check_standard_output(verb, arguments, folder)
            check_standard_error(verb, arguments, folder)
            for written in files:
                check_files(written, folder)
    print(f"{len(failures)} failures" if failures else "no output is lost in silence")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
