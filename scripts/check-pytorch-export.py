"""The cases of check-pytorch-export.sh: check-pytorch-export.py PROGRAM [CASE…]"""
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import types

import numpy
import torch

ALLOWED = 1e-12
GPT = {"model_type": "gpt2", "vocab_size": 24, "n_positions": 8, "n_embd": 8, "n_layer": 4, "n_head": 2}
LLAMA = {
    "model_type": "llama", "vocab_size": 24, "max_position_embeddings": 6, "hidden_size": 16,
    "intermediate_size": 20, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
}
MISTRAL = {**LLAMA, "model_type": "mistral", "sliding_window": 3}
MIXTRAL = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
T5 = {
    "model_type": "t5", "vocab_size": 24, "n_positions": 6, "d_model": 8, "d_kv": 4, "d_ff": 12,
    "num_layers": 2, "num_heads": 2, "relative_attention_num_buckets": 8,
}
BERT = {
    "model_type": "bert", "vocab_size": 20, "max_position_embeddings": 6, "hidden_size": 8,
    "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "type_vocab_size": 2,
}
RESNET = {
    "model_type": "resnet", "embedding_size": 4, "hidden_sizes": [8, 12], "depths": [1, 2],
    "layer_type": "bottleneck", "image_size": 16, "num_labels": 5,
}
VIT = {
    "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 12, "image_size": 8, "patch_size": 4, "num_labels": 5,
}
BRANCHES = {
    "model_type": "multi_modal_transformer", "num_branches": 2, "num_hidden_layers": 2, "hidden_size": 8,
    "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 4,
}
DLRM = {
    "model_type": "dlrm", "dense_branches": 2, "dense_features": 5, "bottom_mlp": [6, 4], "num_tables": 3,
    "embedding_rows": 10, "embedding_dim": 4, "lookups": 3, "interaction": "cat", "top_mlp": [6, 1],
}
UNO = {
    "model_type": "candle_uno", "features": {"dose": 1, "cell": 5, "drug": 7}, "feature_layers": [6, 6],
    "dense_layers": [4], "num_labels": 1,
}

# Name, model, devices, options of braid plan, and what the plan must have of its own.
CHAIN = "--tp 1 --pp 4 --dp 1 --vp 1 --micro-batch 1 --schedule 1f1b"
CASES = [
    ("chain", GPT, 4, CHAIN, ["F4 B4"]),
    ("gpipe", GPT, 4, CHAIN.replace("1f1b", "gpipe"), ['8 * "F4 "']),
    ("one-device", GPT, 1, "--micro-batch 2", []),
    ("replicas", GPT, 4, "--tp 1 --pp 2 --dp 2 --vp 1 --micro-batch 2 --zero 0", ["ranks=[0, 1]"]),
    ("zero-1", GPT, 4, "--tp 1 --pp 2 --dp 2 --vp 1 --micro-batch 2 --zero 1", ["zero=1"]),
    ("zero-2", GPT, 3, "--tp 1 --pp 1 --dp 3 --micro-batch 1 --global-batch 9 --zero 2", ["zero=2"]),
    ("interleaved", GPT, 4, "--tp 1 --pp 2 --dp 2 --vp 3 --micro-batch 1 --schedule interleaved", ["6: Stage("]),
    ("recompute", GPT, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 1 --recompute full", ["recomputed(self.block0)"]),
    ("selective", GPT, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 1 --recompute selective",
     ["recomputes_attention=True"]),
    ("tied", GPT, 4, "--tp 1 --pp 2 --dp 2 --vp 1 --micro-batch 1 --zero 1", ['"embedding.embedding.weight": (1, 2)']),
    ("llama", LLAMA, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 2", ["kv_heads=2"]),
    ("window", MISTRAL, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 2", ["window=3"]),
    ("experts", MIXTRAL, 2, "--tp 1 --ep 1 --pp 1 --dp 2 --micro-batch 2", ["experts("]),
    ("t5", T5, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 2", ["relative="]),
    ("bert", BERT, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 2", []),
    ("resnet", RESNET, 2, "--pp 2 --dp 1 --vp 1 --micro-batch 2", ["nn.Conv2d("]),
    ("vit", VIT, 2, "--tp 1 --pp 2 --dp 1 --vp 1 --micro-batch 2", []),
    ("graph", BRANCHES, 5, "--planner graphpipe --stage-options data", ["5: Stage("]),
    ("graph-replicas", BRANCHES, 7, "--planner graphpipe --micro-batch 2 --tp 1", []),
    ("dlrm", DLRM, 4, "--planner graphpipe --stage-options data --micro-batch 2", []),
    ("uno", UNO, 4, "--planner graphpipe --stage-options data --micro-batch 2", []),
]
# Models without numbers that are not trained, of which no file says what they are.
LIKE_RUN = [
    ("gpt2", GPT, "--micro-batch 8"),
    ("t5", T5, "--micro-batch 8"),
]

# What a file is to be changed to, and what it has there.
CONTROLS = [
    ("dist.all_reduce(self.gradients[:1], group=self.group)", "dist.all_reduce(self.gradients, group=self.group)"),
    ("self.send(2 * x.grad,", "self.send(x.grad,"),
    ("SHARED = {}\nOTHER = {", "SHARED = {"),
]
TRAIN = ["--iterations", "4", "--dtype", "float64", "--optimizer", "sgd", "--lr", "0.05"]


def call(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def losses_of(text):
    return [float(line.split("loss")[1].split()[0]) for line in text.splitlines() if "loss" in line]


def trained(file, ranks):
    """The file by processes, as torchrun starts them, or by one (0 ranks); what rank 0 prints of losses.

    Processes are forked, so that PyTorch is loaded once.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sys.stdout.flush()
    folder = os.path.dirname(file)
    children = {}
    for rank in range(max(1, ranks)):
        child = os.fork()
        if child == 0:
            run_rank(file, folder, rank, ranks, port)
        children[child] = rank
    failure, late = "", time.monotonic() + 200
    while children:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done:
            rank = children.pop(done)
            if status != 0:
                said = open(f"{folder}/{rank}.txt", encoding="utf-8").read()
                failure = failure or f"rank {rank}: {said[-3000:]}"
        elif time.monotonic() > late or failure:
            failure = failure or "the processes wait for ever"
            for child in children:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            break
        else:
            time.sleep(0.02)
    if failure:
        raise RuntimeError(failure)
    return losses_of(open(f"{folder}/0.txt", encoding="utf-8").read())


def run_rank(file, folder, rank, ranks, port):
    status = 1
    try:
        out = open(f"{folder}/{rank}.txt", "w", encoding="utf-8")
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        if ranks > 0:
            own = dict(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=ranks, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            os.environ.update({name: str(value) for name, value in own.items()})
        sys.argv = [file, *TRAIN]
        runpy.run_path(file, run_name="__main__")
        status = 0
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def difference(a, b):
    if len(a) != len(b) or not a:
        return float("inf")
    return max(abs(x - y) / max(1, abs(y)) for x, y in zip(a, b))


# What braid run makes up (run/synthetic_data.h), written again.

MASK = (1 << 64) - 1


def mixed(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def bits(stream, sample, index):
    return mixed(mixed(mixed(1 ^ (stream << 32)) ^ sample) ^ index)


def safetensors_of(file):
    data = open(file, "rb").read()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, about in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            numbers = numpy.frombuffer(data[8 + size + first : 8 + size + last], dtype="<f8")
            tensors[name] = torch.from_numpy(numbers.reshape(about["shape"]).copy())
    return tensors


def first_of_run(program, folder):
    """The loss of braid run's first iteration; its weights are left in the folder."""
    made = call(program, "run", f"{folder}/plan.json", "--iterations", "1", "--dtype", "float64", "--lr", "0",
                "--weights", f"{folder}/first.safetensors", "--json")
    return json.loads(made)["losses"][0]


def loss_like_run(folder):
    """What the written model makes of braid run's first weights and data."""
    written = runpy.run_path(f"{folder}/train.py")
    options = types.SimpleNamespace(seed=1, dtype=torch.float64, device=torch.device("cpu"), optimizer="sgd", lr=0.0)
    whole = written["Whole"](options)
    stored = {plain(name): tensor for name, tensor in safetensors_of(f"{folder}/first.safetensors").items()}
    for module in whole.modules.values():
        for name, parameter in module.named_parameters():
            name = plain(written["TIED"].get(name, name))
            tensor = next(t for known, t in stored.items() if name.endswith(known) or (name + "weight").endswith(known))
            kinds = {type(x) for x in module.modules() if getattr(x, "weight", None) is parameter}
            # Linear keeps its weight turned, unless it is the table of an embedding too.
            turned = torch.nn.Linear in kinds and torch.nn.Embedding not in kinds
            parameter.data.copy_(tensor.T if turned else tensor)
    whole.iteration.__func__.__globals__["made_up"] = lambda *what: data_of_run(written["INPUTS"], *what)
    return whole.iteration(0)


def data_of_run(inputs, name, shape, below, first, count, _):
    """What braid run makes up, in place of the written file's made_up()."""
    names, size, rows = list(inputs), int(numpy.prod(shape)), []
    for sample in range(first, first + count):
        if name in names:
            numbers = [bits(names.index(name), sample, i) for i in range(size)]
            numbers = [(x >> 11) * 2.0**-52 - 1 if below is None else x % below for x in numbers]
        else:  # A class for each token: a function of it.
            source = next(x for x in names if inputs[x][0] == shape and inputs[x][1] > 2)
            given = [bits(names.index(source), sample, i) % inputs[source][1] for i in range(size)]
            numbers = [mixed(token) % below for token in given]
        rows.append(torch.tensor(numbers).reshape(shape))
    return torch.stack(rows)


def plain(name):
    return name.replace(".", "").replace("_", "")


def forked(function, folder):
    """What a function returns, in a process of its own: one that has computed gradients cannot fork."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with open(f"{folder}/returned", "w", encoding="utf-8") as out:
                out.write(repr(function()))
            status = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the written model fails")
    return float(open(f"{folder}/returned", encoding="utf-8").read())


def check(program, case, folder, train=True):
    name, model, devices, options, wanted = case
    config, plan, file = (os.path.join(folder, x) for x in ("config.json", "plan.json", "train.py"))
    with open(config, "w", encoding="utf-8") as out:
        json.dump(model, out)
    batch = [] if "--global-batch" in options else ["--global-batch", "8"]
    call(program, "plan", config, "--cluster", f"dgx-h100:{devices}", *batch, *options.split(), "-o", plan)
    call(program, "export", plan, "--to", "pytorch", "-o", file)
    text = open(file, encoding="utf-8").read()
    for part in wanted:
        if part not in text:
            raise RuntimeError(f"the file lacks {part}")
    long = [line for line in text.splitlines() if len(line) > 110]
    if long:
        raise RuntimeError(f"a line is too long: {long[0]}")
    return held_against_whole(file) if train else ""


def held_against_whole(file):
    text = open(file, encoding="utf-8").read()
    whole = trained(file, 0)
    ranks = int(text.split("Trains the model by the plan, ")[1].split()[0])
    by_plan = trained(file, ranks)
    off = difference(by_plan, whole)
    if not off <= ALLOWED:
        raise RuntimeError(f"losses of one process {whole}, by the plan {by_plan}")
    return f"{ranks} ranks, {text.count(': Stage(')} stages, losses differ by {off:.1e}"


def check_controls(program, folder):
    """What is left out or done twice must be found."""
    check(program, next(case for case in CASES if case[0] == "zero-1"), folder)
    file = os.path.join(folder, "train.py")
    text = open(file, encoding="utf-8").read()
    for wrong, right in CONTROLS:
        if right not in text:
            raise RuntimeError(f"the file lacks {right}")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text.replace(right, wrong))
        if difference(trained(file, 4), trained(file, 0)) <= ALLOWED:
            raise RuntimeError(f"nobody notices {wrong.strip()}")
    return f"{len(CONTROLS)} mistakes are found"


def check_random(program, folder):
    """Random graphs of stages, with micro-batches, replicas, recomputation, ZeRO and orders of their own."""
    tests = os.path.join(os.path.dirname(program), "trainers_test")
    if not os.path.exists(tests):
        return "skipped: trainers_test, which makes them, is not built"
    call(tests, "--gtest_filter=PytorchExport.RandomPlansAreWritten",
         env={**os.environ, "BRAID_PYTORCH_EXPORTS": folder})
    files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py"))
    most = 0
    for file in files:
        try:
            most = max(most, int(held_against_whole(file).split()[0]))
        except RuntimeError as error:
            raise RuntimeError(f"{os.path.basename(file)}: {error}") from error
    return f"{len(files)} plans, of up to {most} ranks"


def check_like_run(program, folder):
    """The written models against the operators that braid run has for the same graphs."""
    if not os.path.exists(os.path.join(os.path.dirname(program), "braid-run")):
        return "skipped: braid-run is not built"
    off = {}
    for name, model, options in LIKE_RUN:
        folder_of = os.path.join(folder, name)
        os.mkdir(folder_of)
        check(program, (name, model, 1, options, []), folder_of, train=False)
        expected = first_of_run(program, folder_of)
        off[name] = forked(lambda: loss_like_run(folder_of), folder_of) / expected - 1
    worst = max(off, key=lambda name: abs(off[name]))
    if not abs(off[worst]) <= ALLOWED:
        raise RuntimeError(f"first losses differ, as a part: {off}")
    return f"{len(off)} models, first losses differ by {abs(off[worst]):.1e}"


def main():
    program, chosen = sys.argv[1], sys.argv[2:]
    failed = 0
    checks = [(case[0], lambda folder, case=case: check(program, case, folder)) for case in CASES]
    checks.append(("controls", lambda folder: check_controls(program, folder)))
    checks.append(("random", lambda folder: check_random(program, folder)))
    checks.append(("like-run", lambda folder: check_like_run(program, folder)))
    for name, run in checks:
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name:16} {run(folder)}", flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"{name:16} FAILED: {error}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
