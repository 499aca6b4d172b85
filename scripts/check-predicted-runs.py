#!/usr/bin/env python3
"""Holds predicted iterations of this machine against runs: measures it, plans three models in many ways for its cores, and
runs every plan.

    scripts/check-predicted-runs.py build/release/bin/braid OUT [iterations]

Writes the cluster, plans and runs to the folder OUT, prints a table of them, the median error, and by how much the plan that
is predicted to be the fastest of a model is slower than the fastest one measured. Takes a quarter of an hour on two cores.
What else runs meanwhile ends up in the figures.
"""

import json
import pathlib
import statistics
import subprocess
import sys

MODELS = {  # Samples of an iteration, options of the samples' length.
    "gpt2": (4, ["--seq-len", 128]),
    "bert-base": (4, ["--seq-len", 128]),
    "vit-base": (4, []),
}
FORMS = [
    "--dp 2 --zero 0 --micro-batch 1",
    "--dp 2 --zero 0 --micro-batch 2",
    "--dp 2 --zero 1 --micro-batch 2",
    "--dp 2 --zero 3 --micro-batch 2",
    "--dp 2 --zero 0 --micro-batch 2 --recompute full",
    "--tp 2 --micro-batch 1",
    "--tp 2 --micro-batch 4",
    "--tp 2 --sequence-parallel on --micro-batch 4",
    "--pp 2 --schedule 1f1b --micro-batch 1",
    "--pp 2 --schedule 1f1b --micro-batch 2",
    "--pp 2 --schedule gpipe --micro-batch 1",
    "--pp 2 --schedule 1f1b --micro-batch 1 --recompute full",
]


def called(*command):
    """Its output, or None where it fails; what it says then is printed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    print(" ".join(str(word) for word in command), done.stderr.strip(), sep="\n  ", file=sys.stderr)
    return None


def run_of(braid, out, iterations, name, form):
    """Predicted and measured seconds of an iteration, or None."""
    batch, length = MODELS[name]
    plan = out / (name + form.replace("--", "").replace(" ", "-") + ".json")
    planned = called(braid, "plan", name, "--cluster", out / "here.yaml", "--precision", "fp32", "--for", "braid-run",
                     "--global-batch", batch, *length, *form.split(), "-o", plan)
    if planned is None:
        return None
    ran = called(braid, "run", plan, "--iterations", iterations, "--optimizer", "adam", "--json")
    if ran is None:
        return None
    plan.with_suffix(".run").write_text(ran)
    times = json.loads(ran)
    return times["predicted_s"], times["iteration_time_s"]


def main():
    braid, out = sys.argv[1], pathlib.Path(sys.argv[2])
    iterations = sys.argv[3] if len(sys.argv) > 3 else "5"
    out.mkdir(parents=True, exist_ok=True)
    if called(braid, "measure", "--trained", "--devices", 2, "-o", out / "here.yaml") is None:
        return 1
    errors = []
    print(f"{'model':12} {'plan':52} {'predicted s':>11} {'measured s':>10} {'error':>7}")
    for name in MODELS:
        times = {}
        for form in FORMS:
            found = run_of(braid, out, iterations, name, form)
            if found is None:
                continue
            times[form] = found
            errors.append(abs(found[0] / found[1] - 1))
            print(f"{name:12} {form:52} {found[0]:11.3f} {found[1]:10.3f} {100 * (found[0] / found[1] - 1):+6.1f}%", flush=True)
        if not times:
            continue
        chosen = min(times, key=lambda form: times[form][0])
        fastest = min(times, key=lambda form: times[form][1])
        print(f"{name:12} chosen {chosen}, {100 * (times[chosen][1] / times[fastest][1] - 1):.1f} % slower than {fastest}")
    print(f"{len(errors)} runs, median error {100 * statistics.median(errors):.1f} %, mean {100 * statistics.fmean(errors):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
