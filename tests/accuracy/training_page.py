"""What docs/accuracy.md shows of training steps."""
import collections

import pictures

# What the prefixes of ids stand for.
SOURCES = {
    "vts": "vTrain, one box of 2 to 8 A100", "sc": "Megatron, SC 2021, 32 to 3,072 A100", "jan": "Megatron, January 2021 (micro-batch not stated)",
    "meg": "Megatron 2020, V100 and A100, 1 to 1,024", "mch": "Megatron Core, 48 to 6,144 H100 (micro-batch not stated)",
    "seqpar": "Korthikanti et al., 8 to 512 A100", "ie": "InternEvo, 8 to 1,024 A100", "mpt": "MosaicML, FSDP, 8 to 512 A100 and H100",
    "nemo": "NeMo 24.07, fp8, 8 to 512 H100", "fa": "flash-attention's GPT, 8 A100", "bert": "BERT-large, 1 to 256 A100 and V100",
}


def record(summary, steps):
    """`summary` as training.summarise gives it; `steps`: [(source, measured, predicted seconds)]."""
    lines = ["| source | rows | median factor | mean absolute error | tau |", "|---|---|---|---|---|"]
    for source, figures in summary["sources"].items():
        tau = "" if figures["tau"] is None else f" {figures['tau']:.2f}"
        lines.append(f"| {source}: {SOURCES.get(source, '')} | {figures['rows']:,} | {figures['median']:.2f} | {figures['mape']:.1%} |{tau} |".replace("%", " %"))
    pictures.write_between("training", "\n".join(lines))
    groups = collections.defaultdict(list)
    for source, took, predicted in steps:
        groups[source].append((took, predicted))
    pictures.write("accuracy-training.svg", pictures.scatter("Predicted over measured time of training steps against the measured one, by source", groups))
