#!/usr/bin/env python3
"""Checks what the house style fixes by rule: the include table, lengths, banned calls, documented rules, tests' places.

Usage: check_style.py REPOSITORY. Prints every finding as path:line: what; exits 1 when there is one.
"""
import importlib.util
import json
import pathlib
import re
import sys

LONGEST_FILE = 500
LONGEST_LINE = 120
LONGEST_SCRIPT_LINE = 160  # of the report's page
MOST_SOURCES = 30  # of a folder
BANNED_IN_LIBRARIES = {
    r"\bstd::random_device\b": "randomness comes from a seed (base/random.h)",
    r"\bs?rand\(": "randomness comes from a seed (base/random.h)",
    r"\b(?:std::)?exit\(": "a library never ends the process",
    r"\bstd::c(?:out|err)\b": "a library does not print",
    r"\busing namespace\b": "names are spelled out",
    r"\bthrow\b": "errors are values (base/result.h)",
}
ALLOWED = {("espalier/value.h", r"\b(?:std::)?exit\(")}  # what it is for
BANNED_ANYWHERE = {r"\b(?:TODO|FIXME|XXX)\b": "open work belongs in the tracker"}
# kill(-1) hits every process there is, and -1 is what a fork that failed gives.
BANNED_BUT_IN = {r"\bkill(?:pg)?\((?!\))": ("base/send_signal.h", "signals are sent by base/send_signal.h")}


SHARED_FORMS = {"base", "topology", "schedule", "espalier"}  # their namespace is `espalier`
PUBLIC_API = "engine/communicator"  # of a rank: may be in `espalier` and in the namespace of its folder


def read_include_table(repository):
    """Which folder may include which, by the table in docs/architecture.md: {folder: {folders}}."""
    table = {}
    for line in (repository / "docs/architecture.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| `(\w+)/` \| [^|]* \| [^|]* \| ([^|]*) \|$", line):
            table[row.group(1)] = set(re.findall(r"\w+", row.group(2)))
    for folder, may in table.items():
        may.add(folder)
        if "all" in may:
            may.update(table)
    return table


def sources(repository, folder):
    return sorted(path for path in (repository / folder).rglob("*") if path.suffix in {".h", ".cpp"})


def check_source(repository, table, folder, path):
    relative = path.relative_to(repository)
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > LONGEST_FILE:
        yield f"{relative}:1: {len(lines)} lines; split it (at most {LONGEST_FILE})"
    if path.suffix == ".h" and lines[0] != "#pragma once":
        yield f"{relative}:1: a header begins with #pragma once"
    banned = dict(BANNED_ANYWHERE)
    if is_library(table, folder):
        banned.update(rule for rule in BANNED_IN_LIBRARIES.items() if (relative.as_posix(), rule[0]) not in ALLOWED)
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            yield f"{relative}:{number}: {len(line)} columns (at most {LONGEST_LINE})"
        include = re.match(r'#include "(\w+)/', line)
        if include and folder in table and include.group(1) not in table[folder]:
            yield f"{relative}:{number}: {folder} may not include {include.group(1)}"
        code = line.split("//")[0]
        for pattern, (home, why) in BANNED_BUT_IN.items():
            if str(relative) != home and re.search(pattern, code):
                yield f"{relative}:{number}: {why}"
        for pattern, why in banned.items():
            if re.search(pattern, code if pattern not in BANNED_ANYWHERE else line):
                yield f"{relative}:{number}: {why}"


def is_library(table, folder):
    return folder in table and folder not in {"cli", "python"}  # Python's errors are exceptions


def check_page(repository):
    """The page's sources keep the lengths of all sources, and its bundle was made from them as they are."""
    page = repository / "report/page"
    for path in sorted([*page.glob("source/**/*.ts"), *page.glob("source/**/*.css"), *page.glob("tests/*.ts"), *page.glob("*.mjs")]):
        lines = path.read_text(encoding="utf-8").splitlines()
        relative = path.relative_to(repository)
        if len(lines) > LONGEST_FILE:
            yield f"{relative}:1: {len(lines)} lines; split it (at most {LONGEST_FILE})"
        for number, line in enumerate(lines, 1):
            if len(line) > LONGEST_SCRIPT_LINE:
                yield f"{relative}:{number}: {len(line)} columns (at most {LONGEST_SCRIPT_LINE})"
            for pattern, why in BANNED_ANYWHERE.items():
                if re.search(pattern, line):
                    yield f"{relative}:{number}: {why}"
    spec = importlib.util.spec_from_file_location("source_hash", page / "source_hash.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bundle = page / "bundle/report.js"
    if module.source_hash(page) not in bundle.read_text(encoding="utf-8")[:200]:
        yield f"{bundle.relative_to(repository)}:1: was made from other sources; run scripts/report-page"
    if '"resolved"' in (page / "package-lock.json").read_text(encoding="utf-8"):
        yield "report/page/package-lock.json:1: names where packages come from; report/page/.npmrc keeps npm from it"


def check_folders(repository, folders):
    for folder in folders:
        counts = {}
        for path in sources(repository, folder):
            counts[path.parent] = counts.get(path.parent, 0) + 1
        for place, count in counts.items():
            if count > MOST_SOURCES:
                yield f"{place.relative_to(repository)}: {count} sources; part it (at most {MOST_SOURCES})"


def check_test_places(repository):
    """tests/unit/x/y_test.cpp is of x/y.h, x/y.cpp or the folder x/y, or tests/unit/README.md says what it is of."""
    readme = (repository / "tests/unit/README.md").read_text(encoding="utf-8")
    for path in sources(repository, "tests/unit"):
        place = path.relative_to(repository / "tests/unit")
        if not path.stem.endswith("_test") or f"`{place}`" in readme:
            continue
        name = path.stem.removesuffix("_test")
        tested = repository / place.parent / name
        if not any(place.exists() for place in (tested, tested.with_suffix(".h"), tested.with_suffix(".cpp"))) and (
                place.parent.name != name):
            yield f"{path.relative_to(repository)}:1: there is no {place.parent / name}; see tests/unit/README.md"
    for named in re.findall(r"^\| `([\w/]+_test\.cpp)` ", readme, re.M):
        if not (repository / "tests/unit" / named).exists():
            yield f"tests/unit/README.md:1: there is no {named}"


def check_names(repository, table):
    """No two classes of one name in one namespace: a program that links both would mix their functions up."""
    places = {}
    for folder in filter(lambda folder: is_library(table, folder), table):
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


def namespace_of(repository, place):
    """`espalier` and, but for the shared forms, the folder's name; a library within a folder adds its own."""
    if place.parts[0] in SHARED_FORMS:
        return "espalier"
    parts = [place.parts[0]]
    library = repository / place.parts[0]
    for part in place.parts[1:]:
        library /= part
        if (library / "CMakeLists.txt").exists():
            parts.append(part)
    return "espalier::" + "::".join(parts)


def check_namespaces(repository, table):
    """What a library declares is in the namespace of its folder, or in one within that; so are the tests of it."""
    for folder in table:
        for path in [*sources(repository, folder), *sources(repository, f"tests/unit/{folder}")]:
            relative = path.relative_to(repository)
            place = pathlib.Path(*relative.parts[2 if relative.parts[0] == "tests" else 0:-1])
            own = namespace_of(repository, place)
            allowed = {own, "espalier"} if str(place) == PUBLIC_API else {own}
            is_within = False
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if opened := re.match(r"(?:inline )?namespace (espalier[\w:]*) \{", line):
                    is_within = True
                    inner = opened.group(1).removeprefix(own + "::").split("::")[0]
                    if opened.group(1) not in allowed and (inner in ("espalier", *table) or not opened.group(1).startswith(own)):
                        yield f"{relative}:{number}: {opened.group(1)} is not {own}"
            hands_on = "// IWYU pragma: export" in path.read_text(encoding="utf-8")
            if not is_within and not hands_on and path.suffix == ".h":
                yield f"{relative}:1: declares nothing in {own}"


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


def check_lists(repository):
    """The planners of planners/planner.cpp are those of the scenarios' schema and of the table in docs/planners.md."""
    planners = re.findall(r'^    Planner\{"(\w+)"', (repository / "planners/planner.cpp").read_text(), re.M)
    schema = json.loads((repository / "configs/scenarios/scenario.schema.json").read_text())
    table = re.search(r"(?:^\|.*\n)+", (repository / "docs/planners.md").read_text(), re.M).group(0)
    lists = {"configs/scenarios/scenario.schema.json": [name for name in schema["definitions"]["algorithm"]["enum"] if name != "auto"],
             "docs/planners.md": re.findall(r"^\| `(\w+)` \|", table, re.M)}
    for place, names in lists.items():
        if names != planners:
            yield f"{place}:1: planners are {', '.join(planners)}, not {', '.join(names)}"


def check_links(repository):
    """Links of documents lead to files that are there."""
    for document in sorted(repository.rglob("*.md")):
        relative = document.relative_to(repository)
        if relative.parts[0] == "build" or "node_modules" in relative.parts:
            continue
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", line):
                if "://" not in target and not (document.parent / target).exists():
                    yield f"{relative}:{number}: there is no {target}"


def check_walk(repository):
    """Each function that docs/architecture.md names with a file, `name` ([file](../file)), is in that file."""
    document = (repository / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w:]+)`\s+\(\[([^]]+)\]\(\.\./([^)]+)\)\)", document)
    if len(named) < 20:
        yield "docs/architecture.md:1: the walk through one all_reduce names no functions"
    for function, shown, path in named:
        source = repository / path
        if shown != path or not source.exists():
            yield f"docs/architecture.md:1: {shown} is not {path}, or is not there"
        elif not re.search(rf"\b{function.split('::')[-1]}\(", source.read_text(encoding="utf-8")):
            yield f"docs/architecture.md:1: {path} has no {function}"


def check_installed_headers(repository, table):
    """What an installed header includes is installed, too: both stand in HEADERS of their folders' CMakeLists.txt."""
    installed = set()
    for lists in (path for folder in table for path in (repository / folder).rglob("CMakeLists.txt")):
        place = lists.parent.relative_to(repository)
        for section in re.findall(r"\bHEADERS\b([^()]*?)(?=\b[A-Z]{3,}\b|\))", lists.read_text(encoding="utf-8")):
            installed.update(str(place / name) for name in section.split() if name.endswith(".h"))
    for header in sorted(installed):
        if not (repository / header).exists():
            yield f"{header}:1: is in HEADERS and does not exist"
            continue
        for number, line in enumerate((repository / header).read_text(encoding="utf-8").splitlines(), 1):
            included = re.match(r'#include "([^"]+)"', line)
            if included and included.group(1) not in installed:
                yield f"{header}:{number}: {included.group(1)} is not in HEADERS, so an installation lacks it"
    if len(installed) < 100:
        yield "tests/style/check_style.py:1: found no lists of HEADERS"


def check_readmes(repository, table):
    for folder in [*table, "configs", "tests", "bench"]:
        if not (repository / folder / "README.md").exists():
            yield f"{folder}/README.md:1: missing"


def check_tested_by(repository, table):
    """A header names the test that holds it; those that have none are listed, and the list only shrinks."""
    listed = repository / "tests/style/headers_without_test.txt"
    without = set(listed.read_text(encoding="utf-8").split())
    for folder in table:
        for path in sources(repository, folder):
            if path.suffix != ".h":
                continue
            relative = path.relative_to(repository).as_posix()
            named = re.search(r"^// Tested by: (\S+)$", path.read_text(encoding="utf-8"), re.M)
            if named and relative in without:
                yield f"{relative}:1: has a test: take it off {listed.name}"
            elif named and not (repository / named.group(1)).exists():
                yield f"{relative}:1: there is no {named.group(1)}"
            elif not named and relative not in without:
                yield f"{relative}:1: write '// Tested by: tests/...' below #pragma once"
    for relative in without:
        if not (repository / relative).exists():
            yield f"tests/style/{listed.name}:1: there is no {relative}"


def main():
    repository = pathlib.Path(sys.argv[1]).resolve()
    table = read_include_table(repository)
    findings = [] if len(table) > 10 else ["docs/architecture.md:1: no table of includes"]
    folders = [*table, "tests", "bench", "examples"]
    for folder in folders:
        for path in sources(repository, folder):
            findings.extend(check_source(repository, table, folder, path))
    findings.extend(check_folders(repository, folders))
    findings.extend(check_test_places(repository))
    findings.extend(check_names(repository, table))
    findings.extend(check_namespaces(repository, table))
    findings.extend(check_rules(repository))
    findings.extend(check_lists(repository))
    findings.extend(check_links(repository))
    findings.extend(check_walk(repository))
    findings.extend(check_installed_headers(repository, table))
    findings.extend(check_readmes(repository, table))
    findings.extend(check_page(repository))
    findings.extend(check_tested_by(repository, table))
    print("\n".join(findings) or "style: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
