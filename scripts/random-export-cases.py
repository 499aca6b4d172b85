#!/usr/bin/env python3
"""Prints random jobs that have a plan, for scripts/check-exports.sh; the same for the same seed.

    scripts/random-export-cases.py PROGRAM [COUNT [SEED]]    # 100 jobs of seed 1

A line holds the compute capability of the cluster's GPUs times ten, a name, and the arguments of braid plan. Jobs of
which PROGRAM says that they have no plan, or that their options are at odds with the model, are passed over; one that
ends it in any other way ends this with status 1.
"""
import random
import subprocess
import sys
from pathlib import Path

# Of the zoo, but for what takes long to plan or has no decoder of text.
OTHER = {"bert-base", "bert-large", "candle-uno", "dlrm-dfmodel", "dlrm-thesis", "gnmt", "multi-modal-transformer",
         "resnet-50", "t5-11b", "t5-large", "transgan", "vit-base", "vit-large", "gpt3-100t"}
# Cluster, compute capability times ten, GPUs to choose from: some do not fill the nodes.
CLUSTERS = [("dgx-h100", 90, (1, 4, 8, 12, 16, 24, 32, 64)), ("dgx-a100", 80, (8, 16, 20, 32)),
            ("p4d.24xlarge", 80, (8, 16, 64)), ("dgx-b200", 100, (8, 32)), ("gb200-nvl72", 100, (8, 72, 144)),
            ("p3.8xlarge", 70, (4, 8, 15, 16)), ("p3.16xlarge", 70, (8, 16)), ("g5.48xlarge", 86, (8, 16)),
            ("g6.48xlarge", 89, (8, 16)), ("dgx-h200", 90, (8, 32))]
FOUND, NO_PLAN, BAD_INPUT = 0, 1, 2  # Exit statuses of braid plan.


def options(rng, capability):
    words = []
    for option, values, chance in (("--tp", (1, 2, 4, 8), 0.35), ("--pp", (1, 2, 3, 4), 0.35), ("--cp", (1, 2), 0.2),
                                   ("--ep", (1, 2, 4), 0.15), ("--vp", (1, 2), 0.1), ("--zero", (0, 1, 3), 0.3),
                                   ("--recompute", ("none", "selective", "full"), 0.3),
                                   ("--sequence-parallel", ("on", "off"), 0.15)):
        if rng.random() < chance:
            words += [option, str(rng.choice(values))]
    if rng.random() < 0.25:
        words += ["--precision", rng.choice(("bf16", "fp8") if capability >= 89 else ("fp16",))]
    if rng.random() < 0.6:
        words.append("--no-offload")
    words += ["--seq-len", str(rng.choice((1024, 2048)))]
    return words


def has_plan(program, words):
    run = subprocess.run([program, "plan", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode not in (FOUND, NO_PLAN, BAD_INPUT):
        sys.exit(f"braid plan {' '.join(words)}: exit status {run.returncode}: {run.stderr}")
    return run.returncode == FOUND


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    zoo = Path(__file__).resolve().parent.parent / "data" / "models"
    models = sorted(path.stem for path in zoo.glob("*.json") if path.stem not in OTHER)
    found = 0
    while found < count:
        cluster, capability, sizes = rng.choice(CLUSTERS)
        words = [rng.choice(models), "--cluster", f"{cluster}:{rng.choice(sizes)}", *options(rng, capability)]
        if has_plan(program, words):
            print(capability, f"random{found}", *words, flush=True)
            found += 1


main()
