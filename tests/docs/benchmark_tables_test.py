#!/usr/bin/env python3
"""docs/benchmarks.md shows what its commands print: rows of small machines are made anew, and every script and program that it and
docs/benchmarks-engine.md name exists.

Usage: benchmark_tables_test.py ESPALIER REPOSITORY [--record]

With --record the rows of these machines are written into the page; those of larger ones take minutes and are written by hand.
"""
import pathlib
import re
import subprocess
import sys

TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
MAX_RANKS = 8  # seconds, where all machines take minutes


def made(espalier, repository, collective):
    """Rows of small machines, as the script of the table prints them."""
    run = subprocess.run([sys.executable, repository / "bench/simulated_table.py", espalier, collective, "--max-ranks", str(MAX_RANKS)],
                         capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def place(page, collective):
    """Where the table of a collective stands: the first one after the line that begins with its name."""
    return TABLE.search(page, re.search(rf"^{collective}\b.*:$", page, re.M).end())


def wrong_rows(espalier, repository, page, collective):
    shown = place(page, collective).group().splitlines()
    rows = made(espalier, repository, collective)
    if len(rows) < 8:
        return [f"{collective}: {len(rows) - 2} machines of at most {MAX_RANKS} ranks were simulated"]
    return [f"{collective}: the page lacks this row: {row}" for row in rows if row not in shown]


def missing_programs(repository, page):
    """Commands of the page that nothing in bench/ makes."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in repository.glob("bench/**/CMakeLists.txt"))
    for command in set(re.findall(r"`[^`]*?(bench/[\w/]+\.py)", page)):
        if not (repository / command).exists():
            yield f"no script {command}"
    for program in set(re.findall(r"\bbench_\w+", page)):
        if program.removeprefix("bench_") not in sources:
            yield f"no program {program}"


def main():
    espalier, repository = sys.argv[1], pathlib.Path(sys.argv[2])
    path = repository / "docs/benchmarks.md"
    page = path.read_text(encoding="utf-8")
    if "--record" in sys.argv:
        for collective in ("all_reduce", "all_gather"):
            found = place(page, collective)
            head, rows = found.group().splitlines()[:2], found.group().splitlines()[2:]
            by_machine = {row.split("|")[1]: row for row in rows + made(espalier, repository, collective)[2:]}
            lines = head + [by_machine[machine] for machine in sorted(by_machine)]
            page = page[:found.start()] + "\n".join(lines) + "\n" + page[found.end():]
        path.write_text(page, encoding="utf-8")
        return 0
    engine = (repository / "docs/benchmarks-engine.md").read_text(encoding="utf-8")
    problems = [*missing_programs(repository, page + engine)]
    for collective in ("all_reduce", "all_gather"):
        problems += wrong_rows(espalier, repository, page, collective)
    print("\n".join(problems) or "the tables are what their commands print")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
