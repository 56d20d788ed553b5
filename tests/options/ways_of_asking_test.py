#!/usr/bin/env python3
"""The same question asked in the ways that shells and people have: ways_of_asking_test.py ESPALIER REPOSITORY

Inputs through pipes, several sizes, ranges of what fails, machines side by side, folders that are missing, and what is said
where an answer is not what it looks like.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ESPALIER, REPOSITORY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def shell(line, folder=None):
    return subprocess.run(["bash", "-c", line if line.startswith("export") else line.replace("espalier", str(ESPALIER), 1)], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=250)


class Asking(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def ask(self, line, code=0):
        done = shell(line, self.folder.name)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{line}: {done.stderr}")
        return done

    def test_an_input_through_a_pipe_is_the_input(self):
        machine = REPOSITORY / "configs" / "rtx4090-pcie.yaml"
        self.ask(f"espalier plan {machine} all_gather -a ring -o plan.json")
        for line in ("simulate {} all_reduce -a ring -s 1M --json", "bound {} all_gather --json", "topo show {}",
                     "explain {} all_gather -a ring -s 1M --json", "plan {} all_gather -a ring -s 1M --json",
                     "topo expand {}", "simulate plan.json -t {} -s 1M --json"):
            given = self.ask("espalier " + line.format(machine)).stdout
            piped = self.ask("espalier " + line.format(f"<(cat {machine})")).stdout
            self.assertEqual(piped.replace("/dev/fd/63", str(machine)), given, line)
        for line in ("verify {} --json", "simulate {} -s 1M --json"):
            self.assertEqual(self.ask("espalier " + line.format("<(cat plan.json)")).stdout.replace("/dev/fd/63", "plan.json"),
                             self.ask("espalier " + line.format("plan.json")).stdout, line)
        pathlib.Path(self.folder.name, "bad.yaml").write_text("espalier: 1\nname: [\n")
        self.assertIn("/dev/fd/63:", self.ask("espalier bound <(cat bad.yaml) all_gather", 1).stderr)

    def sizes(self, flags):
        document = json.loads(self.ask(f"espalier simulate rtx4090-pcie all_gather -a ring {flags} --json").stdout)
        return [row["size"] for row in document["results"]]

    def test_sizes(self):
        mega = 1 << 20
        self.assertEqual(self.sizes("-s 64M,1M"), [mega, 64 * mega])
        self.assertEqual(self.sizes("-b 1M -e 1G -f 64"), [mega, 64 * mega, 1024 * mega])
        self.assertIn("several sizes", self.ask("espalier explain rtx4090-pcie all_gather -s 1M,2M", 2).stderr)

    def test_ranges_of_what_fails(self):
        by_range = self.ask("espalier bound dgx1v all_gather --without gpu[4-7] --json").stdout
        by_name = self.ask("espalier bound dgx1v all_gather --without gpu4 --without gpu5 --without gpu6 --without gpu7 --json")
        self.assertEqual(json.loads(by_range)["bound"], json.loads(by_name.stdout)["bound"])
        self.assertIn("gpu8", self.ask("espalier bound dgx1v all_gather --without gpu[7-8]", 2).stderr)

    def test_designs_take_parameters_and_nccl(self):
        for name in ("a", "b"):
            text = (REPOSITORY / "configs" / "one-host.yaml").read_text()
            pathlib.Path(self.folder.name, name + ".yaml").write_text(text)
        document = json.loads(self.ask("espalier compare-designs a.yaml b.yaml -p ranks=6 -c all_gather -s 1M --json").stdout)
        self.assertEqual([design["ranks"] for design in document["designs"]], [6, 6])
        line = "espalier compare-designs dgx1v dgx-a100 -c all_gather -s 16M -a nccl --no-failures --json"
        for design in json.loads(self.ask(line).stdout)["designs"]:
            self.assertTrue(design["collectives"][0]["results"][0]["algorithm"].startswith("nccl/"), design)
        refused = self.ask("espalier compare-designs a.yaml b.yaml -c all_gather -s 1M -a nccl", 2).stderr
        self.assertIn("needs a profile", refused)

    def test_timelines_of_other_sizes_are_no_prediction(self):
        for size in ("64K", "256K"):
            self.ask(f"espalier simulate rtx4090-pcie all_gather -a ring -s {size} --trace {size}.json")
        self.assertIn("A is of 64 KiB, B of 256 KiB", self.ask("espalier compare 64K.json 256K.json").stderr)
        self.assertEqual(self.ask("espalier compare 64K.json 64K.json").stderr, "")
        trace = json.loads(pathlib.Path(self.folder.name, "64K.json").read_text())
        for event in trace["traceEvents"]:
            if event.get("ph") == "X":
                event["dur"], event["ts"] = 0, 0
        pathlib.Path(self.folder.name, "still.json").write_text(json.dumps(trace))
        for line in ("espalier compare 64K.json still.json", "espalier compare still.json 64K.json"):
            done = shell(line, self.folder.name)
            self.assertNotEqual(done.returncode, 0, line)
            self.assertNotRegex(done.stdout, r"\b(nan|inf)\b")

    def test_another_folder_of_machines_is_in_place_of_the_shipped(self):
        pathlib.Path(self.folder.name, "mine.yaml").write_text((REPOSITORY / "configs" / "one-host.yaml").read_text())
        shutil.copy(REPOSITORY / "configs" / "espalier.schema.json", self.folder.name)
        told = f"export ESPALIER_CONFIGS={self.folder.name}; cd /; "
        self.ask(told + f"{ESPALIER} bound mine all_gather")
        self.ask(told + f"{ESPALIER} bound dgx1v all_gather", 1)
        self.ask(f"export ESPALIER_CONFIGS=/nowhere; {ESPALIER} bound dgx1v all_gather", 1)

    def test_a_missing_folder_is_named(self):
        done = self.ask("espalier plan rtx4090-pcie all_gather -a ring -o there/plan.json", 1)
        self.assertIn("there is no folder there", done.stderr)
        self.assertIn("mkdir -p there", done.stderr)

    def test_algorithms_that_plan_one_collective_alone_run(self):
        for question in ("all_to_all -a pairwise", "all_gather -a bruck", "broadcast -a packing",
                         "all_to_all -a pairwise --matrix zipf:1"):
            self.ask(f"espalier run one-host -p ranks=3 {question} -s 4K -n 1 -w 0")

    def test_a_sweep_names_the_machine_that_failed(self):
        done = self.ask("espalier sweep rtx4090-pcie -c all_gather -a ring -s 1M --without gpu0-cpu0 -o rows.csv", None)
        self.assertIn("rtx4090-pcie, ring: ", done.stdout)

    def test_costs_of_a_scenario_that_replace_the_machines_are_told(self):
        text = (REPOSITORY / "configs" / "scenarios" / "training-step.yaml").read_text()
        self.assertNotIn("endpoints", text)
        pathlib.Path(self.folder.name, "own.yaml").write_text(text + "endpoints: {protocol: simple}\n")
        note = "'endpoints' count instead of the machine's profile"
        self.assertIn(note, self.ask("espalier simulate --scenario own.yaml --json").stderr)
        self.assertNotIn(note, self.ask("espalier simulate --scenario training-step --json").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
