#!/usr/bin/env python3
"""Every link of the Markdown files leads somewhere: to a file of the repository, and to a heading where it names one.

Usage: links_test.py REPOSITORY
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")


def prose(text):
    """Numbered lines outside of code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            yield number, CODE.sub("", line)


def anchor_of(heading):
    """As GitHub and mkdocs name a heading: lower case, words joined by dashes."""
    text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return text.replace(" ", "-")


def anchors_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return {anchor_of(re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#"))) for line in lines if line.startswith("#")}


def broken_links(repository):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=repository,
                            capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = repository / name
        if not path.exists():
            continue
        for number, line in prose(path.read_text(encoding="utf-8")):
            for target in LINK.findall(line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                file, _, anchor = target.partition("#")
                place = (path.parent / file).resolve() if file else path
                if not place.exists():
                    yield f"{name}:{number}: there is no {target}"
                elif anchor and place.suffix == ".md" and anchor not in anchors_of(place):
                    yield f"{name}:{number}: {file or name} has no heading #{anchor}"


def main():
    broken = list(broken_links(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(broken) or "every link leads somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
