#!/usr/bin/env python3
"""Prints a digest of what the bundle is made of: sources, pinned packages, how they are bundled. Usage: source_hash.py [FOLDER]"""
import hashlib
import pathlib
import sys

OF = ("source/**/*.ts", "source/**/*.css", "package.json", "package-lock.json", "tsconfig.json", "bundle.mjs")


def source_hash(folder):
    digest = hashlib.sha256()
    for path in sorted(path for pattern in OF for path in folder.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(source_hash(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)))
