#!/usr/bin/env python3
"""`espalier run --device cuda` on the GPUs of a fake driver: results, rows, timeline; and what is refused.

Usage: run_on_gpus_test.py ESPALIER FOLDER_OF_FAKE_DRIVER WHY_NO_KERNELS. Exits 3 where there are no kernels.
"""
import ctypes
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

RUN = ["run", "one-host"]


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


# What nccl-tests prints: size, count, type, redop, root, then time, algbw, busbw, #wrong twice.
NCCL_TESTS = """#!/bin/sh
echo "# nThread 1 nGpus 2"
for size in 1024 4096 16384 65536; do
  echo "  $size 256 float sum -1 10.0 0.10 0.25 0 11.0 0.09 0.24 0"
done
"""


def check_gpu_check(check, espalier, fake, folder):
    """The script on the fake driver, without nccl-tests, with a stand-in for them, and without a driver."""
    script = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu-check"
    report = folder / "report.md"

    def gpu_check(**settings):
        environment = {**os.environ, "LD_LIBRARY_PATH": fake, **settings}
        return subprocess.run([sys.executable, script, "--quick", "--espalier", espalier, "--report", report], text=True,
                              capture_output=True, timeout=200, env=environment)

    done = gpu_check()
    text = report.read_text()
    check(done.returncode == 0 and "8 right, 0 wrong" in text and "| 2 | 64K | " in text, "gpu-check", done)
    check("all_reduce_perf is not on the PATH" in text, "gpu-check without nccl-tests", done)
    peer = folder / "all_reduce_perf"
    peer.write_text(NCCL_TESTS)
    peer.chmod(0o755)
    done = gpu_check(PATH=f"{folder}:{os.environ['PATH']}")
    rows = [line.split(" | ") for line in report.read_text().splitlines() if line.endswith(" |") and "| 0.25 |" in line]
    check([row[0] for row in rows] == ["| 1024", "| 4096", "| 16384", "| 65536"], "gpu-check beside NCCL", done)
    done = gpu_check(FAKE_CUDA_GPUS="1", PATH=f"{folder}:{os.environ['PATH']}")
    check("that takes two GPUs" in report.read_text(), "gpu-check on one GPU", done)
    done = gpu_check(FAKE_CUDA_FAIL="cuLaunchCooperativeKernel:3:719")
    check(done.returncode == 1 and "wrong" in done.stdout and "exit" in report.read_text(), "gpu-check with a fault", done)
    report.unlink()
    done = gpu_check(FAKE_CUDA_GPUS="0")
    check(done.returncode == 3 and "gpu-check: " in done.stderr, "gpu-check where the driver shows no GPU", done)
    if not has_driver():
        done = gpu_check(LD_LIBRARY_PATH="")
        check(done.returncode == 3 and "gpu-check: no CUDA driver" in done.stderr, "gpu-check without a driver", done)
    check(not report.exists(), "a report without a GPU", done)


def check_against_simulation(check, run, espalier, folder):
    """Runs on GPUs are compared and calibrated as others."""

    def ask(*words):
        return subprocess.run([espalier, *words], capture_output=True, text=True, timeout=120)

    plan = ["-p", "ranks=4", "-a", "ring", "--chunk", "64K"]
    simulated = folder / "simulated.json"
    done = ask("simulate", "one-host", "all_reduce", *plan, "-s", "1M", "--trace", simulated)
    check(done.returncode == 0, "simulate", done)
    for device, gpus in (("cuda", 2), ("cuda-ranks", 2), ("cuda-ranks", 4)):  # The last by kernels.
        results, trace = folder / "results.json", folder / "run-trace.json"
        done = run("all_reduce", "--device", device, *plan, "-b", "4K", "-e", "1M", "-f", "4", "-n", "3", "-w", "1", "--json",
                   gpus=gpus)
        check(done.returncode == 0, f"run on {device}", done)
        results.write_text(done.stdout)
        done = ask("calibrate", "one-host", "-p", "ranks=4", "--from", results, "-o", folder / "calibrated.yaml")
        check(done.returncode == 0 and "latency" in done.stdout, f"calibrate to {device}", done)
        done = run("all_reduce", "--device", device, *plan, "-s", "1M", "-n", "3", "-w", "1", "--trace", str(trace), gpus=gpus)
        by_kernels = "kernels carry out calls" in done.stdout and "opens its memory\n" not in done.stdout
        check(done.returncode == 0 and by_kernels == (device == "cuda-ranks" and gpus == 4), f"trace of {device}", done)
        done = ask("compare", simulated, trace)
        check(done.returncode == 0 and "# critical path: " in done.stdout, f"compare with {device}", done)


def ranks_of(process):
    """The processes that a run has started."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


def check_kernels_of_ranks(check, run, run_ranks):
    """Kernels of processes that carry out calls together: types, operations, planners, in and out of step; faults."""
    for words in (["-d", "half", "-o", "avg"], ["-d", "int8", "-o", "max"], ["-d", "double", "-o", "prod", "-a", "tree"],
                  ["-d", "bfloat16", "-a", "ring", "--chunk", "2K"]):
        done = run_ranks("all_reduce", "-p", "ranks=4", "-b", "8", "-e", "64K", "-f", "32", *words, gpus=4)
        check(done.returncode == 0 and "kernels carry out calls" in done.stdout and "# Out of bounds values : 0 OK" in done.stdout,
              f"kernels of processes: {words}", done)
    done = run("all_gather", "--device", "cuda-ranks-copies", "-n", "2", "-w", "1", "-p", "ranks=3", "-s", "48K", gpus=4)
    check(done.returncode == 0 and "kernels carry out calls" not in done.stdout, "copies as asked for", done)
    done = run_ranks("all_reduce", "-p", "ranks=3", "-s", "64K", "--timeout", "10", gpus=4,
                     FAKE_CUDA_FAIL="cuLaunchCooperativeKernel:2:719")
    check("launch the interpreter" in done.stderr and "CUDA_ERROR_LAUNCH_FAILED" in done.stderr and done.returncode not in (0, 2),
          "a launch that fails", done)


def check_a_killed_rank(check, espalier, environment):
    """A rank that is killed within calls of kernels is named by those that are left."""
    command = [espalier, *RUN, "all_reduce", "--device", "cuda-ranks", "-p", "ranks=3", "-s", "64K", "-n", "100000"]
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        line = ""
        while "us" not in line:  # The table's head: ranks have joined.
            line = process.stdout.readline()
        time.sleep(0.5)
        os.kill(ranks_of(process)[1], signal.SIGKILL)
        output, errors = process.communicate(timeout=60)
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    check("rank 1 " in errors and process.returncode not in (0, 2) and time.monotonic() - begun < 30, "a rank that is killed", done)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def check_machines(check, espalier, environment, folder):
    """Ranks in two namespaces of processes take each other for ranks of other machines: kernels within each, TCP between."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode:
        print("not run here: ranks on two machines, which takes unshare --pid")
        return
    trace = folder / "machines.json"

    def start(*words):
        """Ranks 0 and 1 here, 2 and 3 there."""
        job = [espalier, *RUN, "all_reduce", "--device", "cuda-ranks", "-p", "ranks=4", "-s", "64K", "-w", "1", "--world", "4",
               "--rendezvous", f"127.0.0.1:{free_port()}", "--timeout", "20", *words]
        first = shlex.join([*map(str, job), "--rank", "2"])
        second = shlex.join([*map(str, job), "--rank", "3"])
        commands = [[*job, "--rank", "0"], [*job, "--rank", "1"], [*apart, "sh", "-c", f"{first} & {second}; wait"]]
        own = {**environment, "ESPALIER_SECRET": "of this test alone"}
        return [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own) for command in commands]

    def end(processes):
        said = [process.communicate(timeout=100) for process in processes]
        return [subprocess.CompletedProcess("ranks", process.returncode, *text) for process, text in zip(processes, said)]

    done = end(start("-n", "2", "--trace", str(trace)))[0]
    check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, "ranks on two machines", done)
    check("tcp from rank 0 to 2 ranks" in done.stdout and "kernels carry out calls" in done.stdout, "what is between two machines", done)
    lanes = {event["tid"] for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"}
    check(len(lanes) >= 4, "a timeline of two machines", done)

    processes = start("-n", "100000")
    while "us" not in processes[0].stdout.readline():  # The table's head: ranks have joined.
        pass
    time.sleep(0.5)
    begun = time.monotonic()
    processes[2].kill()  # The machine is gone, with both of its ranks.
    for done in end(processes)[:2]:
        check(re.search(r"rank [23]\b", done.stderr) and done.returncode not in (0, 2), "a machine that is lost", done)
    check(time.monotonic() - begun < 30, "how long it takes to notice", done)


def check_ranks(check, run, folder):
    """--device cuda-ranks: each rank in a process of its own, with a fake driver of its own."""

    def run_ranks(collective, *words, **settings):
        return run(collective, "--device", "cuda-ranks", "-n", "2", "-w", "1", *words, **settings)

    for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"):
        ways = [("shm", 4, 2), ("shm", 3, 4)]  # Kernels carry out calls where each rank has a GPU.
        if collective in ("all_reduce", "all_gather"):
            ways += [("shm", 2, 1), ("tcp", 3, 4)]
        for transport, ranks, gpus in ways:
            done = run_ranks(collective, "-p", f"ranks={ranks}", "--transport", transport, "-b", "1K", "-e", "256K", "-f", "16",
                             "--json", gpus=gpus)
            check(done.returncode == 0, f"{collective} of {ranks} ranks by {transport} on {gpus}", done)
            if done.returncode:
                continue
            document = json.loads(done.stdout)
            check([row["size"] for row in document["results"]] == [1024, 16384, 262144], "sizes", done)
            check(all(row["wrong"] == 0 for row in document["results"]), "wrong elements", done)
            check(document["buffers"] == "device", "buffers", done)
            opens = all("device 'cuda' opens its memory" in place["reason"] for place in document["transports"])
            check(opens == (transport == "shm"), "what opens memory", done)
            by_kernels = [place["reason"].endswith("kernels carry out calls") for place in document["transports"]]
            check(all(by_kernels) == (transport == "shm" and ranks <= gpus), "what carries out calls", done)
    for settings, reason in (({"FAKE_CUDA_PEERS": "0"}, "device memory is staged: cannot open memory of another process on GPU"),
                             ({"FAKE_CUDA_IPC": "0"}, "same machine\n")):
        done = run_ranks("all_reduce", "-p", "ranks=3", "-s", "64K", **settings)
        check(done.returncode == 0 and reason in done.stdout and "# Out of bounds values : 0 OK" in done.stdout,
              f"staged: {settings}", done)
    check_kernels_of_ranks(check, run, run_ranks)
    trace = folder / "ranks.json"
    for gpus in (2, 4):  # By the host's copies, and by kernels.
        done = run_ranks("all_reduce", "-p", "ranks=3", "-s", "64K", "-d", "half", "-o", "avg", "--trace", str(trace), gpus=gpus)
        check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, "average of float16", done)
        check(("opens its memory\n" not in done.stdout) == (gpus == 4), "what carries out a recorded run", done)
        events = json.loads(trace.read_text())["traceEvents"]
        lanes = {event["args"]["lane"] for event in events if event["name"] == "thread_name"}
        spans = [event for event in events if event["ph"] == "X"]
        check(len(spans) >= 8 and lanes == {0, 1, 2}, "a timeline of all ranks", done)
        check(max(span["ts"] + span["dur"] for span in spans) < 60e6, "one clock for all ranks", done)
    done = run_ranks("all_reduce", "-p", "ranks=2", "-s", "64M", FAKE_CUDA_MEMORY="1000000")
    check("CUDA_ERROR_OUT_OF_MEMORY" in done.stderr and done.returncode not in (0, 2), "out of memory", done)
    done = run_ranks("all_reduce", "-p", "ranks=2", "-s", "256K", "--timeout", "5", FAKE_CUDA_FAIL="cuLaunchKernel:2:719")
    check("CUDA_ERROR_LAUNCH_FAILED" in done.stderr and done.returncode not in (0, 2), "a sticky error", done)
    begun = time.monotonic()
    done = run_ranks("all_reduce", "-p", "ranks=2", "-s", "64K", "--timeout", "3", FAKE_CUDA_HANG="1")
    check(done.returncode not in (0, 2) and "error" in done.stderr, "kernels that do not end", done)
    check(time.monotonic() - begun < 60, "how long it takes to give them up", done)  # 3 s, and two patiences of 2 s.
    done = run_ranks("all_reduce", "-p", "ranks=2", "-s", "4K", "--buffers", "private")
    check(done.returncode == 2 and "--buffers" in done.stderr, "buffers of the host's", done)


def main():
    espalier, fake, why_none = sys.argv[1:]
    failures = []

    def check(holds, what, done):
        if not holds:
            failures.append(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    def run(*words, gpus=2, **settings):
        environment = {**os.environ, "FAKE_CUDA_GPUS": str(gpus), **settings}
        if gpus:
            environment["LD_LIBRARY_PATH"] = fake
        device = [] if "--device" in words else ["--device", "cuda"]
        return subprocess.run([espalier, *RUN, *device, *words], capture_output=True, text=True, env=environment, timeout=120)

    with tempfile.TemporaryDirectory() as folder:
        if why_none:
            done = run("all_reduce", "-s", "4K")
            check(done.returncode == 3 and "built without its CUDA kernels" in done.stderr, "without kernels", done)
            print("\n".join(failures) or f"skipped: there are no kernels here ({why_none})")
            return 1 if failures else 3

        for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"):
            for ranks, gpus in ((2, 1), (4, 2), (8, 2), (3, 4)):
                done = run(collective, "-p", f"ranks={ranks}", "-b", "1K", "-e", "16K", "-f", "4", "-n", "2", "-w", "1",
                           "--chunk", "2K", "--json", gpus=gpus)
                check(done.returncode == 0, f"{collective} of {ranks} on {gpus}", done)
                if done.returncode:
                    continue
                document = json.loads(done.stdout)
                rows = document["results"]
                check([row["size"] for row in rows] == [1024, 4096, 16384], "sizes", done)
                check(all(row["wrong"] == 0 for row in rows), "wrong elements", done)
                check({place["transport"] for place in document["transports"]} == {"cuda"}, "transports", done)
                used = {place["reason"].split(" (")[0] for place in document["transports"]}
                alone = 1 if ranks <= gpus else 0  # Rank 0 itself is not in the list.
                check(len(used) == min(ranks, gpus) - alone, "GPUs in use", done)

        # With the blocks of the GPU that was measured, what took less is chosen: at these sizes packing and recursive were
        # slower than the ring (docs/gpu.md).
        done = run("all_reduce", "-p", "ranks=8", "-b", "1K", "-e", "16K", "-f", "4", "-n", "1", "-w", "0", "--json", gpus=1,
                   FAKE_CUDA_MULTIPROCESSORS="132")
        check(done.returncode == 0 and [row["algorithm"] for row in json.loads(done.stdout)["results"]] == ["ring"] * 3,
              "the choice for eight ranks on one GPU", done)

        trace = pathlib.Path(folder) / "trace.json"
        done = run("all_reduce", "-p", "ranks=4", "-s", "64K", "-d", "half", "-o", "avg", "-n", "2", "--trace", str(trace))
        check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, "average of float16", done)
        spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]
        check(len(spans) >= 12 and all(span["dur"] >= 0 for span in spans), "a timeline of all ranks", done)

        # The fake's kernels do bulk copies as late as they may: data is right where nothing is missing.
        for collective in ("all_reduce", "all_gather", "broadcast"):
            done = run(collective, "-p", "ranks=4", "-s", "4M", "-a", "tree" if collective == "broadcast" else "ring", "-n", "2",
                       "--bulk-copies")
            check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, f"{collective} by bulk copies", done)
        done = run("all_reduce", "-p", "ranks=2", "-s", "4M", "-a", "ring", "-n", "2", "--bulk-copies", "--device", "cuda-ranks")
        check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, "ranks in processes by bulk copies", done)
        in_ranks = ["--device", "cuda-ranks", "-p", "ranks=2"]
        for words, settings, code, reason in (
                ([], {"FAKE_CUDA_PTX_VERSION": "80"}, 3, "runs kernels compiled for sm_80, and bulk copies begin with sm_90"),
                (in_ranks, {"FAKE_CUDA_PTX_VERSION": "80"}, 3, "runs kernels compiled for sm_80, and bulk copies begin with sm_90"),
                ([], {"FAKE_CUDA_PEERS": "0"}, 2, "--bulk-copies: no kernel makes the copies here"),
                (in_ranks, {"FAKE_CUDA_PEERS": "0"}, 2, "--bulk-copies: no kernel makes the copies of rank "),
                (["--device", "cuda-copies"], {}, 2, "is of --device cuda and cuda-ranks, and this is cuda-copies"),
                (["--device", "cuda-ranks-copies"], {}, 2, "is of --device cuda and cuda-ranks, and this is cuda-ranks-copies"),
                (["--device", "host"], {}, 2, "is of --device cuda and cuda-ranks, and this is host")):
            done = run("all_reduce", "-s", "4K", "--bulk-copies", *words, **settings)
            check(done.returncode == code and reason in done.stderr, f"bulk copies: {reason}", done)

        done = run("all_reduce", "-p", "ranks=8", "-s", "4K", FAKE_CUDA_MULTIPROCESSORS="1", gpus=1)
        check("8 ranks need 8 thread blocks at a time, and the GPU runs 2" in done.stderr, "too many blocks", done)
        for setting, reason in (("FAKE_CUDA_PEERS", "cannot reach the memory of GPU"),
                                ("FAKE_CUDA_COOPERATIVE", "has no cooperative launches")):
            done = run("all_reduce", "-s", "4K", **{setting: "0"})
            check(done.returncode == 0 and reason in done.stdout and "# Out of bounds values : 0 OK" in done.stdout,
                  f"by copies: {reason}", done)
        done = run("all_reduce", "-s", "4K", "--trace", str(trace), FAKE_CUDA_PEERS="0")
        check(done.returncode == 2 and "have no times" in done.stderr, "a timeline of copies", done)
        done = subprocess.run([espalier, "run", "one-host", "reduce_scatter", "-p", "ranks=3", "--device", "cuda-copies", "-s", "12K"],
                              capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": fake})
        check(done.returncode == 0 and "as asked for" in done.stdout, "copies as asked for", done)
        done = run("all_reduce", "-s", "64M", FAKE_CUDA_MEMORY="1000000")
        check("CUDA_ERROR_OUT_OF_MEMORY" in done.stderr and done.returncode not in (0, 2), "out of memory", done)
        done = run("all_reduce", "-s", "4K", FAKE_CUDA_FAIL="cuLaunchCooperativeKernel:3:719")
        check("CUDA_ERROR_LAUNCH_FAILED" in done.stderr and done.returncode not in (0, 2), "a sticky error", done)
        check_ranks(check, run, pathlib.Path(folder))
        check_a_killed_rank(check, espalier, {**os.environ, "FAKE_CUDA_GPUS": "4", "LD_LIBRARY_PATH": fake})
        check_machines(check, espalier, {**os.environ, "FAKE_CUDA_GPUS": "4", "LD_LIBRARY_PATH": fake}, pathlib.Path(folder))
        check_against_simulation(check, run, espalier, pathlib.Path(folder))
        check_gpu_check(check, espalier, fake, pathlib.Path(folder))
        done = run("all_reduce", "-s", "4K", "--transport", "tcp")
        check(done.returncode == 2 and "--transport" in done.stderr, "an option of processes", done)
        done = subprocess.run([espalier, "run", "one-host", "all_reduce", "--device", "tpu"], capture_output=True, text=True)
        check(done.returncode == 2 and "not one of host, cuda" in done.stderr, "another device", done)
        if not has_driver():
            done = run("all_reduce", "-s", "4K", gpus=0)
            check("no CUDA driver: libcuda.so.1" in done.stderr and done.returncode == 3, "no driver", done)

    print("\n".join(failures) or "all as expected")
    return 1 if failures else 0


sys.exit(main())
