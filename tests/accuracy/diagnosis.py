#!/usr/bin/env python3
"""How often `espalier diagnose` names what is wrong: tables with faults of known seeds, 2 % of noise on every time.

    tests/accuracy/diagnosis.py ESPALIER [--seeds FROM TO] [--machines NAMES] [--faults 1|2] [--kinds KINDS] [--keep FOLDER] [--at-least PART]

A fault that no row shows (none is longer or shorter by over 3 %) counts as right when nothing is named. The same is counted by what all rows show together:
5 standard deviations of the noise, as an engineer sees a per cent at many sizes; --at-least is of the former. What is named is right when the first suspect is the
part itself, one that no test tells from it, or says that the measurements would be the same. With two faults both parts must be among the first four; tables
that would show no difference without one of them are passed over. Machines are names or files. KINDS are what is drawn from (slow, gone, late, none; one that
stands twice is drawn twice as often). Tables that FOLDER has are not made again. Exit 1 when less than --at-least is right.

A miss is counted as not tellable when what is named in the truth's place fits the noisy times better than the truth at its own rates does, by more than a fit of these rates would
gain (a square of one standard deviation each): no method that goes by what was measured could then name the truth.
"""
import argparse
import collections
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

MACHINES = ["dgx1v-nvlink", "dgx1v", "dgx2", "dgx-a100", "mi300x", "dgx-a100-x2", "aws-p4d-x2", "dgx-h100-x4"]
COLLECTIVES = ["all_reduce", "all_to_all"]
KINDS = ["slow", "slow", "slow", "gone", "late", "none"]
NOISE, SHOWS, VISIBLE = 0.02, 0.03, 5
CRITERIA = ("a row by 3 %", "all rows by 5 sigma")


class Fault:
    """One thing that is wrong: a part, as words of the command line, or a rank that is so many seconds late."""

    def __init__(self, kind, part=None, words=(), delay=0.0):
        self.kind, self.part, self.words, self.delay = kind, part, list(words), delay

    def is_named(self, first, suspects):
        """Whether one of the first suspects is it, is of its class, or says of such a one that it would measure the same."""
        if self.kind == "late":
            return any(suspect["kind"] == "late" for suspect in first)
        names = [name for suspect in first for name in (suspect["part"], *suspect["same_predictions"])]
        return any(self.part in suspect["alike"] and suspect["part"] in names for suspect in suspects)


class Trial:
    """One machine with one fault or two, and what is said of it."""

    def __init__(self, options, folder, machine, seed):
        self.espalier, self.folder, self.machine = options.espalier, folder, machine
        self.random = random.Random(seed)
        self.noise = 0.0  # Squares of what was added to the truth, in standard deviations.
        kinds = options.kinds.split(",")
        if options.faults == 2:
            self.kind = "two"
            self.faults = self.two_faults([kind for kind in kinds if kind != "none"])
        else:
            self.kind = self.random.choice(kinds)
            self.faults = [] if self.kind == "none" else [self.fault(self.kind)]

    def run(self, *arguments):
        done = subprocess.run([self.espalier, "--json", *arguments], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def failures(self):
        return self.run("topo", "degrade", self.machine, "all_reduce", "--bound-only")["failures"]

    def two_faults(self, kinds):
        """Of parts that are not alike, where the machine has such; one rank at most is late."""
        drawn = [self.random.choice(kinds) for _ in range(2)]
        if drawn == ["late", "late"]:
            drawn[1] = "slow"
        failures = self.failures()
        places = self.random.sample(failures, 2) if len(failures) > 1 else failures * 2
        return [self.fault(kind, place["alike"]) for kind, place in zip(drawn, places)]

    def fault(self, kind, parts=None):
        if kind == "late":
            return Fault(kind, delay=10 ** self.random.uniform(-4.3, -2.5))
        if parts is None:
            whole = ("switch", "pcie", "cpu")  # Without one of these ranks are cut off, as a rule.
            parts = [name for failure in self.failures() for name in failure["alike"] if kind == "slow" or failure["of"] not in whole]
        part = self.random.choice(parts)
        rate = self.random.uniform(0.25, 0.75)
        return Fault(kind, part, ["--slow", f"{part}={rate:.3f}"] if kind == "slow" else ["--without", part])

    def text(self):
        late = [f"late by {fault.delay * 1e6:.0f} us" for fault in self.faults if fault.kind == "late"]
        return " ".join(self.words(self.faults) + late) or self.kind

    def words(self, faults):
        return [word for fault in faults for word in fault.words]

    def simulate(self, collective, faults):
        """The table of a collective with these faults; None where it does not run."""
        made = self.run("simulate", self.machine, collective, "-a", "nccl", "-b", "64K", "-e", "1G", "-f", "4", *self.words(faults))
        for row in made["results"] if made else []:
            row["time"] += sum(fault.delay for fault in faults)
        return made

    def tables(self):
        """As measure, made once for each folder."""
        known = pathlib.Path(self.folder, "trial.json")
        if not known.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            files, shows = self.measure()
            known.write_text(json.dumps({"machine": self.machine, "kind": self.kind, "damage": self.words(self.faults), "files": list(map(str, files)), "shows": shows, "noise": self.noise,
                                         "parts": [[fault.kind, fault.part, fault.delay] for fault in self.faults]}))
        trial = json.loads(known.read_text())
        self.noise = trial["noise"]
        return trial["files"], dict(zip(CRITERIA, trial["shows"]))

    def measure(self):
        """The tables' files; none where the collective does not run with that fault. Whether each fault shows, by each criterion."""
        files = []
        most, squares = [0.0] * len(self.faults), [0.0] * len(self.faults)
        for collective in COLLECTIVES:
            faulty = self.simulate(collective, self.faults)
            less = [self.simulate(collective, [other for other in self.faults if other is not fault]) for fault in self.faults]
            if faulty is None or None in less:
                return [], [False] * len(CRITERIA)
            for number, row in enumerate(faulty["results"]):
                ratios = [row["time"] / simulated["results"][number]["time"] for simulated in less]
                most = [max(old, abs(ratio - 1)) for old, ratio in zip(most, ratios)]
                squares = [old + (math.log(ratio) / NOISE) ** 2 for old, ratio in zip(squares, ratios)]
                drawn = self.random.gauss(0, NOISE)
                self.noise += (drawn / NOISE) ** 2
                row["time"] *= math.exp(drawn)
            files.append(pathlib.Path(self.folder, f"{collective}.json"))
            files[-1].write_text(json.dumps(faulty))
        return files, [min(most, default=0) > SHOWS, min(squares, default=0) >= VISIBLE**2]

    def squares_with(self, faults, files):
        """How far the tables are from what these faults make, as `noise`; infinite where they do not run."""
        sum_of = 0.0
        for file in files:
            measured = json.loads(pathlib.Path(file).read_text())["results"]
            predicted = self.simulate(pathlib.Path(file).stem, faults)
            if predicted is None:
                return math.inf
            pairs = zip(measured, predicted["results"])
            sum_of += sum((math.log(row["time"] / other["time"]) / NOISE) ** 2 for row, other in pairs)
        return sum_of

    def is_tellable(self, diagnosis, files):
        """Whether the truth fits as well as what was named, or as nothing at all."""
        rates = sum(fault.kind in ("slow", "late") for fault in self.faults)
        return self.squares_with(named_faults(diagnosis), files) > self.noise - rates

    def is_right(self, diagnosis, shows):
        suspects = diagnosis["suspects"]
        if not shows or not suspects:
            return not shows and not suspects
        if self.kind == "two":
            return all(fault.is_named(suspects[:4], suspects) for fault in self.faults)
        [fault] = self.faults
        return fault.is_named(suspects[:1], suspects)


def named_faults(diagnosis):
    """What the first suspect says is wrong, with what it is together with."""
    if not diagnosis["suspects"]:
        return []
    first = diagnosis["suspects"][0]
    if first["kind"] == "setting":
        return [Fault("setting", first["part"], ["--without", "what no machine has"])]
    faults = [Fault("late", delay=first["delay"])] if first["kind"] == "late" else []
    if first["kind"] == "slow":
        faults.append(Fault("slow", first["part"], ["--slow", f"{first['part']}={first['rate']:.4f}"]))
    if first["kind"] == "gone":
        faults.append(Fault("gone", first["part"], ["--without", first["part"]]))
    other = first["together_with"] or ""
    if slow := re.fullmatch(r"(.+) at (\d+) % of its rate", other):
        faults.append(Fault("slow", slow[1], ["--slow", f"{slow[1]}={int(slow[2]) / 100}"]))
    if gone := re.fullmatch(r"(.+) gone", other):
        faults.append(Fault("gone", gone[1], ["--without", gone[1]]))
    if late := re.fullmatch(r"a rank that starts ([\d.]+) (us|ms|s) late", other):
        faults.append(Fault("late", delay=float(late[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[late[2]]))
    return faults


def try_all(options, folder):
    """How many of each criterion and kind were tried, how many of these were right, and how many of the others no test tells."""
    machines = options.machines.split(",")
    right, tried, open_ones = collections.Counter(), collections.Counter(), collections.Counter()
    for seed in range(*options.seeds):
        trial = Trial(options, folder / f"{options.faults}-{seed}", machines[seed % len(machines)], seed)
        files, shows = trial.tables()
        counted = [criterion for criterion in CRITERIA if options.faults == 1 or shows[criterion]]
        if not files or not counted:
            continue
        diagnosis = trial.run("diagnose", trial.machine, *files)
        wrong_by = []
        for criterion in counted:
            kind = trial.kind if shows[criterion] or trial.kind == "none" else "unseen"
            is_right = diagnosis is not None and trial.is_right(diagnosis, shows[criterion])
            tried[criterion, kind] += 1
            right[criterion, kind] += is_right
            if not is_right:
                wrong_by.append(criterion)
        if wrong_by:
            is_tellable = diagnosis is None or trial.is_tellable(diagnosis, files)
            for criterion in wrong_by if not is_tellable else []:
                open_ones[criterion, trial.kind if shows[criterion] or trial.kind == "none" else "unseen"] += 1
            said = "failed" if diagnosis is None else [(s["part"], s["kind"], round(s["probability"], 2)) for s in diagnosis["suspects"][:4]]
            print(f"seed {seed}: {trial.machine} {trial.text()}: {said} (wrong by {', '.join(wrong_by)}{'' if is_tellable else '; not tellable'})", flush=True)
    return tried, right, open_ones


def total(counts, criterion):
    return sum(count for (of, _), count in counts.items() if of == criterion)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("espalier")
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 200])
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--faults", type=int, choices=[1, 2], default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--at-least", type=float, default=0.95)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tried, right, open_ones = try_all(options, options.keep or pathlib.Path(scratch))
    print("| fault | " + " | ".join(f"{criterion}: tables | right | not tellable" for criterion in CRITERIA) + " |\n|---|---|---|---|---|---|---|")
    for kind in ("two",) if options.faults == 2 else ("slow", "gone", "late", "none", "unseen"):
        print(f"| {kind} | " + " | ".join(f"{tried[criterion, kind]} | {right[criterion, kind]} | {open_ones[criterion, kind]}" for criterion in CRITERIA) + " |")
    print("| all | " + " | ".join(f"{total(tried, criterion)} | {total(right, criterion)} | {total(open_ones, criterion)}" for criterion in CRITERIA) + " |")
    return 0 if total(right, CRITERIA[0]) >= options.at_least * total(tried, CRITERIA[0]) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
