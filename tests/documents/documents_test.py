#!/usr/bin/env python3
"""Every JSON document that the command prints keeps to the schema that `espalier schema` prints for it.

Usage: documents_test.py [--record] ESPALIER REPOSITORY

The schemas, configs/documents, say which keys a document has always and of what types the values are; a document may have more.
--record writes them anew from what is printed now: what they lose is a change that needs a new version (docs/migration.md).
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# Commands of each document, in an order in which files are made before they are read.
DOCUMENTS = {
    "espalier/bound/1": ["bound dgx1v all_gather", "bound dgx1v-degraded all_reduce", "bound rtx4090-pcie broadcast -r 1"],
    "espalier/bounds/1": ["bound dgx1v"],
    "espalier/plan/1": ["plan dgx1v all_gather -s 1M -o plan.json", "plan dgx1v all_reduce -s 1M --profile ideal"],
    "espalier/verify/1": ["verify plan.json"],
    "espalier/results/1": ["simulate dgx1v all_gather -b 64K -e 1M -f 4", "simulate dgx1v all_reduce -s 1M -a ring --critical-path --profile ideal",
                           "simulate plan.json -s 1M", "simulate dgx1v-nvlink all_gather -a ring -b 64K -e 4M --profile ideal > simulated.json",
                           "simulate dgx1v-nvlink all_gather -a ring -b 64K -e 4M --profile ideal --slow nvlink2=0.8 > measured.json",
                           "simulate dgx1v-nvlink all_gather -a ring -s 1M --trace trace.json",
                           "run one-host all_reduce -p ranks=2 -a ring -s 64K -n 2 > run.json"],
    "espalier/scenario/1": ["simulate --scenario two-groups", "simulate --scenario training-step",
                            "simulate --scenario gossip"],
    "espalier/explain/1": ["explain dgx1v-nvlink all_gather -s 1M"],
    "espalier/explain-measured/1": ["explain dgx1v-nvlink all_gather --measured trace.json",
                                    "explain dgx1v-nvlink all_gather --measured measured.json --profile nccl-volta"],
    "espalier/explain-scenario/1": ["explain --scenario two-groups"],
    "espalier/diagnosis/1": ["diagnose dgx1v-nvlink measured.json --profile ideal", "diagnose dgx1v-nvlink simulated.json --profile ideal", "diagnose dgx1v-nvlink measured.json"],
    "espalier/stragglers/1": ["diagnose dgx1v-nvlink recorder0.json recorder1.json"],
    "espalier/probe/1": ["probe one-host -p ranks=4 -s 64K -n 2"],
    "espalier/probe-plan/1": ["probe dgx1v-nvlink --dry-run", "probe dgx1v-nvlink --dry-run --limit 1GB/s"],
    "espalier/nccl/1": ["nccl dgx1v", "nccl dgx-h100-x4 all_reduce"],
    "espalier/tune/1": ["tune dgx1v-nvlink all_gather -b 64K -e 4M"],
    "espalier/degrade/1": ["topo degrade dgx1v-nvlink all_gather -s 1M", "topo degrade rtx4090-pcie"],
    "espalier/designs/1": ["compare-designs dgx1v-nvlink rtx4090-pcie -c all_gather -s 1M"],
    "espalier/sweep/4": ["sweep rtx4090-pcie -a ring -s 1M", "sweep dgx1v -a nccl -s 1M"],
    "espalier/sweep-count/1": ["sweep rtx4090-pcie -a ring -s 1M --dry-run"],
    "espalier/group-bounds/1": ["bound dgx1v all_gather --groups-of 4"],
    "espalier/topology/1": ["topo show dgx1v", "topo validate dgx1v-degraded"],
    "espalier/machines/1": ["topo show --list"],
    "espalier/provenance/1": ["topo show dgx1v --provenance"],
    "espalier/schemas/1": ["schema"],
    "espalier/gpus/1": ["compute"],
    "espalier/experts/1": ["experts dgx-h100", "experts gb200-nvl72 --software trtllm-nvlink --first 4"],
    "espalier/version/1": ["version"],
    "espalier/doctor/1": ["doctor"],
    "espalier/compare/1": ["compare simulated.json measured.json", "compare simulated.json measured.json --fail-above 1%", "compare dgx1v perf.log --collective all_reduce"],
    "espalier/calibration/1": ["calibrate dgx1v-nvlink --from simulated.json measured.json"],
    "espalier/profile-calibration/1": ["calibrate dgx1v --from perf.log --profile nccl-volta --collective all_reduce"],
    "espalier/group-plans/1": ["plan dgx1v all_gather --groups-of 4"],
    "espalier/parallelisms/1": ["simulate --scenario training-step --split tensor=2 --split pipeline=4,8"],
    "espalier/scenario-sweep/3": ["sweep --scenario two-groups --scenario training-step"],
    "espalier/sweep-summary/1": ["sweep rtx4090-pcie -a ring -s 1M,2M --shard 1/2 -o one.csv", "sweep --scenario two-groups -o scenarios.csv"],
    "espalier/sweep-merge/1": ["merge one.csv -o all.csv"],
    "espalier/report/1": ["report simulated.json measured.json -o results.html"],
    "espalier/lab/1": ["lab one-host all_reduce -p ranks=2 -a ring -s 32K -n 1 -w 1 --scale 1/200"],
    "espalier/lab-clean/1": ["lab --clean"],
}
# What nccl-tests prints on 8 ranks, for those who read it.
NCCL = """#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    150.0    6.99   12.23      0
     4194304       1048576     float     sum      -1    500.0    8.39   14.68      0
    16777216       4194304     float     sum      -1   1900.0    8.83   15.45      0
"""
# A dump of the flight recorder of each of two ranks; the first one comes late.
RECORDER = """{"version": "2.3", "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}}, "rank": %d, "entries": [{"profiling_name": "nccl:all_reduce",
"process_group": ["0", "default_pg"], "collective_seq_id": 1, "time_created_ns": 1000000, "is_p2p": false, "duration_ms": %s}]}
"""
LACKING = 3  # The exit code of a command for which the machine lacks something, such as the right to shape links.


def type_of(value):
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array", dict: "object"}
    return names[type(value)]


def schema_of(values):
    """What all of these values keep to."""
    types = sorted({type_of(value) for value in values})
    if "number" in types and "integer" in types:
        types.remove("integer")
    schema = {"type": types[0] if len(types) == 1 else types}
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        keys = list(dict.fromkeys(key for value in objects for key in value))
        schema["required"] = [key for key in keys if all(key in value for value in objects)]
        schema["properties"] = {key: schema_of([value[key] for value in objects if key in value]) for key in keys}
    elements = [element for value in values if isinstance(value, list) for element in value]
    if elements:
        schema["items"] = schema_of(elements)
    return schema


def breaches(value, schema, place="document"):
    """Where a value does not keep to a schema, as far as schema_of and version_of write any."""
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and type_of(value) not in types and not (type_of(value) == "integer" and "number" in types):
        yield f"{place} is of type {type_of(value)}, not {' or '.join(types)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{place} is {value!r}, not {schema['const']!r}"
    if isinstance(value, dict):
        yield from (f"{place} has no '{key}'" for key in schema.get("required", []) if key not in value)
        for key, part in schema.get("properties", {}).items():
            if key in value:
                yield from breaches(value[key], part, f"{place}.{key}")
    if isinstance(value, list) and "items" in schema:
        for number, element in enumerate(value):
            yield from breaches(element, schema["items"], f"{place}[{number}]")


def documents_of(espalier, commands, folder):
    """What each command prints; "> FILE" keeps it for commands after it."""
    for command in commands:
        words, _, kept = command.partition(" > ")
        done = subprocess.run([espalier, "--json", "-q", *words.split()], cwd=folder, capture_output=True, timeout=100, check=False)
        if done.returncode == LACKING and not done.stdout:
            print(f"not looked at here: {command}: {done.stderr.decode().strip()}")
            continue
        if not done.stdout:
            sys.exit(f"{command} prints nothing: {done.stderr.decode()}")
        if kept:
            (pathlib.Path(folder) / kept).write_bytes(done.stdout)
        yield command, json.loads(done.stdout)


def unknown_documents(espalier, repository):
    """Documents that the sources name, and no schema here is of."""
    named = set()
    for folder in ("cli", "sweep"):
        for path in (repository / folder).rglob("*.cpp"):
            named |= set(re.findall(r'"(espalier/[a-z-]+/\d+)"', path.read_text(encoding="utf-8")))
    listed = json.loads(subprocess.run([espalier, "--json", "schema"], stdout=subprocess.PIPE, check=True).stdout)["schemas"]
    yield from (f"{name} is printed and not among the documents of this test" for name in sorted(named - set(DOCUMENTS)))
    yield from (f"{name} has a schema and no command here" for name in listed if name.startswith("espalier/") and name not in DOCUMENTS)
    yield from (f"espalier schema does not list {name}" for name in DOCUMENTS if name not in listed)


def schema_named(espalier, name):
    return json.loads(subprocess.run([espalier, "schema", name], stdout=subprocess.PIPE, check=True).stdout)


def breaches_of_files(espalier, folder):
    """Traces keep to their schema, and a sweep takes the keys that its schema has, and no other."""
    trace = pathlib.Path(folder) / "trace.json"
    subprocess.run([espalier, "-q", "simulate", "dgx1v-nvlink", "all_gather", "-a", "ring", "-s", "64K", "--trace", trace],
                   stdout=subprocess.PIPE, check=True)
    yield from (f"--trace: {breach}" for breach in breaches(json.loads(trace.read_text(encoding="utf-8")), schema_named(espalier, "timeline")))
    values = {"topologies": ["dgx1v-nvlink"], "parameters": {}, "collectives": ["broadcast"], "root": 0, "algorithms": ["ring"], "type": "float",
              "sizes": ["1K"], "minbytes": "1K", "maxbytes": "4K", "stepfactor": 2, "stepbytes": "1K", "chunks": ["auto"], "models": ["link"],
              "protocols": ["none"], "copy_engines": [0], "profiles": ["ideal"], "without": ["gpu0-gpu1"], "slow": ["nvlink2=0.5"],
              "failures": ["links"], "jitter": ["1%"], "seeds": "1-2", "scenarios": ["two-groups"], "split": {"tensor": [2]}}
    of_scenarios = {"scenarios", "split"}
    keys = set(schema_named(espalier, "sweep")["properties"])
    yield from (f"the schema of sweeps and this test differ about '{key}'" for key in sorted(keys ^ set(values)))
    spec = pathlib.Path(folder) / "spec.json"
    of_both = {"topologies", "parameters", "models", "profiles", "without", "slow", "failures", "seeds"}
    for left_out in (of_scenarios | {"sizes", "stepfactor"}, of_scenarios | {"minbytes", "maxbytes", "stepfactor", "stepbytes"},
                     of_scenarios | {"sizes", "stepbytes"}, keys - of_both - {"scenarios"}):
        spec.write_text(json.dumps({key: value for key, value in values.items() if key not in left_out}), encoding="utf-8")
        done = subprocess.run([espalier, "sweep", "--spec", spec, "--dry-run"], capture_output=True, check=False)
        if done.returncode != 0:
            yield f"sweep --spec without {sorted(left_out)}: {done.stderr.decode()}"


def record(name, documents):
    schema = schema_of(documents)
    schema["properties"]["schema"] = {"const": name}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name,
            "description": "What a document has always; it may have more. docs/command-line.md says what it means."}
    return json.dumps(head | schema, indent=1) + "\n"


def main():
    words = sys.argv[1:]
    is_record = words[0] == "--record"
    espalier, repository = (pathlib.Path(word).resolve() for word in words[1 if is_record else 0:])
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "perf.log").write_text(NCCL, encoding="utf-8")
        for rank, milliseconds in enumerate(("0.25", "1.5")):
            (pathlib.Path(folder) / f"recorder{rank}.json").write_text(RECORDER % (rank, milliseconds), encoding="utf-8")
        for name, commands in DOCUMENTS.items():
            path = repository / "configs/documents" / (name.split("/")[1] + ".schema.json")
            known = list(documents_of(espalier, commands, folder))
            if is_record:
                if not known:
                    sys.exit(f"no document of {name} can be had here")
                path.write_text(record(name, [document for _, document in known]), encoding="utf-8")
                continue
            printed = subprocess.run([espalier, "schema", name], stdout=subprocess.PIPE, check=False).stdout
            if printed != path.read_bytes():
                problems.append(f"espalier schema {name} does not print {path.name}")
                continue
            for command, document in known:
                problems += [f"{command}: {breach}" for breach in breaches(document, json.loads(printed))]
        if not is_record:
            problems += unknown_documents(espalier, repository)
            problems += breaches_of_files(espalier, folder)
    print("\n".join(problems) or f"{len(DOCUMENTS)} kinds of documents keep to their schemas")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
