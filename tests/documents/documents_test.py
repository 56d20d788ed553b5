#!/usr/bin/env python3
"""Every JSON document that the command prints keeps to the schema that `espalier schema` prints for it.

Usage: documents_test.py [--record] ESPALIER REPOSITORY

The schemas, configs/documents, say which keys a document has always and of what types the values are; a document may have more.
--record writes them anew from what is printed now: what they lose is a change that needs a new version (docs/migration.md).
"""
import json
import pathlib
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
                           "simulate plan.json -s 1M"],
    "espalier/scenario/1": ["simulate --scenario two-groups", "simulate --scenario training-step"],
    "espalier/explain/1": ["explain dgx1v-nvlink all_gather -s 1M"],
    "espalier/explain-scenario/1": ["explain --scenario two-groups"],
    "espalier/tune/1": ["tune dgx1v-nvlink all_gather -b 64K -e 4M"],
    "espalier/degrade/1": ["topo degrade dgx1v-nvlink all_gather -s 1M", "topo degrade rtx4090-pcie"],
    "espalier/designs/1": ["compare-designs dgx1v-nvlink rtx4090-pcie -c all_gather -s 1M"],
    "espalier/sweep/2": ["sweep rtx4090-pcie -a ring -s 1M"],
    "espalier/sweep-count/1": ["sweep rtx4090-pcie -a ring -s 1M --dry-run"],
    "espalier/group-bounds/1": ["bound dgx1v all_gather --groups-of 4"],
    "espalier/topology/1": ["topo show dgx1v", "topo validate dgx1v-degraded"],
    "espalier/machines/1": ["topo show --list"],
    "espalier/provenance/1": ["topo show dgx1v --provenance"],
    "espalier/schemas/1": ["schema"],
    "espalier/version/1": ["version"],
    "espalier/doctor/1": ["doctor"],
}


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
    for command in commands:
        done = subprocess.run([espalier, "--json", "-q", *command.split()], cwd=folder, stdout=subprocess.PIPE, timeout=100, check=False)
        yield command, json.loads(done.stdout)


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
        for name, commands in DOCUMENTS.items():
            path = repository / "configs/documents" / (name.split("/")[1] + ".schema.json")
            known = list(documents_of(espalier, commands, folder))
            if is_record:
                path.write_text(record(name, [document for _, document in known]), encoding="utf-8")
                continue
            printed = subprocess.run([espalier, "schema", name], stdout=subprocess.PIPE, check=False).stdout
            if printed != path.read_bytes():
                problems.append(f"espalier schema {name} does not print {path.name}")
                continue
            for command, document in known:
                problems += [f"{command}: {breach}" for breach in breaches(document, json.loads(printed))]
    print("\n".join(problems) or f"{len(DOCUMENTS)} kinds of documents keep to their schemas")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
