"""Every verb with its ways of being used, and a value for every option that has to matter there.

VERBS maps a verb to its modes and its options. A mode is a command line to which options are added; an option has the words
that are added for it. A mode may have its own words for an option, or a reason (a string) why it cannot show there.
"""

SHOWN_NOWHERE = {  # Options that change no byte of what a run prints, for a reason.
    "--jobs": "how many threads work: rows are the same by design",
    "--timeout": "how long to wait for what does not come",
    "--sockets": "connections of a pair: seen in the time alone",
    "--checksum": "what is wrong on the wire, and nothing is",
    "--secret-file": "who may join, and only the own ranks do",
    "--buffers": "where the data lies: seen in the time alone",
    "--warmup_iters": "what is not measured: seen in the time alone",
}

TOPOLOGY = {
    "--parameter": ["-p", "rate=30"],
    "--ranks": ["--ranks", "gpu[0-2]"],
    "--strict": ["--strict"],
    "--without": ["--without", "gpu0-gpu1"],
    "--slow": ["--slow", "port=0.5"],
}
COLLECTIVE = {"--root": ["-r", "2"], "--shares": ["--shares", "3,1,1,2"], "--matrix": ["--matrix", "zipf:1,seed=1"]}
GROUPS = {
    "--groups": ["--groups", "gpu[0-1];gpu[2-3]"],
    "--groups-of": ["--groups-of", "2"],
    "--groups-across": ["--groups-across", "2"],
}
PACKING = {
    "--max-trees": ["--max-trees", "1"],
    "--max-depth": ["--max-depth", "1"],
    "--k": ["--k", "3"],
    "--gap": ["--gap", "60%"],
}
CONDITIONS = {
    "--protocol": ["--protocol", "ll"],
    "--payload": ["--payload", "50%"],
    "--launch": ["--launch", "5us"],
    "--copy-engines": ["--copy-engines", "1"],
    "--per-message": ["--per-message", "2us"],
    "--jitter": ["--jitter", "10%"],
    "--seed": ["--seed", "7"],
}
SIZES = {
    "--minbytes": ["-b", "4K"],
    "--maxbytes": ["-e", "2M"],
    "--stepfactor": ["-f", "8"],
    "--stepbytes": ["-i", "256K"],
    "--size": ["-s", "3M"],
    "--datatype": ["-d", "double"],
}
PREDICTION = {
    **TOPOLOGY, **COLLECTIVE, **PACKING, **CONDITIONS,
    "--size": ["-s", "3M"],
    "--datatype": ["-d", "double"],
    "--algorithm": ["-a", "tree"],
    "--chunk": ["--chunk", "1K"],
    "--ahead": ["--ahead", "1"],
    "--model": ["--model", "fair"],
    "--topology": ["-t", "configs/dgx-a100.yaml"],
    "--scenario": ["--scenario", "job.yaml"],
}
RDMA = {
    "--verbs-device": ["--verbs-device", "rxe0"],
    "--verbs-port": ["--verbs-port", "1"],
    "--verbs-gid": ["--verbs-gid", "1"],
    "--verbs-mtu": ["--verbs-mtu", "1024"],
    "--verbs-traffic-class": ["--verbs-traffic-class", "8"],
    "--verbs-service-level": ["--verbs-service-level", "1"],
    "--verbs-retries": ["--verbs-retries", "3"],
    "--verbs-timeout": ["--verbs-timeout", "19"],
}
TRACE = {"--trace": ["--trace", "out.json"], "--trace-every": ["--trace-every", "2"]}
SIMULATE = {**PREDICTION, **SIZES, **TRACE, "--critical-path": ["--critical-path"], "--ecmp": ["--ecmp", "2"], "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"],
            "--csv": ["--csv"], "--split": ["--split", "all"]}
OTHER_RATES = ["-t", "other.yaml"]

# Packings of a small machine are what they are within any limits.
SHOWN = {option: "shown by 'packing'" for option in PACKING}
TREES = ["dgx1v-nvlink", "all_gather", "-a", "packing"]
NEEDS_JITTER = {"--seed": ["--jitter", "10%", "--seed", "7"]}

WHAT_RUNS_THERE = {"--profile": ["--profile", "nccl-hopper"], "--gpu": ["--gpu", "h200"], "--in-network": ["--in-network"]}
GENERATED = {**WHAT_RUNS_THERE, "--bandwidth": ["--bandwidth", "7 GB/s"], "--latency": ["--latency", "7 us"], "--output": ["-o", "out.yaml"]}

VERBS = {
    "simulate": (SIMULATE, {
        "topology": (["cluster.yaml", "all_gather", "-a", "packing", "-e", "1M", "-b", "1K"],
                     {**SHOWN, "--minbytes": ["-b", "4K"], "--seed": NEEDS_JITTER["--seed"]}),
        "rooted": (["cluster.yaml", "broadcast", "-a", "ring", "-s", "1M"],
                   {"--ahead": "one ring: nothing to keep in step; shown by 'topology'"}),
        "traced": (["cluster.yaml", "all_gather", "-a", "ring", "-s", "1M", "--chunk", "64K", "--trace", "out.json"],
                   {"--trace": "already there", "--chunk": "shown by 'rooted'", **NEEDS_JITTER}),
        "document": (["--json", "cluster.yaml", "all_gather", "-a", "packing", "-s", "1M"], SHOWN),
        "plan": (["plan.json", "-b", "16K", "-e", "1M"], {"--topology": OTHER_RATES, "--seed": NEEDS_JITTER["--seed"],
                                                        "--minbytes": ["-b", "4K"], "--maxbytes": ["-e", "2M"]}),
        "plan elsewhere": (["plan.json", "-s", "1M", "-t", "cluster.yaml"], {"--topology": OTHER_RATES}),
        "scenario": (["--scenario", "job.yaml"], {"--scenario": ["--scenario", "link-dies"]}),
        "scenario on": (["cluster.yaml", "--scenario", "job.yaml"], {"--scenario": ["--scenario", "link-dies"]}),
        "training": (["--scenario", "step.yaml"], {"--scenario": ["--scenario", "link-dies"]}),
        "splits": (["--scenario", "step.yaml", "--split", "pipeline=1,2"], {"--scenario": ["--scenario", "training-step"], "--split": ["--split", "tensor=1"]}),
    }),
    "explain": ({**PREDICTION, "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"], "--measured": ["--measured", "measured-trace.json"],
                 "--csv": ["--csv"]}, {
        "topology": (["cluster.yaml", "all_gather", "-a", "packing", "-s", "1M"], SHOWN),
        "plan": (["plan.json"], {"--topology": OTHER_RATES}),
        "measured": (["cluster.yaml", "all_reduce", "--measured", "perf.log", "--profile", "nccl-hopper"],
                     {"--measured": ["--measured", "measured-trace.json", "--profile", ""], "--size": ["-s", "4M"],
                      "--nccl-version": ["--nccl-version", "2.3"]}),
        "traced": (["plan.json", "--measured", "measured-trace.json"], {"--topology": OTHER_RATES}),
        "scenario": (["--scenario", "job.yaml"], {"--scenario": ["--scenario", "link-dies"]}),
    }),
    "report": ({**{option: words for option, words in SIMULATE.items() if option not in ("--critical-path", "--csv", "--split")},
                "--output": ["-o", "out.html"], "--svg": ["--svg", "."], "--png": ["--png", "."], "--measured": ["--measured", "measured.json"], "--timeline": ["--timeline", "1M"],
                "--collective": ["--collective", "all_reduce"]}, {
        "results": (["perf.log", "measured.json"], {}),
        "topology": (["cluster.yaml", "all_gather", "-a", "packing", "-e", "1M", "-b", "1K"],
                     {**SHOWN, "--minbytes": ["-b", "4K"], "--seed": NEEDS_JITTER["--seed"], "--measured": "shown by 'measured'",
                      "--timeline": ["--timeline", "4K"]}),
        "measured": (["cluster.yaml", "all_reduce", "-a", "ring,tree"],
                     {**SHOWN, "--minbytes": ["-b", "16K", "-e", "16M"], "--maxbytes": ["-e", "16M"], "--seed": NEEDS_JITTER["--seed"], "--measured": ["--measured", "measured-trace.json"],
                      "--shares": "all_reduce has no shards", "--matrix": "all_reduce has no blocks", "--trace": "already shown", "--trace-every": "already shown"}),
        "document": (["--json", "cluster.yaml", "all_gather", "-a", "packing", "-s", "1M"],
                     {**SHOWN, "--measured": "shown by 'measured'", "--timeline": "one size", "--seed": NEEDS_JITTER["--seed"]}),
        "plan": (["plan.json", "-b", "16K", "-e", "1M"], {"--topology": OTHER_RATES, "--seed": NEEDS_JITTER["--seed"],
                                                        "--minbytes": ["-b", "4K"], "--maxbytes": ["-e", "2M"],
                                                        "--timeline": ["--timeline", "16K"]}),
        "scenario": (["--scenario", "job.yaml"], {"--scenario": ["--scenario", "link-dies"]}),
        "results": (["predicted.json", "perf.log", "measured-trace.json"], {}),
    }),
    "bound": ({**TOPOLOGY, **COLLECTIVE, **GROUPS, "--csv": ["--csv"]}, {
        "all": (["cluster.yaml"], {}),
        "one": (["cluster.yaml", "all_gather"], {}),
        "rooted": (["cluster.yaml", "scatter"], {}),
        "groups": (["cluster.yaml", "scatter", "--groups-of", "4"],
                   {"--groups-of": ["--groups-of", "2"], "--shares": "groups with unequal shards are refused", "--matrix": "refused with its collective"}),
    }),
    "plan": ({**TOPOLOGY, **COLLECTIVE, **GROUPS, **PACKING,
              "--algorithm": ["-a", "tree"], "--size": ["-s", "1K"], "--output": ["-o", "out.json"],
              "--rank": ["--rank", "1", "-o", "part.json"], "--from": ["--from", "packing.json"], "--verbose": ["-v"], "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"], "--csv": ["--csv"]}, {
        "one": (["cluster.yaml", "all_gather", "-a", "packing", "-v"],
                {**SHOWN, "--verbose": "already there", "--from": "quicker, and the same plan"}),
        "packing": (TREES, {"--from": "shown by 'one'", "--root": "shown by 'rooted'", "--strict": "nothing is odd",
                            "--parameter": "a plain file", "--shares": ["--shares", "3,1,1,2,1,1,1,1"],
                            "--slow": ["--slow", "nvlink2=0.5"], "--size": ["-s", "1K"], "--gap": ["--gap", "30%"]}),
        "rooted": (["cluster.yaml", "scatter"], {"--from": "quicker, and the same plan"}),
        "groups": (["cluster.yaml", "scatter", "--groups-of", "4"], {"--output": ["-o", "out-%g.json"], "--shares": "groups with unequal shards are refused", "--matrix": "refused with its collective"}),
    }),
    "tune": ({**TOPOLOGY, **COLLECTIVE, "--algorithm": ["-a", "tree"], "--minbytes": ["-b", "4K"], "--maxbytes": ["-e", "2M"],
              "--stepfactor": ["-f", "8"], "--datatype": ["-d", "double"], "--tolerance": ["--tolerance", "60%"], "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"], "--nccl-tuner": ["--nccl-tuner", "out.conf"], "--csv": ["--csv"]}, {
        "one": (["cluster.yaml", "all_gather", "-e", "1M"], {}),
        "rooted": (["cluster.yaml", "scatter", "-e", "1M"], {}),
    }),
    "nccl": ({**TOPOLOGY, **SIZES, "--profile": ["--profile", "nccl-hopper"],
              "--nccl-version": ["--nccl-version", "2.27"], "--csv": ["--csv"]}, {
        "one": (["dgx-h100-x4", "all_reduce"], {"--parameter": "a plain file", "--strict": "nothing is odd", "--ranks": ["--ranks", "box0.gpu[0-3]"], "--without": ["--without", "box0.nic0"],
                                                "--slow": ["--slow", "nvlink4=0.5"], "--profile": ["--profile", "nccl-ampere"],
                                                "--maxbytes": ["-e", "2G"]}),
    }),
    "verify": ({"--topology": OTHER_RATES, "--csv": ["--csv"]}, {"plan": (["plan.json"], {"--topology": ["-t", "dgx-a100"]})}),
    "export": ({"--topology": OTHER_RATES, "--as": ["--as", "dot"], "--dialect": ["--dialect", "rccl"], "--size": ["-s", "3M"],
                "--datatype": ["-d", "double"], "--output": ["-o", "out.txt"]}, {
        "csv": (["plan.json", "--as", "csv"], {"--as": "already there", "--topology": "what is written has no rates"}),
        "msccl": (["plan.json", "--as", "msccl"], {"--as": "already there", "--topology": "what is written has no rates"}),
        "goal": (["plan.json", "--as", "goal", "-s", "100"], {
            "--as": "already there", "--topology": "what is written has no rates", "--size": "already there"}),
    }),
    "import": ({**TOPOLOGY, "--output": ["-o", "out.json"], "--as": ["--as", "mscclpp"], "--collective": ["--collective", "all_reduce"]}, {
        "msccl": (["plan.xml", "cluster.yaml"], {"--collective": "of NCCL's rings: shown by 'rings'"}),
        "rings": (["rings.xml", "cluster.yaml", "--collective", "all_gather"], {"--collective": "already there"})}),
    "sweep": ({"--parameter": ["-p", "rate=10,30"], "--collectives": ["-c", "broadcast"], "--root": ["-r", "2"],
               "--algorithms": ["-a", "tree"], "--sizes": ["-s", "1K"], "--minbytes": ["-b", "4K"], "--maxbytes": ["-e", "2M"],
               "--stepfactor": ["-f", "8"], "--stepbytes": ["-i", "16K"], "--datatype": ["-d", "double"],
               "--chunks": ["--chunks", "1K"], "--models": ["--models", "fair"], "--protocols": ["--protocols", "ll"],
               "--copy-engines": ["--copy-engines", "1"], "--profiles": ["--profiles", "nccl-ampere"], "--without": ["--without", "gpu0-gpu1"],
               "--slow": ["--slow", "port=0.5"], "--failures": ["--failures", "links"], "--jitter": ["--jitter", "5%"],
               "--seeds": ["--seeds", "4,5"], "--matrix": ["--matrix", "zipf:1"], "--spec": ["--spec", "sweep.yaml"], "--out": ["-o", "out.csv"],
               "--resume": ["--resume"], "--shard": ["--shard", "1/2"], "--jobs": ["-j", "1"], "--timings": ["--timings"],
               "--dry-run": ["--dry-run"], "--scenario": ["--scenario", "job.yaml"], "--split": ["--split", "all"]}, {
        "range": (["cluster.yaml", "-a", "ring", "-b", "1K", "-e", "64K"], {"--stepfactor": ["-f", "2"]}),
        "list": (["cluster.yaml", "-a", "ring", "-s", "4K,8K"], {}),
        "rooted": (["cluster.yaml", "-c", "broadcast", "-a", "ring", "-s", "4K"],
                   {"--shard": ["--shard", "2/2"], "--spec": "the command line says all that a file could"}),
        "jitter": (["cluster.yaml", "-a", "ring", "-s", "4K,8K", "--jitter", "5%"], {}),
        "blocks": (["cluster.yaml", "-c", "all_to_all", "-a", "pairwise", "-s", "4K"],
                   {"--shard": ["--shard", "2/2"], "--spec": "the command line says all that a file could"}),
        "file": (["cluster.yaml", "-a", "ring", "-s", "4K,8K", "-o", "one.csv", "--resume"], {"--resume": "already there"}),
        "scenarios": (["--scenario", "step.yaml", "--split", "pipeline=1,2"], {"--split": ["--split", "tensor=1"], "--shard": ["--shard", "2/2"]}),
        "resumed scenarios": (["--scenario", "job.yaml", "-o", "steps.csv", "--resume"], {"--resume": "already there", "--shard": "the row is there already", "--scenario": "already there"}),
        "spec": (["--spec", "sweep.yaml"], {"--shard": ["--shard", "2/2"]}),
        "counted": (["cluster.yaml", "--dry-run"], {"--dry-run": "already there", "--algorithms": ["-a", "tree,ring"], "--chunks": ["--chunks", "1K,2K"],
                    "--collectives": ["-c", "all"], "--models": ["--models", "all"], "--protocols": ["--protocols", "all"],
                    "--copy-engines": ["--copy-engines", "1,2"], "--profiles": ["--profiles", "ideal,nccl-ampere"], "--without": ["--without", "gpu0-gpu1"],
                    "--jitter": ["--jitter", "5%,6%"], "--datatype": "a count has no types", "--slow": "as many runs",
                    "--sizes": ["-s", "1K"], "--root": ["-c", "broadcast", "-r", "9"], "--spec": ["--spec", "sweep.yaml"]}),
    }),
    "merge": ({"--out": ["-o", "out.csv"]}, {"rows": (["one.csv", "two.csv"], {})}),
    "compare": ({"--fail-above": ["--fail-above", "1%"], "--svg": ["--svg", "out.svg"], "--png": ["--png", "out.png"], "--lanes": ["--lanes", "3"],
                 "--plan": ["--plan", "plan.json"], "--collective": ["--collective", "all_gather"],
                 "--algorithm": ["-a", "tree"], "--profile": ["--profile", "nccl-hopper"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"], "--protocol": ["--protocol", "ll"],
                 "--ranks": ["--ranks", "gpu[0-2]"], "--parameter": ["-p", "rate=30"], "--csv": ["--csv"],
                 "--without": ["--without", "gpu3"], "--slow": ["--slow", "gpu0=0.5"]}, {
        "results": (["predicted.json", "measured.json"], {"--profile": "then A is a machine: shown by 'machine'"}),
        "nccl-tests": (["perf.log", "perf.log"], {"--algorithm": "rows of no named algorithm match any"}),
        "timelines": (["predicted-trace.json", "measured-trace.json", "--svg", "out.svg"],
                      {"--plan": "what the spans show is what the plan says", "--svg": ["--svg", "-"], "--profile": "then A is a machine: shown by 'machine'"}),
        "machine": (["cluster.yaml", "perf.log", "--profile", "nccl-ampere", "--collective", "all_reduce"],
                    {"--collective": ["--collective", "broadcast"]}),
        "drawing": (["predicted-trace.json", "measured-trace.json", "--svg", "-"], {"--profile": "then A is a machine: shown by 'machine'"}),
    }),
    "compare-designs": ({"--collectives": ["-c", "broadcast"], "--sizes": ["-s", "1K"], "--algorithm": ["-a", "tree"],
                         "--no-failures": ["--no-failures"], "--parameter": ["-p", "gpus=6"], "--strict": ["--strict"], "--scenario": ["--scenario", "job.yaml"], "--csv": ["--csv"],
                         "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"]}, {
        "two": (["cluster.yaml", "other.yaml"], {})}),
    "diagnose": ({**TOPOLOGY, "--algorithm": ["-a", "nccl/tree"], "--collective": ["--collective", "all_reduce"], "--protocol": ["--protocol", "ll"],
                  "--profile": ["--profile", "nccl-hopper"], "--nccl-version": ["--nccl-version", "2.2"], "--paths": ["--paths", "any"], "--csv": ["--csv"]}, {
        "nccl-tests": (["cluster.yaml", "perf.log", "--profile", "nccl-ampere", "--collective", "all_reduce"], {"--collective": ["--collective", "broadcast"]}),
        "results": (["cluster.yaml", "measured.json"], {"--algorithm": "rows name what ran", "--collective": "rows name it", "--nccl-version": "of a profile",
                    "--paths": "of a profile", "--protocol": "of a profile"}),
    }),
    "compute": ({"--batch": ["--batch", "questions.jsonl"]}, {"gpus": ([], {})}),
    "experts": ({**TOPOLOGY, "--without": ["--without", "gpu3"], "--software": ["--software", "trtllm-nvlink"], "--tokens": ["--tokens", "64"], "--hidden": ["--hidden", "4096"],
                 "--top-k": ["--top-k", "4"], "--experts": ["--experts", "64"], "--sms": ["--sms", "8"], "--max-boxes": "shown by 'boxes'",
                 "--dispatch": ["--dispatch", "bf16"], "--combine": "shown by 'nvlink'", "--first": ["--first", "2"], "--gpu": "shown by 'decoding'",
                 "--batch": ["--batch", "exchanges.csv"], "--csv": ["--csv"]}, {
        "normal": (["cluster.yaml", "--tokens", "4096"], {}),
        "nvlink": (["--json", "cluster.yaml", "--tokens", "4096", "--software", "trtllm-nvlink"],
                   {"--software": ["--software", "trtllm-nvlink-one-sided"], "--combine": ["--combine", "nvfp4"]}),
        "decoding": (["--json", "cluster.yaml", "--software", "deepep-low-latency", "--experts", "288"],
                     {"--software": ["--software", "deepep-normal"], "--gpu": ["--gpu", "b200"]}),
        "boxes": (["--json", "dgx-h100-x4", "--tokens", "4096"], {"--max-boxes": ["--max-boxes", "2"], "--parameter": "it has none", "--ranks": ["--ranks", "box[0-1].gpu[*]"],
                  "--without": ["--without", "leaf7"], "--slow": ["--slow", "ndr=0.5"], "--strict": "shown by 'normal'"}),
    }),
    "calibrate": ({**TOPOLOGY, "--from": ["--from", "predicted.json"], "--output": ["-o", "out.yaml"],
                   "--algorithm": ["-a", "tree"], "--collective": ["--collective", "all_gather"],
                   "--plan": ["--plan", "tree.json"], "--chunk": ["--chunk", "64K"], "--minbytes": ["-b", "1M"],
                   "--maxbytes": ["-e", "100K"], "--hold-out": ["--hold-out", "0"], "--profile": ["--profile", "nccl-ampere"], "--csv": ["--csv"]}, {
        "results": (["cluster.yaml", "--from", "measured.json", "--hold-out", "0"], {"--hold-out": "shown by 'nccl-tests'", "--profile": "its rows name algorithms"}),
        "profile": (["cluster.yaml", "--from", "perf.log", "--profile", "nccl-ampere", "--collective", "all_reduce"],
                    {"--collective": ["--collective", "broadcast"], "--hold-out": "one table", "--from": "shown by 'nccl-tests'", "--profile": "already there"}),
        "nccl-tests": (["cluster.yaml", "--from", "perf.log", "-a", "ring", "--collective", "all_reduce"],
                       {"--maxbytes": ["-e", "8M"], "--minbytes": ["-b", "2M"], "--from": ["--from", "measured.json"]}),
        "timeline": (["cluster.yaml", "--from", "measured-trace.json", "--hold-out", "0"], {"--hold-out": "one run", "--profile": "a timeline is no table", "--minbytes": ["-b", "2M"], "--from": ["--from", "predicted-trace.json"]}),
    }),
    "topo show": ({**TOPOLOGY, "--list": ["--list"], "--provenance": ["--provenance"], "--svg": ["--svg", "out.svg"], "--png": ["--png", "out.png"], "--csv": ["--csv"]}, {
        "one": (["cluster.yaml"], {}),
        "provenance": (["cluster.yaml", "--provenance"], {"--provenance": "already there"}), "list": (["--list"], {"--list": "already there"})}),
    "topo validate": ({k: v for k, v in TOPOLOGY.items() if k not in ("--without", "--slow")}, {
        "one": (["cluster.yaml"], {"--parameter": ["-p", "gpus=5"]})}),
    "topo expand": ({**TOPOLOGY, "--output": ["-o", "out.yaml"]}, {"one": (["cluster.yaml"], {})}),
    "topo degrade": ({**TOPOLOGY, **COLLECTIVE, "--size": ["-s", "1K"], "--algorithm": ["-a", "tree"],
                      "--fail-ranks": ["--fail-ranks"], "--bound-only": ["--bound-only"], "--profile": ["--profile", "nccl-ampere"], "--nccl-version": ["--nccl-version", "2.20"], "--paths": ["--paths", "any"],
                      "--csv": ["--csv"]}, {
        "planned": (["cluster.yaml", "all_gather"], {}),
        "rooted": (["cluster.yaml", "broadcast", "-a", "packing"], {}),
        "bounds": (["cluster.yaml", "--bound-only"], {"--bound-only": "already there"}),
    }),
    "topo import": ({"--as": ["--as", "nvidia-topo"], "--preset": ["--preset", "b200-sxm"], "--replicate": ["--replicate", "2"],
                     "--name": ["--name", "other"], "--nics": ["--nics", "NIC0"], "--in-network": ["--in-network"],
                     "--output": ["-o", "out.yaml"]}, {
        "matrix": (["matrix.txt"], {"--as": "recognised alike; a wrong one is refused (unit_topology_import)",
                                    "--nics": "it has one", "--in-network": "it has no switch"}),
        "switched": (["switched.txt", "--preset", "h100-sxm"], {"--as": "as for 'matrix'"})}),
    "topo detect": ({"--root": ["--root", "other-machine"], "--record": ["--record", "out.sysfs"], "--preset": ["--preset", "b200-sxm"],
                     "--name": ["--name", "other"], "--in-network": ["--in-network"], "--output": ["-o", "out.yaml"]}, {
        "faked": (["matrix.txt", "--root", "machine"], {"--root": "already there; without it nothing is the same twice",
                                                        "--in-network": "it has no switch"}),
        "switched": (["switched.txt", "--root", "machine", "--preset", "h100-sxm"], {"--root": "as for 'faked'"})}),
    "topo gen ring": ({**GENERATED, "--ranks": ["--ranks", "5"], "--one-way": ["--one-way"]}, {"": ([], {})}),
    "topo gen torus": ({**GENERATED, "--dims": ["--dims", "3x3"]}, {"": ([], {})}),
    "topo gen mesh": ({**GENERATED, "--dims": ["--dims", "3x3"]}, {"": ([], {})}),
    "topo gen hypercube": ({**GENERATED, "--dimensions": ["--dimensions", "2"]}, {"": ([], {})}),
    "topo gen fully-connected": ({**GENERATED, "--ranks": ["--ranks", "5"]}, {"": ([], {})}),
    "topo gen fat-tree": ({**GENERATED, "--k": ["--k", "8"], "--oversubscription": ["--oversubscription", "2"]}, {"": ([], {})}),
    "topo gen leaf-spine": ({**GENERATED, "--leaves": ["--leaves", "3"], "--ranks-per-leaf": ["--ranks-per-leaf", "3"],
                             "--spines": ["--spines", "1"], "--oversubscription": ["--oversubscription", "2"]}, {"": ([], {})}),
    "topo gen dragonfly": ({**GENERATED, "--routers": ["--routers", "3"], "--ranks": ["--ranks", "3"],
                            "--global-links": ["--global-links", "3"]}, {"": ([], {})}),
    "topo gen rail-boxes": ({**WHAT_RUNS_THERE, "--boxes": ["--boxes", "3"], "--gpus-per-box": ["--gpus-per-box", "16"], "--rails": ["--rails", "2"],
                             "--spines": ["--spines", "2"], "--nvlink-bandwidth": ["--nvlink-bandwidth", "7 GB/s"],
                             "--nvlink-latency": ["--nvlink-latency", "7 us"], "--nic-bandwidth": ["--nic-bandwidth", "7 GB/s"],
                             "--nic-latency": ["--nic-latency", "7 us"], "--output": ["-o", "out.yaml"]}, {"": ([], {})}),
    "topo gen cluster": ({**WHAT_RUNS_THERE, "--boxes": ["--boxes", "4"], "--gpus": ["--gpus", "16"], "--nics": ["--nics", "4"], "--pcie-switches": ["--pcie-switches", "4"],
                          "--nic-rate": ["--nic-rate", "7 GB/s"], "--nic-latency": ["--nic-latency", "7 us"],
                          "--nvlink-bandwidth": ["--nvlink-bandwidth", "7 GB/s"], "--nvlink-latency": ["--nvlink-latency", "7 us"],
                          "--pcie-bandwidth": ["--pcie-bandwidth", "7 GB/s"], "--pcie-latency": ["--pcie-latency", "7 us"],
                          "--levels": ["--levels", "1"], "--boxes-per-leaf": ["--boxes-per-leaf", "1"], "--boxes-per-pod": ["--boxes-per-pod", "2"],
                          "--spines": ["--spines", "2"], "--cores": ["--levels", "3", "--cores", "2"], "--by-box": ["--by-box"],
                          "--oversubscription": ["--oversubscription", "2:1"],
                          "--core-oversubscription": ["--levels", "3", "--core-oversubscription", "2:1"], "--output": ["-o", "out.yaml"]},
                         {"two": ([], {"--boxes-per-pod": "shown by 'three'"}),
                          "three": (["--levels", "3", "--boxes", "4", "--boxes-per-leaf", "1"],
                                    {"--levels": "shown by 'two'", "--boxes": ["--boxes", "8"], "--boxes-per-leaf": ["--boxes-per-leaf", "2"],
                                     "--cores": ["--cores", "2"], "--core-oversubscription": ["--core-oversubscription", "2:1"]})}),
    "topo gen random": ({**WHAT_RUNS_THERE, "--ranks": ["--ranks", "5"], "--switches": ["--switches", "3"], "--extra": ["--extra", "7"],
                         "--seed": ["--seed", "7"], "--one-way": ["--one-way"], "--unbalanced": ["--unbalanced"],
                         "--output": ["-o", "out.yaml"]}, {"": ([], {})}),
    "run": ({**TOPOLOGY, "--parameter": ["-p", "gpus=3"], **COLLECTIVE, **SIZES, "--algorithm": ["-a", "tree"], "--op": ["-o", "max"], "--iters": ["-n", "3"],
             "--warmup_iters": ["-w", "1"], "--check": ["-c", "0"], "--chunk": ["--chunk", "8K"], "--ahead": ["--ahead", "2"],
             "--buffers": ["--buffers", "private"], "--profile": ["--profile", "missing"], "--transport": ["--transport", "tcp"], "--sockets": ["--sockets", "2"],
             "--checksum": ["--checksum"], "--timeout": ["--timeout", "20"], **TRACE, **RDMA,
             "--topology": OTHER_RATES, "--rank": ["--rank", "0"], "--world": ["--world", "2"],
             "--rendezvous": "the ranks meet there, which no output shows (tests/unit/engine/launch)", "--secret-file": ["--secret-file", "secret"],
             "--addresses": ["--addresses", "addresses.json"], "--max-local-ranks": ["--max-local-ranks", "2"],
             "--device": "needs a GPU; tests/cuda has a fake one", "--bulk-copies": "needs --device cuda; tests/cuda has a fake one",
             "--csv": ["--csv"]}, {
        "topology": (["--json", "cluster.yaml", "all_gather", "-a", "ring", "-e", "64K", "-b", "32K", "-n", "2", "-w", "0"],
                     {"--stepfactor": ["-f", "1.2"], "--stepbytes": ["-i", "8K"], "--minbytes": ["-b", "48K"],
                      "--rank": ["--rank", "0", "--timeout", "1"], "--warmup_iters": ["-w", "1"]}),
        "rooted": (["--json", "cluster.yaml", "broadcast", "-s", "4K", "-n", "2", "--transport", "shm"],
                   {"--rank": "shown by 'topology'"}),
        "plan": (["--json", "plan.json", "-s", "4K", "-n", "2"], {"--rank": "shown by 'topology'"}),
    }),
    "probe": ({**TOPOLOGY, "--parameter": ["-p", "gpus=3"], "--size": ["-s", "4M"], "--transfers": ["-n", "3"], "--limit": ["--limit", "2 GB/s"],
               "--max-rounds": ["--max-rounds", "2"], "--max-time": ["--max-time", "7"], "--dry-run": ["--dry-run"], "--output": ["-o", "out.yaml"],
               "--transport": ["--transport", "tcp"], "--sockets": ["--sockets", "2"], "--timeout": ["--timeout", "20"], **RDMA,
               "--rank": ["--rank", "0"], "--world": ["--world", "2"],
               "--rendezvous": "the ranks meet there, which no output shows (tests/unit/engine/launch)", "--secret-file": ["--secret-file", "secret"],
               "--max-local-ranks": ["--max-local-ranks", "2"], "--device": "needs a GPU", "--csv": ["--csv"]}, {
        "planned": (["cluster.yaml", "--dry-run"], {"--dry-run": "already there", "--max-rounds": ["--max-rounds", "1"]}),
        "planned document": (["--json", "cluster.yaml", "--dry-run"], {"--dry-run": "already there"}),
        "measured": (["--json", "cluster.yaml", "-s", "4K", "-n", "2"], {
            "--rank": ["--rank", "0", "--timeout", "1"], **{option: "shown by 'planned'" for option in (
                "--parameter", "--ranks", "--without", "--slow", "--size", "--transfers", "--limit", "--max-rounds", "--max-time")}}),
    }),
    # Needs namespaces; a test of its own (options_of_lab).
    "lab": ({**TOPOLOGY, **COLLECTIVE, **SIZES, "--algorithm": ["-a", "tree"], "--chunk": ["--chunk", "8K"], "--ahead": ["--ahead", "2"],
             "--iters": "how often is measured: seen in the time alone", "--warmup_iters": ["-w", "0"],
             "--check": ["-c", "0"], "--timeout": ["--timeout", "20"], "--scale": ["--scale", "1/400"],
             "--calibrate-from": ["--calibrate-from", "16K,64K"], "--trace": ["--trace", "timeline-"],
             "--csv": ["--csv"],
             "--keep": "leaves a network behind (tests/lab)", "--clean": "tears down, and does nothing else (tests/lab)"}, {
        "topology": (["--json", "cluster.yaml", "all_gather", "-a", "ring", "-b", "32K", "-e", "64K", "-n", "1", "-w", "1",
                      "--scale", "1/200"],
                     {"--minbytes": ["-b", "48K"], "--stepfactor": ["-f", "1.2"], "--stepbytes": ["-i", "8K"],
                      "--shares": ["--shares", "3,1,1,2"]}),
        "rooted": (["--json", "cluster.yaml", "broadcast", "-a", "ring", "-s", "32K", "-n", "1", "--scale", "1/200"],
                   {"--minbytes": ["-b", "48K"]}),
    }),
}

# Verbs without options of their own.
PLAIN = {"version", "schema", "doctor", "completion", "topo", "topo gen"}
