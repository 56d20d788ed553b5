#!/usr/bin/env python3
"""What NCCL itself chooses, against what `espalier nccl` says: algorithm and protocol by size, channels, rings, trees.

    nccl_choices.py ESPALIER FOLDER [--json] [--version 2.30] [--only WORD] [--show] [--check]

FOLDER has VERSION.jsonl files, a communicator a line, and the machines' topology files of NCCL in a folder xml or in
xml.tar.xz (tests/accuracy/nccl-choices/README.md says what is in them). Each distinct machine is imported; several become
one topology whose NICs meet in a switch. Shares are of (communicator, size) for picks, of communicators for the rest: the
channels that are opened; rings that are equal up to rotation, direction and an exchange of like GPUs; trees of the same depth and shape.
"""
import argparse
import collections
import itertools
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
LEAST = {"all, one box": 97.0, "all, several boxes": 95.0}  # Percent of picks, rings, trees and channels, with --check.
SMALLEST, LARGEST = 1 << 10, 1 << 33


class Importer:
    """Machines by their file, as lists of nodes and links."""

    def __init__(self, espalier, folder, kept):
        self.espalier, self.folder, self.kept = espalier, folder, kept
        self.known = {}

    def machine(self, file, adds):
        text = (self.folder / file).read_text()
        key = (text, adds)
        if key not in self.known:
            options = ["--in-network"] if adds else []
            found = subprocess.run([self.espalier, "--quiet", "--json", "topo", "import", str(self.folder / file), "--replicate", "2", *options],
                                   capture_output=True, text=True)
            if found.returncode != 0:  # Without NICs.
                found = subprocess.run([self.espalier, "--quiet", "--json", "topo", "import", str(self.folder / file), *options],
                                       capture_output=True, text=True, check=True)
            self.known[key] = json.loads(found.stdout)
        return self.known[key]

    def topology(self, boxes, adds):
        """One topology of them all, as `topo import --replicate` makes it of alike ones."""
        nodes, links, profile = [], [], ""
        for number, box in enumerate(boxes):
            machine = self.machine(box["xml"], adds)
            profile = machine.get("profile", profile)
            own = [node for node in machine["nodes"] if node["id"].startswith("box0.")]
            is_copied = bool(own)
            own = own or machine["nodes"]
            names = {node["id"]: f"box{number}." + node["id"].removeprefix("box0.") for node in own}
            fabric = {node["id"] for node in machine["nodes"] if is_copied and not node["id"].startswith(("box0.", "box1."))}
            names.update(dict.fromkeys(fabric, "fabric"))
            nodes += [{**node, "id": names[node["id"]], "host": f"box{number}"} for node in own]
            for link in machine["links"]:
                ends = link.get("between") or [link["from"], link["to"]]
                if not all(end in names for end in ends) or (len(boxes) == 1 and fabric & set(ends)):
                    continue
                renamed = [names[end] for end in ends]
                rest = {key: value for key, value in link.items() if key not in ("between", "from", "to")}
                links.append({**({"between": renamed} if "between" in link else dict(zip(("from", "to"), renamed))), **rest})
        if len(boxes) > 1:
            nodes.append({"id": "fabric", "kind": "switch"})
        document = {"espalier": 1, "name": "boxes", "profile": profile, "nodes": nodes, "links": links}
        path = self.kept / "topology.json"
        path.write_text(json.dumps(document))
        return path


def at_size(runs, size):
    for run in runs:
        if run[0] <= size <= run[4]:
            return run
    return None


def shape_of(parents):
    """A rooted tree's canonical form: depth and shape."""
    children = collections.defaultdict(list)
    for rank, parent in enumerate(parents):
        children[parent].append(rank)
    order, stack = [], list(children[-1])
    while stack:
        rank = stack.pop()
        order.append(rank)
        stack += children[rank]
    form = {}
    for rank in reversed(order):
        form[rank] = "(" + "".join(sorted(form[child] for child in children[rank])) + ")"
    return "".join(sorted(form[root] for root in children[-1]))


def distances(order):
    """A ring as the cyclic list of steps from each rank to the next."""
    count = len(order)
    return tuple((order[(i + 1) % count] - order[i]) % count for i in range(count))


def ring_set(rings):
    return sorted((tuple(ring["order"]), len(ring["channels"])) for ring in rings)


def canonical(order):
    start = order.index(0)
    return tuple(order[start:] + order[:start])


def like_maps(boxes, ranks):
    """Renumberings of the ranks within boxes that keep rotations: all boxes by the same one."""
    size = ranks // boxes
    for shift in range(size):
        for sign in (1, -1):
            yield [box * size + (shift + sign * local) % size for box in range(boxes) for local in range(size)]


def rings_equal(ours, theirs, boxes, ranks):
    """Equal as sets of rings with how often each is used: as they are, or with GPUs of every box renumbered alike."""
    want = collections.Counter({order: count for order, count in ring_set(theirs)})
    have = [(canonical(ring["order"]), len(ring["channels"])) for ring in ours]
    if collections.Counter(dict(have)) == want:
        return True
    if ranks % boxes:
        return False
    for renumber in like_maps(boxes, ranks):
        mapped = collections.Counter()
        for order, count in have:
            mapped[canonical([renumber[rank] for rank in order])] += count
        if mapped == want:
            return True
    return False


def group_of(line):
    damaged = len(line["name"].split("-x", 1)[1].split("-", 1)) > 1
    return ("damaged or part, " if damaged else "whole, ") + ("one box" if line["nNodes"] == 1 else "several boxes")


def ask(espalier, path, version):
    found = subprocess.run([espalier, "--quiet", "--json", "nccl", str(path), "-b", str(SMALLEST), "-e", str(LARGEST), "--nccl-version", version],
                           capture_output=True, text=True)
    return (json.loads(found.stdout), "") if found.returncode == 0 else (None, found.stderr.strip().splitlines()[0])


def compare(line, ours):
    """Shares equal, and what differs."""
    result, differs = {}, []
    for collective in COLLECTIVES:
        choices = next((c["choices"] for c in ours["collectives"] if c["collective"] == collective), [])
        equal = channels = sizes = 0
        size = SMALLEST
        while size <= LARGEST:
            run = at_size(line["picks"][collective], size)
            choice = next((c for c in choices if c["from"] <= size <= c["to"]), None)
            size *= 2
            if run is None or choice is None:
                continue
            sizes += 1
            is_equal = run[1] == f"{choice['algorithm']}/{choice['protocol']}"
            equal += is_equal
            channels += is_equal and run[2] == choice["channels"]
            if is_equal and run[2] != choice["channels"]:
                differs.append(f"{collective} {size // 2}: {run[1]} on {choice['channels']} channels, NCCL {run[2]}")
            if not is_equal:
                differs.append(f"{collective} {size // 2}: {choice['algorithm']}/{choice['protocol']}, NCCL {run[1]}")
        result[collective] = (equal, sizes, channels)
    opened = ours["channels"] == line["nChannels"] and (ours["nvls_channels"] == line["nvlsChannels"] or not line["nvlsSupport"])
    result["channels"] = opened
    if not opened:
        differs.append(f"channels {ours['channels']}, {ours['nvls_channels']}, NCCL {line['nChannels']}, {line['nvlsChannels']}")
    result["rings"] = rings_equal(ours["rings"], line["rings"], line["nNodes"], line["nRanks"])
    if not result["rings"]:
        differs.append(f"rings {ring_set(ours['rings'])[:2]}, NCCL {ring_set(line['rings'])[:2]}")
    trees = [collections.Counter(dict(sum_of(kind))) for kind in (ours["trees"], line["trees"])]
    result["trees"] = trees[0] == trees[1]
    for graph in ("ring", "tree", "nvls"):
        theirs, mine = line["aligned"][graph], ours[graph]
        if not theirs["nChannels"] and not mine["channels"]:
            continue
        pair = [(mine["channels"], round(mine["inside"], 3), round(mine["outside"], 3), mine["way_inside"], mine["way_outside"], int(mine["same_channels"])),
                (theirs["nChannels"], round(theirs["bwIntra"], 3), round(theirs["bwInter"], 3), theirs["typeIntra"], theirs["typeInter"], theirs["sameChannels"])]
        if pair[0] != pair[1]:
            differs.append(f"{graph} {pair[0]}, NCCL {pair[1]}")
    return result, differs


def sum_of(trees):
    counts = collections.Counter()
    for tree in trees:
        counts[shape_of(tree["parent"])] += len(tree["channels"])
    return counts.items()


def share(part, whole):
    return round(100 * part / whole, 1) if whole else None


def summarize(rows):
    """By group: percent of sizes with the same algorithm and protocol by collective, of communicators for the rest."""
    groups = collections.defaultdict(list)
    for group, result in rows:
        groups[group].append(result)
        groups["all, " + group.rsplit(", ", 1)[1]].append(result)
    summary = {}
    for group, results in sorted(groups.items()):
        entry = {"communicators": len(results)}
        for collective in COLLECTIVES:
            equal, sizes, channels = (sum(result[collective][i] for result in results) for i in range(3))
            entry[collective] = share(equal, sizes)
        entry["picks"] = share(*(sum(result[c][i] for result in results for c in COLLECTIVES) for i in (0, 1)))
        entry["channels_used"] = share(*(sum(result[c][i] for result in results for c in COLLECTIVES) for i in (2, 0)))
        for key in ("channels", "rings", "trees"):
            entry[key] = share(sum(result[key] for result in results), len(results))
        summary[group] = entry
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("espalier")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--version", help="only this one, such as 2.30")
    parser.add_argument("--only", help="only communicators whose name has this word")
    parser.add_argument("--show", action="store_true", help="what differs, on standard error")
    parser.add_argument("--check", action="store_true", help="fail below what is to hold")
    options = parser.parse_args()
    versions, refused = {}, []
    with tempfile.TemporaryDirectory() as kept:
        kept = pathlib.Path(kept)
        folder = options.folder / "xml"
        if not folder.is_dir():
            with tarfile.open(options.folder / "xml.tar.xz") as archive:
                archive.extractall(kept, filter="data")
            folder = kept / "xml"
        importer = Importer(options.espalier, folder, kept)
        for path in sorted(options.folder.glob("*.jsonl")):
            version = ".".join(path.stem.split(".")[:2])
            if options.version and version != options.version:
                continue
            rows = []
            for text in path.read_text().splitlines():
                line = json.loads(text)
                if options.only and options.only not in line["name"]:
                    continue
                topology = importer.topology(line["boxes"], line["nvlsSupport"] == 1)
                ours, why = ask(options.espalier, topology, version)
                if ours is None:
                    refused.append(f"{line['name']} ({version}): {why}")
                    continue
                result, differs = compare(line, ours)
                rows.append((group_of(line), result))
                if options.show and differs:
                    print(f"{line['name']} ({version}, NVLS {line['nvlsSupport']}): " + "; ".join(differs[:6]), file=sys.stderr)
            versions[version] = summarize(rows)
    short = [f"NCCL {version}, {group}: {entry[what]} % of {what}, {least} at least" for version, summary in versions.items() for group, least in LEAST.items()
             for entry in [summary.get(group, {})] for what in ("picks", "channels", "rings", "trees") if entry.get(what, 100) < least]
    if options.check and (short or refused or not versions):
        sys.exit("\n".join(short + refused) or "nothing was compared")
    if options.json:
        print(json.dumps({"versions": versions, "refused": refused}, indent=1))
        return
    columns = (*COLLECTIVES, "picks", "channels_used", "channels", "rings", "trees")
    for version, summary in versions.items():
        print(f"NCCL {version}, percent equal")
        print(f"{'':38}" + " ".join(f"{column:>14}" for column in ("communicators", *columns)))
        for group, entry in summary.items():
            print(f"{group:38}{entry['communicators']:>14} " + " ".join(f"{entry[column] if entry[column] is not None else '-':>14}" for column in columns))
    for text in refused:
        print("not compared: " + text)


if __name__ == "__main__":
    main()
