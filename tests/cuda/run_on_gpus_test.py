#!/usr/bin/env python3
"""`espalier run --device cuda` on the GPUs of a fake driver: results, rows, timeline; and what is refused.

Usage: run_on_gpus_test.py ESPALIER FOLDER_OF_FAKE_DRIVER WHY_NO_KERNELS. Exits 3 where there are no kernels.
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

RUN = ["run", "one-host", "--device", "cuda"]


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
        return subprocess.run([espalier, *RUN, *words], capture_output=True, text=True, env=environment, timeout=120)

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

        trace = pathlib.Path(folder) / "trace.json"
        done = run("all_reduce", "-p", "ranks=4", "-s", "64K", "-d", "half", "-o", "avg", "-n", "2", "--trace", str(trace))
        check(done.returncode == 0 and "# Out of bounds values : 0 OK" in done.stdout, "average of float16", done)
        spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("ph") == "X"]
        check(len(spans) >= 12 and all(span["dur"] >= 0 for span in spans), "a timeline of all ranks", done)

        done = run("all_reduce", "-p", "ranks=8", "-s", "4K", FAKE_CUDA_MULTIPROCESSORS="1", gpus=1)
        check("8 ranks need 8 thread blocks at a time, and the GPU runs 2" in done.stderr, "too many blocks", done)
        done = run("all_reduce", "-s", "4K", FAKE_CUDA_PEERS="0")
        check("cannot reach the memory of GPU" in done.stderr, "no peer access", done)
        done = run("all_reduce", "-s", "64M", FAKE_CUDA_MEMORY="1000000")
        check("CUDA_ERROR_OUT_OF_MEMORY" in done.stderr and done.returncode not in (0, 2), "out of memory", done)
        done = run("all_reduce", "-s", "4K", FAKE_CUDA_FAIL="cuLaunchCooperativeKernel:3:719")
        check("CUDA_ERROR_LAUNCH_FAILED" in done.stderr and done.returncode not in (0, 2), "a sticky error", done)
        report = pathlib.Path(folder) / "report.md"
        gpu_check = pathlib.Path(__file__).resolve().parents[2] / "scripts/gpu-check"
        done = subprocess.run([sys.executable, gpu_check, "--quick", "--espalier", espalier, "--report", report], text=True,
                              capture_output=True, timeout=200, env={**os.environ, "LD_LIBRARY_PATH": fake})
        check(done.returncode == 0 and "8 right, 0 wrong" in report.read_text() and "copy of 64 KiB" in report.read_text(),
              "gpu-check", done)
        done = run("all_reduce", "-s", "4K", "--transport", "tcp")
        check(done.returncode == 2 and "--transport" in done.stderr, "an option of processes", done)
        done = subprocess.run([espalier, "run", "one-host", "all_reduce", "--device", "tpu"], capture_output=True, text=True)
        check(done.returncode == 2 and "neither host nor cuda" in done.stderr, "another device", done)
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            done = run("all_reduce", "-s", "4K", gpus=0)
            none = subprocess.run([sys.executable, gpu_check], text=True, capture_output=True)
            check(none.returncode == 3 and "gpu-check: no CUDA driver" in none.stderr, "gpu-check without a GPU", none)
            check("no CUDA driver: libcuda.so.1" in done.stderr and done.returncode == 3, "no driver", done)

    print("\n".join(failures) or "all as expected")
    return 1 if failures else 0


sys.exit(main())
