#!/usr/bin/env python3
"""Holds predicted training steps against measured ones.

    training.py ESPALIER RUNS.csv            a table: a row for each source, and what could not be expressed and why
    training.py ESPALIER RUNS.csv --json     the same as JSON
    training.py ESPALIER RUNS.csv --rows     every row with its prediction, too
    training.py ESPALIER RUNS.csv --ranges   between which parts of the prediction nine in ten measurements lie (compute/training.cpp has them)
    training.py ESPALIER RUNS.csv --record   writes the tables and the picture of docs/accuracy.md
    training.py ESPALIER RUNS.csv --check    exits 1 when a figure is worse than LIMITS

RUNS.csv has the columns of tests/accuracy/training. Nothing is fitted to a row or to a source: what a rank computes is predicted by `espalier compute` from
the row's GPU, sizes and parallelism; what collectives take by `espalier simulate` on the machine that follows from its GPU, GPUs per box and interconnect.
What a row does not state is filled in by rules (`Assumed` below), which know the software's year and kind, and no times.

A source is the beginning of its ids: what stands before the first digit or the first "_". For each: rows, the median factor (the larger of prediction and
measurement over the smaller), the mean absolute error (mape) and Kendall's tau over all pairs of a model and machine; over all pairs that differ by more than
5 % pairs_right, the part of them whose faster one is named.
"""
import argparse
import collections
import concurrent.futures
import csv
import itertools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import training_page

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
LIMITS = {"median": 1.085, "pairs_right": 0.88}
SIZES = [1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30]
SINGLE_BOXES = ("dgx2", "mi300x", "l40s-pcie")
MOST_BOXES = 64  # Rings and trees over more boxes take as long as over so many, but for their latency.

# What the name of a GPU has in it, its name here, the shipped machine of its boxes, and the profile of clusters of them. The first that fits.
GPUS = [
    ("gb300", "gb300", "gb300-nvl72", "nccl-blackwell"), ("gb200", "gb200", "gb200-nvl72", "nccl-blackwell"),
    ("b300", "b300", "dgx-b300-cluster", "nccl-blackwell"), ("b200", "b200", "dgx-b200-cluster", "nccl-blackwell"),
    ("gh200", "gh200", "dgx-h200-cluster", "nccl-hopper"), ("h200", "h200", "dgx-h200-cluster", "nccl-hopper"),
    ("h100-pcie", "h100-pcie", "dgx-h200-cluster", "nccl-hopper"), ("h100", "h100-sxm", "dgx-h200-cluster", "nccl-hopper"),
    ("h800", "h100-sxm", "dgx-h200-cluster", "nccl-hopper"), ("a100-40", "a100-40gb", "dgx-a100-x16", "nccl-ampere"),
    ("a100", "a100-80gb", "dgx-a100-x16", "nccl-ampere"), ("a800", "a100-80gb", "dgx-a100-x16", "nccl-ampere"), ("v100", "v100", "dgx2", "nccl-volta"),
    ("mi300", "mi300x", "mi300x", "rccl-mi300x"), ("mi325", "mi325x", "mi300x", "rccl-mi300x"), ("l40s", "l40s", "l40s-pcie", "nccl-pcie"),
]
PRECISIONS = [("fp4", "fp8"), ("fp8", "fp8"), ("float8", "fp8"), ("bf16", "bf16"), ("bfloat16", "bf16"), ("fp16", "fp16"), ("tf32", "tf32"), ("fp32", "fp32")]
# Published models whose sizes a row may leave out, by what their names have in them without other characters than letters and digits. The first that fits.
MODELS = [
    ("deepseekv3", "deepseek-v3"), ("qwen330b", "qwen3-30b-a3b"), ("qwen3235b", "qwen3-235b-a22b"), ("mixtral8x22b", "mixtral-8x22b"),
    ("mixtral8x7b", "mixtral-8x7b"), ("llama3405b", "llama-3-405b"), ("llama31405b", "llama-3-405b"), ("llama370b", "llama-3-70b"), ("llama3170b", "llama-3-70b"),
    ("llama3370b", "llama-3-70b"), ("llama38b", "llama-3-8b"), ("llama318b", "llama-3-8b"), ("llama270b", "llama-2-70b"), ("llama213b", "llama-2-13b"),
    ("llama27b", "llama-2-7b"), ("gpt3175b", "gpt-3-175b"),
]
SHAPE = ("layers", "hidden", "heads", "kv_heads", "feed_forward", "gated", "vocabulary", "tied", "positions", "experts", "experts_per_token")
SPARSE = ("deepseek-v3", "qwen3-30b-a3b", "qwen3-235b-a22b")  # With more to them than the columns say.
HOST_OF_TRAINERS = 1.93  # Megatron and its like launch so much more slowly than a bare loop; one figure for all.
OLD_PRODUCTS = 0.85  # Of today's rate: the first libraries for H100 (CUDA 11.8 to 12.0).


class Refused(Exception):
    """Why a row cannot be said."""


def whole(row, key, otherwise=None):
    return int(float(row[key])) if row.get(key) else otherwise


def measured(row):
    return float(row.get("step_time_s") or row.get("step_time_derived_s") or 0)


def source_of(identifier):
    return re.match(r"[A-Za-z][A-Za-z-]*?(?=[-_]?\d|_|$)", identifier).group() if re.match(r"[A-Za-z]", identifier) else identifier


def words_of(row):
    return " ".join(row.get(key) or "" for key in ("source", "note", "model", "interconnect")).lower()


class Assumed:
    """What a row's words say of its software."""

    def __init__(self, row, gpu):
        words = words_of(row)
        hopper_on = not gpu.startswith(("v100", "a100"))
        self.fsdp = any(word in words for word in ("fsdp", "mosaic", "torchtitan"))
        self.is_old_torch = "torch 1." in words
        self.products = 1
        unfused_words = "bert" in words or not hopper_on and not any(
            word in words for word in ("flash", "internevo", "mosaic", "torchtitan", "mpt"))
        if unfused_words:
            self.attention = "unfused"
        elif self.is_old_torch:
            self.attention = "flash1"
            self.products = OLD_PRODUCTS if hopper_on else 1
        else:
            self.attention = "flash3" if hopper_on else "flash2" if "flash-attention 2" in words or "torchtitan" in words else "flash1"
        self.kernels = "compiled" if "compile" in words or "torchtitan" in words else "eager" if self.fsdp or "internevo" in words else "fused"
        self.dropout = unfused_words
        says_not = "not overlapped" in words or "no gradient buckets" in words
        self.overlap = not says_not and ("overlap" in words or not unfused_words or "bert" in words)
        self.tensor_overlap = "tp-comm-overlap" in words or "nemo" in words or "megatron-bridge" in words
        self.causal = "bert" not in words
        # DeepSpeed's pipeline and Megatron's before April 2021 have one stage to a rank, and no part of the sequence to a tensor rank.
        is_early = "deepspeed" in words or "bigscience" in words or "bloom" in words or re.search(r"(?<!\d)20(20|19)(?!\d)|jan(uary)?[ _]?2021", words)
        self.interleaves = self.shares_sequences = not is_early
        # Gradients are added in 32 bits by FSDP's usual setting and by Megatron Core.
        self.gradient_bytes = 4 if ("DEFAULT" in (row.get("note") or "") or (hopper_on and self.kernels == "fused")) else None
        self.host = HOST_OF_TRAINERS if self.kernels == "fused" else 1


def gpu_of(row):
    name = row["gpu"].lower().replace(" ", "-")
    for part, gpu, machine, profile in GPUS:
        if part in name:
            return gpu, machine, profile
    raise Refused(f"no GPU like {row['gpu']}")


def precision_of(row):
    text = (row.get("precision") or "fp16").lower()
    for part, name in PRECISIONS:
        if part in text:
            return name
    if "amp" in text:
        return "fp16"
    raise Refused(f"no precision {row['precision']}")


def sharding_of(row):
    """(kind, ranks of a group or None)."""
    text = (row.get("sharding") or "none").lower()
    group = re.search(r"groups of (\d+)", text)
    kinds = [("full", ("full", "zero-3", "zero3", "fsdp", "hsdp")), ("gradients", ("gradients", "zero-2", "zero2")),
             ("optimizer", ("optimizer", "zero-1", "zero1", "distributed"))]
    kind = next((name for name, parts in kinds if any(part in text for part in parts)), "none")
    return kind, int(group.group(1)) if group else None


def recompute_of(row):
    text = (row.get("recompute") or "none").lower()
    return "full" if text.startswith("full") else "selective" if text.startswith(("sel", "op", "sac")) else "none"


def published_model(row):
    name = re.sub(r"[^a-z0-9]", "", row["model"].lower())
    return next((known for part, known in MODELS if part in name), None)


def parallelism(row):
    """(tensor, pipeline, context, data), as stated or as the note finds likely."""
    tensor, pipeline = whole(row, "TP"), whole(row, "PP")
    if tensor is None or pipeline is None:
        likely = re.search(r"TP=(\d+) PP=(\d+)", row.get("note") or "")
        if likely:
            tensor, pipeline = int(likely.group(1)), int(likely.group(2))
    tensor, pipeline, context = tensor or 1, pipeline or 1, whole(row, "CP", 1)
    data = whole(row, "DP") or whole(row, "gpus") // (tensor * pipeline * context)
    if tensor * pipeline * context * data != whole(row, "gpus"):
        data = whole(row, "gpus") // (tensor * pipeline * context)
    if tensor * pipeline * context * data != whole(row, "gpus"):
        raise Refused(f"TP x PP x CP x DP are not its {row['gpus']} GPUs")
    return tensor, pipeline, context, data


def plans_of(row):
    """The questions that a row may be: several where it does not say the micro-batch or the stages; the fastest that fits counts."""
    gpu, machine, profile = gpu_of(row)
    known = published_model(row)
    for key in ("layers", "hidden", "heads", "seq_len", "gpus", "global_batch"):
        if not row.get(key) and not (known and key in ("layers", "hidden", "heads")):
            raise Refused(f"{key} is not stated")
    if not measured(row):
        raise Refused("no step time")
    tensor, pipeline, context, data = parallelism(row)
    assumed = Assumed(row, gpu)
    kind, group = sharding_of(row)
    gated = row.get("gated") == "yes"
    batch, experts = whole(row, "global_batch"), whole(row, "experts", 0)
    vocabulary = 0 if not assumed.causal else whole(row, "vocab") or (32000 if gated else 50257)
    layers, sequence = whole(row, "layers"), whole(row, "seq_len")
    plan = {
        "layers": layers, "hidden": whole(row, "hidden"), "heads": whole(row, "heads"), "kv_heads": whole(row, "kv_heads", 0),
        "feed_forward": whole(row, "ffn", 0), "gated": gated, "causal": assumed.causal, "vocabulary": -(-vocabulary // 128) * 128, "tied": not gated,
        "positions": 0 if gated else sequence, "experts": experts, "experts_per_token": whole(row, "top_k", 1), "tensor": tensor, "pipeline": pipeline,
        "context": context, "data": data, "batch": batch, "sequence": sequence, "expert": whole(row, "EP", 1) if experts or known in SPARSE else 1,
        "sequence_parallel": row.get("SP") == "yes" or (not row.get("SP") and tensor > 1 and not assumed.dropout and assumed.shares_sequences), "sharding": kind,
        "recompute": recompute_of(row), "kernels": assumed.kernels,
        "attention": assumed.attention, "precision": precision_of(row), "dropout": assumed.dropout, "host": assumed.host, "products": assumed.products,
        "overlap_grad_reduce": assumed.overlap, "overlap_param_gather": assumed.overlap, "tp_comm_overlap": assumed.tensor_overlap,
    }
    if known in SPARSE or not (layers and row.get("hidden") and row.get("heads")):
        plan = {"model": known, **{key: value for key, value in plan.items() if key not in SHAPE}}
    elif plan["hidden"] % plan["heads"]:
        plan["head_size"] = -(-plan["hidden"] // plan["heads"])
    if plan["expert"] > data * context:
        plan["expert"] = data * context
        plan["expert_tensor"] = 1
    if group:
        plan["shard_group"] = group
    if assumed.gradient_bytes:
        plan["gradient_bytes"] = assumed.gradient_bytes
    micro = whole(row, "micro_batch")
    micros = [micro] if micro else [size for size in (1, 2, 4, 8, 16) if batch % (data * size) == 0]
    stages = whole(row, "VP")
    many = [stages] if stages else [1] if not assumed.interleaves else [count for count in (1, 2, 3, 4, 5, 6, 8) if layers and layers % (pipeline * count) == 0] or [1] if pipeline > 1 else [1]
    plans = [{**plan, "micro_batch": size, "virtual_stages": count} for size in micros for count in many
             if count == 1 or stages or batch // (data * size) % pipeline == 0]
    if not plans:
        raise Refused(f"no micro-batch divides its batch {batch} over {data} replicas")
    return gpu, (machine, profile, cluster_of(row, machine)), plans


def cluster_of(row, machine):
    """What the machine of a row is made with: (words of `topo gen cluster`, or parameters of the shipped one, GPUs of a box)."""
    gpus, of_box = whole(row, "gpus"), whole(row, "gpus_per_node", 8) or 8
    boxes = -(-gpus // of_box)
    written = row.get("interconnect") or ""
    nics = re.search(r"(\d+)(?: ?x ?| )(?:[A-Za-z][A-Za-z-]* )*(\d{2,4}) ?G(?:b|bit|bps)", written)
    of_node = re.search(r"(\d{3,4}) ?Gb/s[ A-Za-z]* per (?:node|box)", written)
    if machine == "dgx2" and boxes > 1:
        return ("generate", boxes, of_box, 8, 100, "130 GB/s"), of_box
    if machine == "dgx2":
        return ("ship", 1, ()), 16
    if boxes > 1 and (nics or of_node) and machine in ("dgx-a100-x16", "dgx-h200-cluster"):
        count, rate = (int(nics.group(1)), int(nics.group(2))) if nics else (8, int(of_node.group(1)) // 8)
        if count in (1, 2, 4, 8) and not (machine == "dgx-a100-x16" and rate == 200 and count == 8):
            rate_of_gpu = "300 GB/s" if machine == "dgx-a100-x16" else "450 GB/s"
            return ("generate", boxes, 8, count, rate, rate_of_gpu), 8
    if machine == "mi300x":
        return (("ship", 1, ()) if boxes == 1 else ("generate", boxes, 8, 8, 400, "448 GB/s")), 8
    if "nvl72" in machine:
        return (("ship", 1, ()) if gpus <= 72 else ("generate", -(-gpus // 72), 72, 72, 400, "900 GB/s")), 72
    if machine == "l40s-pcie":
        if boxes > 1:
            raise Refused("no cluster of PCIe boxes")
        return ("ship", 1, ()), 8
    return ("ship", boxes, ("boxes",)), 8


class Calls:
    """What calls take, by `espalier simulate`; each once."""

    def __init__(self, espalier, folder, kept):
        self.espalier, self.folder, self.kept = espalier, folder, kept
        self.tables, self.machines = {}, {}
        if kept and kept.exists():
            self.known = json.loads(kept.read_text(encoding="utf-8"))
        else:
            self.known = {}

    def machine_words(self, machine, profile, made, boxes):
        if made[0] == "ship" or (boxes == 1 and ("nvl72" in machine or machine in SINGLE_BOXES)):
            return [machine] + (["-p", f"boxes={max(2, boxes)}"] if made[0] == "ship" and made[2] else [])
        key = (profile, made[2:], boxes)
        if key not in self.machines:
            path = pathlib.Path(self.folder) / f"cluster{len(self.machines)}.yaml"
            _, _, gpus, nics, rate, nvlink = made
            subprocess.run([self.espalier, "topo", "gen", "cluster", "--boxes", str(boxes), "--gpus", str(gpus), "--nics", str(nics), "--nic-rate",
                            f"{rate} Gbit/s", "--nvlink-bandwidth", nvlink, "--profile", profile, "-o", str(path)], check=True, capture_output=True, cwd=REPOSITORY)
            self.machines[key] = path
        return [str(self.machines[key])]

    @staticmethod
    def ranks(machine, of_box, count, stride):
        """The nodes of ranks 0, stride, 2 stride, ...; of at most MOST_BOXES boxes."""
        numbers = [i * stride for i in range(count)]
        boxes = sorted({number // of_box for number in numbers})[:MOST_BOXES]
        place = {box: i for i, box in enumerate(boxes)}
        if "nvl72" in machine and max(numbers) < 72:
            return [f"tray{number // 4}.gpu{number % 4}" for number in numbers], 1
        single = machine in SINGLE_BOXES
        names = [f"gpu{number % of_box}" if single and len(boxes) == 1 else f"box{place[number // of_box]}.gpu{number % of_box}"
                 for number in numbers if number // of_box in place]
        return names, len(boxes)

    def price(self, key):
        (machine, profile, (made, of_box)), kind, count, stride = key
        names, boxes = self.ranks(machine, of_box, count, stride)
        if len(names) < 2:
            return "no such ranks on " + machine
        words = self.machine_words(machine, profile, made, boxes)
        name = "send_recv" if kind == "send_recv" else kind
        command = [self.espalier, "--json", "simulate", *words, name, "-a", "nccl", "--profile", profile, "--ranks", ",".join(names),
                   "-s", ",".join(map(str, SIZES))]
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
        if done.returncode:
            return done.stderr.strip().splitlines()[0] if done.stderr else "simulate failed"
        points = [[result["size"], result["time"]] for result in json.loads(done.stdout)["results"]]
        # Ranks with the same NIC share it: groups side by side take turns there.
        crosses = len({number * stride // of_box for number in range(count)}) > 1
        at_once = min(stride, of_box)
        nics = made[3] if made[0] == "generate" else 8
        if crosses and at_once > nics:
            points = [[size, time * at_once / nics] for size, time in points]
        return points

    def prepare(self, keys, progress):
        self.tables.update({key: self.known[repr(key)] for key in keys if repr(key) in self.known})
        keys = [key for key in keys if key not in self.tables]
        for key in keys:  # Files first, one by one.
            machine, profile, (made, of_box) = key[0]
            names, boxes = self.ranks(machine, of_box, key[2], key[3])
            if len(names) > 1:
                self.machine_words(machine, profile, made, boxes)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done, (key, points) in enumerate(zip(keys, pool.map(self.price, keys)), 1):
                self.tables[key] = points
                if progress:
                    print(f"\rcalls {done}/{len(keys)}", end="", file=sys.stderr)
        if progress and keys:
            print(file=sys.stderr)
        if self.kept:
            self.known.update({repr(key): points for key, points in self.tables.items()})
            self.kept.write_text(json.dumps(self.known), encoding="utf-8")


def ask(espalier, questions):
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([espalier, "compute", "--batch", "-"], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def best_of(answers):
    """The fastest that fits; where none does, the one that needs the least memory (its sizes are stated: it ran)."""
    fits = [answer for answer in answers if answer["fits"]]
    return min(fits, key=lambda answer: answer["seconds"]) if fits else min(answers, key=lambda answer: answer["memory"]["total"])


def predict(espalier, rows, progress=False, kept=None):
    """[(row, answer)], and what was refused: [(row, why)]. Keeps the questions in each answer."""
    asked, refused = [], []
    for row in rows:
        try:
            gpu, place, plans = plans_of(row)
            asked += [(row, gpu, place, plan) for plan in plans]
        except Refused as why:
            refused.append((row, str(why)))
    needs = ask(espalier, [{"gpu": gpu, "training": plan} for _, gpu, _, plan in asked])
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(espalier, folder, kept)
        keys = {(place, call["kind"], call["count"], call["stride"]): None for (_, _, place, _), need in zip(asked, needs) for call in need.get("calls", [])}
        calls.prepare(list(keys), progress)
    questions, of_question, why_not = [], [], {}
    for (row, gpu, place, plan), need in zip(asked, needs):
        if "error" in need:
            why_not[row["id"]] = need["error"]
            continue
        tables = []
        for call in need["calls"]:
            points = calls.tables[place, call["kind"], call["count"], call["stride"]]
            if isinstance(points, str):
                why_not[row["id"]] = points
                break
            tables.append({"kind": call["kind"], "count": call["count"], "stride": call["stride"], "seconds": points})
        else:
            questions.append({"gpu": gpu, "training": {**plan, "calls": tables}})
            of_question.append(row)
    answers = collections.defaultdict(list)
    for row, question, answer in zip(of_question, questions, ask(espalier, questions)):
        if "error" in answer:
            why_not[row["id"]] = answer["error"]
        else:
            answers[row["id"]].append({**answer, "question": question})
    found = []
    for row in {row["id"]: row for row, *_ in asked}.values():
        if answers[row["id"]]:
            found.append((row, best_of(answers[row["id"]])))
        else:
            refused.append((row, why_not.get(row["id"], "no answer")))
    return found, refused


def pairs_of(rows):
    """Pairs of one source, model and machine: [(measured ratio, predicted ratio)]."""
    groups = collections.defaultdict(list)
    for row, answer in rows:
        work = whole(row, "global_batch") * whole(row, "seq_len") / whole(row, "gpus")  # Tokens of a GPU: rates are compared.
        key = (source_of(row["id"]), row["model"], row["layers"], row["hidden"], row["seq_len"], row["gpu"], row["gpus"], row.get("precision"))
        groups[key].append((measured(row) / work, answer["seconds"] / work))
    for members in groups.values():
        yield from ((a[0] / b[0], a[1] / b[1]) for a, b in itertools.combinations(members, 2))


def summarise(found):
    by_source = collections.defaultdict(list)
    for row, answer in found:
        by_source[source_of(row["id"])].append((row, answer))
    sources = {}
    for source, rows in by_source.items():
        ratios = [answer["seconds"] / measured(row) for row, answer in rows]
        pairs = [(m, p) for m, p in pairs_of(rows) if m != 1]
        agree = sum(1 if (m > 1) == (p > 1) else -1 for m, p in pairs)
        sources[source] = {"rows": len(rows), "median": round(statistics.median(max(r, 1 / r) for r in ratios), 4),
                           "mape": round(statistics.mean(abs(r - 1) for r in ratios), 4), "tau": round(agree / len(pairs), 3) if pairs else None}
    ratios = [answer["seconds"] / measured(row) for row, answer in found]
    pairs = [(m, p) for m, p in pairs_of(found) if max(m, 1 / m) > 1.05]
    return {"sources": sources, "median": round(statistics.median(max(r, 1 / r) for r in ratios), 4) if ratios else None,
            "mape": round(statistics.mean(abs(r - 1) for r in ratios), 4) if ratios else None, "rows": len(found), "pairs": len(pairs),
            "pairs_right": round(sum((m > 1) == (p > 1) for m, p in pairs) / len(pairs), 4) if pairs else None}


def range_of(members, widened=1.05):
    """(low, high) of nine in ten of [(measured over predicted, source)], sources weighing as the root of their rows."""
    counts = collections.Counter(source for _, source in members)
    weighed = sorted((ratio, 1 / math.sqrt(counts[source])) for ratio, source in members)
    whole_weight = sum(weight for _, weight in weighed)

    def at(part):
        passed = 0
        for ratio, weight in weighed:
            passed += weight
            if passed >= part * whole_weight:
                return ratio
        return weighed[-1][0]
    return at(0.05) / widened, at(0.95) * widened


def print_ranges(found):
    """A line for each generation, in one box and in several; encoders, whose tokens are not all computed, left out."""
    classes = collections.defaultdict(list)
    for row, answer in found:
        if Assumed(row, gpu_of(row)[0]).causal:
            box = "one" if whole(row, "gpus") <= 8 else "several"
            classes[gpu_of(row)[0].split("-")[0], box].append((measured(row) / answer["seconds"], source_of(row["id"])))
    for (gpu, box), members in sorted(classes.items()):
        low, high = range_of(members)
        held = []
        for source in {source for _, source in members}:
            others = [member for member in members if member[1] != source]
            if others:
                least, most = range_of(others)
                held.append(statistics.mean(least <= ratio <= most for ratio, of in members if of == source))
        print(f"{gpu:6} {box:8} {len(members):5} rows of {len({s for _, s in members})} sources: {low:.2f} to {high:.2f}",
              f"; others' range holds {statistics.mean(held):.0%} of a source in the mean" if held else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("espalier")
    parser.add_argument("runs", type=pathlib.Path)
    for flag in ("--json", "--rows", "--ranges", "--record", "--check"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--questions", type=pathlib.Path, help="write the questions that were asked, a line of JSON each")
    parser.add_argument("--calls", type=pathlib.Path, help="a file to keep what calls take from one run to the next")
    flags = parser.parse_args()
    flags.espalier = str(pathlib.Path(flags.espalier).resolve()) if "/" in flags.espalier else flags.espalier
    with open(flags.runs, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found, refused = predict(flags.espalier, rows, sys.stderr.isatty(), flags.calls)
    summary = summarise(found)
    reasons = collections.Counter((source_of(row["id"]), why) for row, why in refused)
    summary["not_expressed"] = [{"source": source, "rows": count, "why": why} for (source, why), count in reasons.items()]
    if flags.questions:
        flags.questions.write_text("".join(json.dumps({"id": row["id"], "measured": measured(row), **answer["question"]}) + "\n" for row, answer in found))
    if flags.json:
        print(json.dumps(summary, indent=1))
    else:
        print(f"{'source':16} {'rows':>5} {'median':>7} {'mape':>6} {'tau':>6}")
        for source, figures in summary["sources"].items():
            tau = "-" if figures["tau"] is None else f"{figures['tau']:.2f}"
            print(f"{source:16} {figures['rows']:5} {figures['median']:7.3f} {figures['mape']:6.1%} {tau:>6}")
        right = f"; of {summary['pairs']} pairs over 5 % apart {summary['pairs_right']:.1%} named right" if summary["pairs"] else ""
        print(f"all: {summary['rows']} rows, median factor {summary['median']:.3f}, mape {summary['mape']:.1%}{right}" if found
              else "nothing was expressed")
        for entry in summary["not_expressed"]:
            print(f"not expressed: {entry['rows']} of {entry['source']}: {entry['why']}")
    if flags.ranges:
        print_ranges(found)
    if flags.record:
        training_page.record(summary, [(source_of(row["id"]), measured(row), answer["seconds"]) for row, answer in found])
    if flags.rows:
        for row, answer in found:
            print(row["id"], f"{answer['seconds'] / measured(row):.3f} predicted {answer['seconds']:.5g} measured {measured(row):.5g}",
                  "" if answer["fits"] else f"needs {answer['memory']['total'] / 1e9:.1f} of {answer['memory']['of'] / 1e9:.1f} GB")
    if flags.check:
        worse = [key for key, limit in LIMITS.items() if summary[key] is None or (summary[key] > limit if key == "median" else summary[key] < limit)]
        if worse:
            sys.exit(f"worse than LIMITS: {', '.join(worse)}")


if __name__ == "__main__":
    main()
