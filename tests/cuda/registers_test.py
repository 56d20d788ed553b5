#!/usr/bin/env python3
"""ptxas's words on the kernels: none keeps registers in memory, and all fit as often as co-residency assumes.

Usage: registers_test.py REPOSITORY LOG WHY_NONE ARCHITECTURE... Exits 3 where there are no kernels (WHY_NONE).
"""
import pathlib
import re
import sys


def main():
    repository, log, why_none, *architectures = sys.argv[1:]
    if why_none:
        print(f"skipped: there are no kernels here ({why_none})")
        return 3
    call = (pathlib.Path(repository) / "engine/cuda/kernels/kernel_call.h").read_text(encoding="utf-8")
    threads, blocks = (int(re.search(rf"\b{name} = (\d+);", call).group(1))
                       for name in ("threads_per_block", "blocks_per_multiprocessor"))
    allowed = 65536 // (threads * blocks)  # Registers of a multiprocessor: 64 Ki on sm_80, sm_90 and sm_100.

    types = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64"]
    kernels = {f"espalier_{what}_{kind}_{operation}" for what in ("run", "reduce") for kind in types
               for operation in ("sum", "prod", "min", "max")} | {f"espalier_divide_{kind}" for kind in types} | {"espalier_pattern"}
    said = pathlib.Path(log).read_text(encoding="utf-8")
    seen = set()
    failures = []
    for part in said.split("Compiling entry function ")[1:]:
        name, architecture = re.match(r"'(\w+)' for 'sm_(\d+)'", part).groups()
        seen.add((name, architecture))
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        frame, stores, loads = map(int, re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        if registers > allowed:
            failures.append(f"{name}, sm_{architecture}: {registers} registers; {allowed} let {blocks} blocks run at a time")
        if frame or stores or loads:
            failures.append(f"{name}, sm_{architecture}: {frame} bytes of stack, {stores + loads} bytes of spills")
    missing = {(name, architecture) for name in kernels for architecture in architectures} - seen
    failures += [f"{name}, sm_{architecture}: ptxas says nothing of it" for name, architecture in sorted(missing)]
    print("\n".join(failures) or f"{len(seen)} kernels: at most {allowed} registers each, none in memory")
    return 1 if failures else 0


sys.exit(main())
