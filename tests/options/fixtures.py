"""Inputs for tests of the command line: small files, made by the command itself, in a folder of their own."""
import os
import pathlib
import subprocess

CLUSTER = """espalier: 1
name: cluster
parameters: {gpus: 4, rate: 20}
classes:
  port: {bandwidth: "${rate} GB/s", latency: 1 us}
  bridge: {bandwidth: 40 GB/s, latency: 300 ns}
  extra: {bandwidth: 5 GB/s, latency: 2 us}
nodes:
  - {id: "gpu[0-${gpus - 1}]", kind: gpu}
  - {id: switch, kind: switch}
links:
  - {all: ["gpu[0-${gpus - 1}]", switch], class: port}
  - {between: [gpu0, gpu1], class: bridge}
  - {all: ["gpu[1-3]", switch], class: extra}
"""
SCENARIO = """espalier_scenario: 1
name: job
topology: cluster.yaml
jitter: {hops: 0.05}
collectives:
  - {name: gradients, collective: all_reduce, size: 1 MiB, repeat: 3}
"""
TRAINING = """espalier_scenario: 1
name: step
topology: cluster.yaml
jitter: {hops: 0.05}
training: {layers: 4, hidden: 256, heads: 8, sequence: 128, batch: 16, flops: 100 TFLOP/s, utilisation: 1, tensor: 2, memory: 1 GB}
"""
SWEEP = """topologies: [cluster.yaml]
collectives: [all_gather]
sizes: [4K]
algorithms: [ring]
"""
# An nccl-tests table that names neither its collective nor its algorithm.
NCCL = """#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    150.0    6.99   10.49      0
     4194304       1048576     float     sum      -1    500.0    8.39   12.58      0
    16777216       4194304     float     sum      -1   1900.0    8.83   13.25      0
"""
UNEQUAL = "# Collective test starting: alltoallv_perf\n" + "".join(
    f"#  Rank  {rank} Group  0 Pid  7 on  host device  {rank} [0000:0f:00] GPU\n" for rank in range(4)) + """\
     1048576        262144     float    none      -1    100.0   10.49    7.86      0
"""
# What nvidia-smi topo -m prints of two GPUs and a NIC.
MATRIX = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tPIX\n"
# The same below an NVSwitch, with two NICs.
SWITCHED = "\tGPU0\tGPU1\tGPU2\tNIC0\tNIC1\n" + "".join(
    f"GPU{row}\t" + "\t".join("X" if column == row else "NV12" for column in range(3)) + "\tPIX\tPIX\n" for row in range(3))
# A ring as NCCL writes it.
RINGS = '<graphs version="1"><graph id="0" pattern="4"><channel>' + "".join(f'<gpu dev="{gpu}"/>' for gpu in (0, 2, 3, 1)) + "</channel></graph></graphs>"
# A sysfs of two GPUs below the one NUMA node.
SYSFS = {f"machine/sys/{name}": text for name, text in {
    "devices/system/node/node0/cpulist": "0-7",
    **{f"bus/pci/devices/0000:0{bus}:00.0/{key}": value for bus in (1, 2) for key, value in {
        "class": "0x030200", "vendor": "0x10de", "numa_node": "0", "max_link_speed": "16.0 GT/s PCIe", "current_link_width": "16"}.items()},
}.items()}
COMMANDS = [
    "plan cluster.yaml all_reduce -a ring -s 1M -o plan.json",
    "export plan.json --as msccl > plan.xml",
    "plan cluster.yaml all_reduce -a packing -s 1M -o packing.json",
    "plan cluster.yaml all_reduce -a tree -s 1M -o tree.json",
    "--json simulate cluster.yaml all_reduce -a ring,tree -b 64K -e 16M -f 256 > predicted.json",
    "--json simulate cluster.yaml all_reduce -a ring,tree -b 64K -e 16M -f 256 -p rate=16 > measured.json",
    "simulate cluster.yaml all_reduce -a ring -s 1M --trace predicted-trace.json",
    "simulate cluster.yaml all_reduce -a ring -s 1M -p rate=16 --trace measured-trace.json",
    "sweep cluster.yaml -a ring -s 1K -o one.csv",
    "sweep --scenario job.yaml -o steps.csv",
    "sweep cluster.yaml -a ring -s 4K -o two.csv",
]


def environment(espalier):
    return {"PATH": f"{espalier.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb", "CI": "1"}


def make(folder, espalier):
    """Writes all inputs into the folder."""
    folder = pathlib.Path(folder)
    files = {"cluster.yaml": CLUSTER, "other.yaml": CLUSTER.replace("rate: 20", "rate: 11"), "job.yaml": SCENARIO, "step.yaml": TRAINING,
             "sweep.yaml": SWEEP, "perf.log": NCCL, "unequal.log": UNEQUAL, "questions.jsonl": '{"product": {"rows": 512, "columns": 512, "depth": 512}}\n', "exchanges.csv": "tokens,ranks\n64,2\n128,4\n", "matrix.txt": MATRIX, "switched.txt": SWITCHED, "rings.xml": RINGS, "addresses.json": '[{"route": 0, "connect": "127.0.0.1"}]'}
    for name in SYSFS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name, text in {**files, **SYSFS}.items():
        (folder / name).write_text(text)
    for command in COMMANDS:
        subprocess.run(["bash", "-c", "espalier " + command], cwd=folder, env=environment(espalier), check=True,
                       capture_output=True, timeout=60)
