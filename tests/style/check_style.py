#!/usr/bin/env python3
"""Checks what the house style fixes by rule: the include table, file lengths, banned calls, documented rules.

Usage: check_style.py REPOSITORY. Prints every finding as path:line: what; exits 1 when there is one.
"""
import pathlib
import re
import sys

# Which folder may include which; arrows only point this way (docs/architecture.md).
ALLOWED_INCLUDES = {
    "base": {"base"},
    "topology": {"topology", "base"},
    "schedule": {"schedule", "topology", "base"},
    "planners": {"planners", "schedule", "topology", "base"},
    "sim": {"sim", "schedule", "topology", "base"},
    "scenario": {"scenario", "sim", "planners", "schedule", "topology", "base"},
    "advisor": {"advisor", "sim", "planners", "schedule", "topology", "base"},
    "sweep": {"sweep", "sim", "planners", "schedule", "topology", "base"},
    "engine": {"engine", "schedule", "topology", "base"},
    "lab": {"lab", "schedule", "topology", "base"},
    "compare": {"compare", "sim", "schedule", "topology", "base"},
    "cli": {"cli", "sweep", "lab", "compare", "engine", "advisor", "scenario", "sim", "planners", "schedule", "topology", "base"},
}
LONGEST_FILE = 500
LONGEST_LINE = 120
LIBRARY_FOLDERS = [folder for folder in ALLOWED_INCLUDES if folder != "cli"]
BANNED_IN_LIBRARIES = {
    r"\bstd::random_device\b": "randomness comes from a seed (base/random.h)",
    r"\bs?rand\(": "randomness comes from a seed (base/random.h)",
    r"\b(?:std::)?exit\(": "a library never ends the process",
    r"\bstd::c(?:out|err)\b": "a library does not print",
    r"\busing namespace\b": "names are spelled out",
    r"\bthrow\b": "errors are values (base/result.h)",
}
BANNED_ANYWHERE = {r"\b(?:TODO|FIXME|XXX)\b": "open work belongs in the tracker"}
# kill(-1) hits every process there is, and -1 is what a fork that failed gives.
BANNED_BUT_IN = {r"\bkill(?:pg)?\((?!\))": ("base/send_signal.h", "signals are sent by base/send_signal.h")}


def sources(repository, folder):
    return sorted(path for path in (repository / folder).rglob("*") if path.suffix in {".h", ".cpp"})


def check_source(repository, folder, path):
    relative = path.relative_to(repository)
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > LONGEST_FILE:
        yield f"{relative}:1: {len(lines)} lines; split it (at most {LONGEST_FILE})"
    if path.suffix == ".h" and lines[0] != "#pragma once":
        yield f"{relative}:1: a header begins with #pragma once"
    banned = dict(BANNED_ANYWHERE)
    if folder in LIBRARY_FOLDERS:
        banned.update(BANNED_IN_LIBRARIES)
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            yield f"{relative}:{number}: {len(line)} columns (at most {LONGEST_LINE})"
        include = re.match(r'#include "(\w+)/', line)
        if include and folder in ALLOWED_INCLUDES and include.group(1) not in ALLOWED_INCLUDES[folder]:
            yield f"{relative}:{number}: {folder} may not include {include.group(1)}"
        code = line.split("//")[0]
        for pattern, (home, why) in BANNED_BUT_IN.items():
            if str(relative) != home and re.search(pattern, code):
                yield f"{relative}:{number}: {why}"
        for pattern, why in banned.items():
            if re.search(pattern, code if pattern not in BANNED_ANYWHERE else line):
                yield f"{relative}:{number}: {why}"


def check_names(repository):
    """No two classes of one name in one namespace: a program that links both would mix their functions up."""
    places = {}
    for folder in LIBRARY_FOLDERS:
        for path in sources(repository, folder):
            namespaces = []
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if opened := re.match(r"namespace ([\w:]*) ?\{", line):
                    namespaces.append(opened.group(1))
                elif line.startswith("}  // namespace") and namespaces:
                    namespaces.pop()
                elif (found := re.match(r"(?:class|struct|enum class) (?:alignas\(\d+\) )?(\w+)\b(?!::)(?!.*;$)", line)) and (
                        "" not in namespaces):
                    name = "::".join(namespaces) + "::" + found.group(1)
                    place = f"{path.relative_to(repository)}:{number}"
                    if name in places and places[name].rsplit(":", 1)[0] != str(path.relative_to(repository)):
                        yield f"{place}: {name} is also at {places[name]}"
                    places.setdefault(name, place)


def check_rules(repository):
    """Every rule of the verifier is in the enum, in docs/schedule.md and in the name of a negative test."""
    in_enum = re.findall(r"^\s+(S\d+),", (repository / "schedule/verify/verify.h").read_text(), re.M)
    document = (repository / "docs/schedule.md").read_text()
    tests = "".join(path.read_text() for path in sources(repository, "tests"))
    for rule in in_enum:
        if not re.search(rf"\b{rule}\b", document):
            yield f"docs/schedule.md:1: rule {rule} is not described"
        if not re.search(rf"TEST\w*\(\w+,\s*{rule}\w+", tests):
            yield f"schedule/verify/verify.h:1: rule {rule} has no negative test of its name"
    for rule in sorted(set(re.findall(r"\bS\d+\b", document)) - set(in_enum)):
        yield f"docs/schedule.md:1: rule {rule} is not in the verifier"


def check_readmes(repository):
    for folder in [*ALLOWED_INCLUDES, "configs", "tests", "bench"]:
        if not (repository / folder / "README.md").exists():
            yield f"{folder}/README.md:1: missing"


def main():
    repository = pathlib.Path(sys.argv[1]).resolve()
    findings = []
    for folder in [*ALLOWED_INCLUDES, "tests", "bench", "examples"]:
        for path in sources(repository, folder):
            findings.extend(check_source(repository, folder, path))
    findings.extend(check_names(repository))
    findings.extend(check_rules(repository))
    findings.extend(check_readmes(repository))
    print("\n".join(findings) or "style: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
