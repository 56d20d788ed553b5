#!/usr/bin/env python3
"""`espalier diagnose` names each kind of fault that is of no single part, from tables simulated with it:

    tests/accuracy/fault_kinds_test.py ESPALIER [KIND ...]

A table is simulated with the fault and 0.5 % of noise, then diagnosed on the machine as it should be. GPUDirect off is simulated on a machine whose NICs hang on the
processor, written here. `may` are names that make the same times. Also counters beside a table: the part that they speak against comes first of those that are alike.
"""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

HOSTS = """
espalier: 1
name: hosts
profile: nccl-ampere
classes:
  nvlink3: {bandwidth: 300 GB/s, latency: 350 ns}
  pcie4: {bandwidth: 31.5 GB/s, latency: 250 ns}
  pcie4-up: {bandwidth: %(up)s GB/s, latency: 250 ns}
  hdr: {bandwidth: 200 Gbit/s, latency: 600 ns}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes:
      - {id: "gpu[0-3]", kind: gpu}
      - {id: nvswitch, kind: switch}
      - {id: "plx[0-1]", kind: pcie}
      - {id: cpu, kind: cpu, rank: false}
      - {id: "nic[0-1]", kind: nic}
    links:
      - {all: ["gpu[0-3]", nvswitch], class: nvlink3}
      - {all: ["gpu[0-1]", plx0], class: pcie4}
      - {all: ["gpu[2-3]", plx1], class: pcie4}
      - {all: ["plx[0-1]", cpu], class: pcie4-up}
      - %(nics)s
      - {all: ["nic[0-1]", leaf], class: hdr}
"""
DIRECT = {"up": "31.5", "nics": '{zip: ["nic[0-1]", "plx[0-1]"], class: pcie4}'}
STAGED = {"up": "31.5", "nics": '{all: ["nic[0-1]", cpu], class: pcie4}'}

# Machine, collectives, what is simulated with it, and the names that are right.
KINDS = {
    "all PCIe at half": ("dgx-a100-x2", ["all_reduce", "all_to_all"], ["--slow", "pcie4=0.5"], ["pcie4", "GPUDirect off"]),
    "GPUDirect off": (HOSTS % DIRECT, ["all_reduce", "all_to_all"], HOSTS % STAGED, ["GPUDirect off"]),
    "NVLS off": ("dgx-h100", ["all_reduce"], ["-p", "nvls=false"], ["NVLS off"]),
    "PXN off": ("dgx-h100-x4", ["all_reduce", "all_to_all"], {"all_to_all": "nccl/p2p"}, ["PXN off"]),
    "trees alone": ("dgx-a100-x2", ["all_reduce", "all_gather"], {"all_reduce": "nccl/tree"}, ["trees alone"]),
    "rings alone": ("dgx-a100-x2", ["all_reduce"], {"all_reduce": "nccl/ring"}, ["rings alone"]),
    "Simple alone": ("dgx-a100", ["all_reduce", "all_gather"], ["--protocol", "simple"], ["Simple alone"]),
    "a rail": ("dgx-a100-x2", ["all_reduce", "all_to_all"], ["--slow", "box[0-1].nic3=0.4"], ["box[0-1].nic3"]),
    "a switch": ("dgx-a100-x2", ["all_reduce", "all_to_all"], ["--slow", "rail1=0.4"], ["rail1"]),
    "a host": ("dgx-a100-x2", ["all_reduce", "all_to_all"], ["--slow", "box1=0.5"], ["box1"]),
    "a slower host": ("dgx-a100-x2", ["all_reduce", "all_to_all"], ["--slow", "box1=0.4"], ["box1"]),
}
NVLINK = """GPU {gpu}: NVIDIA A100-SXM4-80GB (UUID: GPU-0)
\t Link 0: Replay Errors: 0
\t Link 0: CRC Errors: {errors}
\t Link 1: Replay Errors: 0
\t Link 1: CRC Errors: 0
\t Link 2: Replay Errors: 0
\t Link 2: CRC Errors: 0
"""


class Trial:
    def __init__(self, espalier, folder):
        self.espalier, self.folder = espalier, pathlib.Path(folder)

    def run(self, *arguments):
        done = subprocess.run([self.espalier, "--json", *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(map(str, arguments))}: {done.stderr}"
        return json.loads(done.stdout)

    def machine(self, text, name):
        if "\n" not in text:
            return text
        path = self.folder / name
        path.write_text(text)
        return path

    def table(self, machine, collective, algorithm="nccl", words=()):
        """A noisy table, which does not say which algorithm ran."""
        made = self.run("simulate", machine, collective, "-a", algorithm, "-b", "64K", "-e", "1G", "-f", "4", *words)
        noise = random.Random(collective)
        for row in made["results"]:
            row["time"] *= math.exp(noise.gauss(0, 0.005))
            row["algorithm"] = "nccl"
        path = self.folder / f"{collective}.json"
        path.write_text(json.dumps(made))
        return path

    def diagnose_kind(self, kind):
        of, collectives, change, right = KINDS[kind]
        machine, faulty, algorithms, words = self.machine(of, "machine.yaml"), None, {}, ()
        if isinstance(change, dict):
            algorithms = change
        elif isinstance(change, str):
            faulty, words = self.machine(change, "faulty.yaml"), ["--slow", "pcie4-up=0.5"]  # The ways up carry both legs.
        else:
            words = change
        files = [self.table(faulty or machine, each, algorithms.get(each, "nccl"), words) for each in collectives]
        suspects = self.run("diagnose", machine, *files)["suspects"]
        names = [name for suspect in suspects[:1] for name in (suspect["part"], *suspect["same_predictions"])]
        assert any(suspect["part"] in names and set(right) & set(suspect["alike"]) for suspect in suspects), f"{kind}: {[(s['part'], s['kind'], round(s['probability'], 2)) for s in suspects]}"
        assert suspects[0]["advice"]

    def diagnose_with_counters(self):
        """One cable of eight is slow, and a table of all ranks does not tell which."""
        table = self.table("dgx-a100", "all_reduce", words=["--slow", "gpu5-nvswitch=0.5"])
        counters = self.folder / "nvlink.txt"
        counters.write_text("".join(NVLINK.format(gpu=gpu, errors=891 if gpu == 5 else 0) for gpu in range(8)))
        with_them = self.run("diagnose", "dgx-a100", table, counters)
        first = with_them["suspects"][0]
        assert first["part"] == "gpu5-nvswitch" and first["alike"] == ["gpu5-nvswitch"], first
        assert "891 CRC Errors" in first["evidence"], first["evidence"]
        assert with_them["counters"] == [{"part": "gpu5-nvswitch", "says": "link 0: 891 CRC Errors"}]
        counters.write_text("".join(NVLINK.format(gpu=gpu, errors=891 if gpu in (5, 9999) else 0) for gpu in (0, 1, 5, 9999)))
        assert self.run("diagnose", "dgx-a100", table, counters)["unknown_devices"] == ["GPU 9999"]
        said = subprocess.run([self.espalier, "diagnose", "dgx-a100", table, counters], capture_output=True, text=True, check=True).stdout
        assert "Left out: counters of 1 device, which dgx-a100 does not have: GPU 9999." in said, said
        healthy = self.run("diagnose", "dgx-a100", self.table("dgx-a100", "all_reduce"), counters)
        assert healthy["healthy"] and not healthy["suspects"] and healthy["counters"], "errors that no time shows are no fault"


def main():
    kinds = sys.argv[2:] or [*KINDS, "counters"]
    failed = 0
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(sys.argv[1], folder)
            try:
                trial.diagnose_with_counters() if kind == "counters" else trial.diagnose_kind(kind)
            except AssertionError as error:
                failed += 1
                print(f"{kind}: {error}", flush=True)
    print(f"{len(kinds) - failed} of {len(kinds)} kinds are named")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
