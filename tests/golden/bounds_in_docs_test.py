#!/usr/bin/env python3
"""The bounds that tables of docs/planners.md give for machines as they are shipped are those of `espalier bound`.

Usage: bounds_in_docs_test.py ESPALIER REPOSITORY
"""
import json
import pathlib
import re
import subprocess
import sys


def tables(text):
    """(heads, rows) of each Markdown table."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        yield lines[0], lines[2:]


def main():
    espalier, repository = sys.argv[1], pathlib.Path(sys.argv[2])
    problems, count = [], 0
    for heads, rows in tables((repository / "docs/planners.md").read_text(encoding="utf-8")):
        if heads[0] != "machine" or heads[-1] != "bound" or any("switches" in head for head in heads):
            continue
        for row in rows:
            machine, *parameters = row[0].strip("`").split()
            done = subprocess.run([espalier, "--json", "bound", str(repository / "configs" / f"{machine}.yaml"), "all_reduce", *parameters],
                                  capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)["bound"]["busbw"] / 1e9
            count += 1
            if abs(found - float(row[-1])) > 0.005 + 1e-9:
                problems.append(f"docs/planners.md: {machine}: the bound is {found:.2f} GB/s, not {row[-1]}")
    print("\n".join(problems) or f"{count} bounds are right")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
