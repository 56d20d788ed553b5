"""Every verb gives the same answer to the same question: what a collective of a size takes on a machine by `auto`.

The questions are of links alone and of the machine's profile; whole, with a lost part, stored and as parts that stand for all.
Of each machine and profile one collective; with --all every one.
"""

import csv
import io
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import espalier

COMMAND = os.environ["ESPALIER"]
MACHINES = [("dgx1v", ""), ("dgx1v-degraded", ""), ("mi250", ""), ("dgx-a100-x2", ""), ("dgx-h100", ""), ("dgx-h100-x4", "box0.nic0"),
            ("gb200-nvl72", "")]
COLLECTIVES = ["all_gather", "all_reduce", "all_to_all"]
SIZES = ["16K", "1M"]
CLOSE = 1e-6  # Of a time: what rounding to a float's digits leaves.


def ask(*arguments):
    result = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def answers(machine, without, collective, size, profile):
    """Of each verb the time in seconds."""
    how = ["--profile", profile] if profile else []
    lost = ["--without", without] if without else []
    found = {}
    simulated = json.loads(ask("simulate", machine, collective, "-s", size, "-a", "auto", "--json", *how, *lost))
    found["simulate"] = simulated["results"][-1]["time"]
    regions = json.loads(ask("tune", machine, collective, "-b", size, "-e", size, "--tolerance", "0%", "--json", *how, *lost))["regions"]
    found["tune"] = regions[0]["from"]["time"]
    plan = json.loads(ask("plan", machine, collective, "-s", size, "--json", *how, *lost))
    found["plan"] = min(row["time"] for row in plan["candidates"] if row.get("time"))
    found["explain"] = json.loads(ask("explain", machine, collective, "-s", size, "--json", *how, *lost))["simulation"]["time"]
    found["report"] = time_in_report(ask("report", machine, collective, "-s", size, "-a", "auto", "-o", "-", *how, *lost), found["simulate"])
    profiles = ["--profiles", profile] if profile else []
    row = list(csv.DictReader(io.StringIO(ask("sweep", machine, "-c", collective, "-a", "auto", "-s", size, *profiles, *lost))))[-1]
    found["sweep"] = float(row["time_us"]) * 1e-6
    found["Python"] = time_in_python(machine, without, collective, size, simulated.get("profile"))
    if without:
        return found
    designs = json.loads(ask("compare-designs", machine, "dgx2", "-c", collective, "-s", size, "--json", *how))["designs"]
    found["compare-designs"] = designs[0]["collectives"][0]["results"][0]["time"]
    if profile == "ideal":
        found["scenario"] = time_of_scenario(machine, collective, size)
    return found


def time_of_scenario(machine, collective, size):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "one.yaml"
        file.write_text(f"espalier_scenario: 1\nname: one\ntopology: {machine}\ncollectives:\n"
                        f"  - {{name: all, collective: {collective}, size: {size}iB, algorithm: auto}}\n", encoding="utf-8")
        return json.loads(ask("simulate", "--scenario", str(file), "--profile", "ideal", "--json"))["calls"][0]["mean_time"]


def time_in_python(machine, without, collective, size, profile):
    topology = espalier.Topology.load(machine)
    topology = topology.without(without) if without else topology
    plan = espalier.plan(topology, collective, size=size, profile=profile)
    return espalier.simulate(plan, size, profile=profile).time


def time_in_report(page, near):
    """What a page shows of its one run, in hundredths of a microsecond: another time where it rounds to that."""
    shown = re.search(r"Predicted times and bus bandwidths.*?</table>", page, re.S).group()
    time = float(re.findall(r">([\d.]+)<", shown)[-3])
    return near if abs(time - near * 1e6) <= 0.00501 else time * 1e-6


def are_unlike(found):
    return max(found.values()) > (1 + CLOSE) * min(found.values())


def answers_past_stored_plans():
    """Of a machine whose plans are not written down: one rank's part stands for all."""
    with tempfile.TemporaryDirectory() as folder:
        machine = str(pathlib.Path(folder) / "boxes.yaml")
        pathlib.Path(machine).write_text(ask("topo", "gen", "rail-boxes", "--boxes", "130"), encoding="utf-8")
        found = {}
        for verb, arguments, find in (
                ("simulate", ("-s", "256M", "-a", "auto"), lambda document: document["results"][-1]["time"]),
                ("tune", ("-b", "256M", "-e", "256M"), lambda document: document["regions"][0]["from"]["time"]),
                ("plan", ("-s", "256M"), lambda document: min(row["time"] for row in document["candidates"] if row.get("time")))):
            found[verb] = find(json.loads(ask(verb, machine, "all_gather", *arguments, "--profile", "ideal", "--json")))
        rows = csv.DictReader(io.StringIO(ask("sweep", machine, "-c", "all_gather", "-a", "auto", "-s", "256M", "--profiles", "ideal")))
        found["sweep"] = float(list(rows)[-1]["time_us"]) * 1e-6
        return found


def answers_of_nccl(machine, collective, size):
    """What NCCL takes by the era of the machine's profile."""
    simulated = json.loads(ask("simulate", machine, collective, "-s", size, "-a", "nccl", "--json"))["results"][-1]["time"]
    row = list(csv.DictReader(io.StringIO(ask("sweep", machine, "-c", collective, "-a", "nccl", "-s", size))))[-1]
    return {"simulate": simulated, "sweep": float(row["time_us"]) * 1e-6}


def main():
    unlike = 0
    questions = [(machine, collective, profile, SIZES[(i + j) % len(SIZES)])
                 for (i, machine), (j, collective), (k, profile) in itertools.product(
                     enumerate(MACHINES), enumerate(COLLECTIVES), enumerate(["ideal", ""]))
                 if "--all" in sys.argv or (i + j + k) % len(COLLECTIVES) == 0]
    for (machine, without), collective, profile, size in questions:
        found = answers(machine, without, collective, size, profile)
        if are_unlike(found):
            unlike += 1
            print(f"{machine} {'without ' + without if without else ''} {collective} {size} {profile or 'its profile'}: {found}")
    found = answers_past_stored_plans()
    if are_unlike(found):
        unlike += 1
        print(f"1,040 ranks: {found}")
    of_nccl = [("aws-p4d-x2", "all_reduce", "16M"), ("dgx1v", "all_gather", "1M"), ("dgx-h100-x4", "reduce_scatter", "64M")]
    for question in of_nccl:
        found = answers_of_nccl(*question)
        if are_unlike(found):
            unlike += 1
            print(f"nccl, {' '.join(question)}: {found}")
    print(f"{len(questions) + 1 + len(of_nccl)} questions, {unlike} with unlike answers")
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
