#!/usr/bin/env python3
"""Measures encoders side by side: ours, ONNX Runtime and PyTorch.

    bench/encoders/run.sh MINILM_FOLDER        builds and calls this

Every engine is a process that stays up. For every number of tokens and batch
size the engines take turns, round after round, so that whatever else the machine
does hits all of them alike. Printed is the median over the rounds of the median
of a round, in milliseconds per text; engines with the same model must agree on the
vectors, or nothing is printed.

PyTorch and ONNX Runtime get token ids, ours the text: tokenization is part of
their figure.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

PYTHON = ("torch", "onnxruntime")


def worker(engine, model, onnx, threads):
    """The Python side of the protocol that main.go describes, on token ids."""
    import numpy as np
    if engine == "torch":
        import torch
        from transformers import AutoModel
        torch.set_num_threads(threads)
        net = AutoModel.from_pretrained(model).eval().float()

        def run(ids):
            with torch.inference_mode():
                x = net(input_ids=torch.from_numpy(ids)).last_hidden_state.mean(1)
                return torch.nn.functional.normalize(x).numpy()
    else:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])

        def run(ids):
            x = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})[0].mean(1)
            return x / np.linalg.norm(x, axis=1, keepdims=True)

    for line in sys.stdin:
        r = json.loads(line)
        ids = np.array(r["ids"], dtype=np.int64)
        run(ids)
        ms, cpu = [], []
        for _ in range(r["repeats"]):
            t, c = time.perf_counter(), time.process_time()
            v = run(ids)
            ms.append(1e3 * (time.perf_counter() - t))
            cpu.append(1e3 * (time.process_time() - c))
        print(json.dumps({"ms": ms, "cpu_ms": cpu, "vectors": v.tolist()}), flush=True)


def export(model, path):
    """Writes the model for ONNX Runtime, once."""
    import torch
    from transformers import AutoModel
    net = AutoModel.from_pretrained(model, attn_implementation="eager").eval().float()
    ids = torch.ones(2, 16, dtype=torch.long)  # one tensor given twice would become one input
    b, t = torch.export.Dim("b"), torch.export.Dim("t", max=512)
    shapes = {k: {0: b, 1: t} for k in ("input_ids", "attention_mask", "token_type_ids")}
    torch.onnx.export(net, (), path, kwargs={"input_ids": ids, "attention_mask": ids.clone(), "token_type_ids": 0 * ids},
                      input_names=list(shapes), output_names=["hidden"], dynamic_shapes=shapes, opset_version=18, dynamo=True,
                      external_data=False)


class Engine:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} stopped")
        return json.loads(line)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="folder of MiniLM")
    p.add_argument("--go", help="the Go program, for our engine on the Go backend")
    p.add_argument("--xla", help="the Go program built with -tags xla")
    p.add_argument("--static", help="folder that holds encoder.safetensors")
    p.add_argument("--onnx", default="build/encoders/minilm.onnx")
    p.add_argument("--tokens", type=int, nargs="+", default=[64, 256])
    p.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--repeats", type=int, default=5, help="calls per round")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--engines", nargs="+", help="only these")
    p.add_argument("--json", help="also write all times to this file")
    p.add_argument("--worker", choices=PYTHON, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.worker:
        return worker(a.worker, a.model, a.onnx, a.threads)

    if not os.path.exists(a.onnx) and (not a.engines or "onnxruntime" in a.engines):
        os.makedirs(os.path.dirname(a.onnx), exist_ok=True)
        # In a process of its own: threads of PyTorch would stay.
        code = "import sys; sys.path[0:0] = [sys.argv[1]]; import run; run.export(*sys.argv[2:])"
        subprocess.run([sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), a.model, a.onnx], check=True, stdout=sys.stderr)
    python = [sys.executable, os.path.abspath(__file__), "--model", a.model, "--onnx", a.onnx, "--threads", str(a.threads), "--worker"]
    commands = {name: python + [name] for name in PYTHON}
    if a.go:
        commands["go"] = [a.go, "--model", a.model]
    if a.xla:
        commands["xla:cpu"] = [a.xla, "--model", a.model, "--backend", "xla:cpu"]
    if a.static:
        commands["static"] = [a.go, "--static", "--model", a.static]
    engines = [Engine(n, c) for n, c in commands.items() if not a.engines or n in a.engines]

    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(a.model, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    words = "send the report to our team and check that every file of last week was read before you pay for it".split()
    report, versions = [], {m: __import__(m).__version__ for m in PYTHON}
    for tokens in a.tokens:
        for batch in a.batch:
            texts = [" ".join(words[(7 * i + 3 * j) % len(words)] for j in range(tokens - 2)) for i in range(batch)]
            request = {"texts": texts, "ids": [e.ids for e in tokenizer.encode_batch(texts)], "repeats": 1}
            assert all(len(ids) == tokens for ids in request["ids"]), "a word is more than one token"
            reference = None
            for e in engines:  # compile, warm up, compare
                got = e.ask(request)["vectors"]
                if e.name != "static":
                    reference = reference or got
                    worst = max(abs(x - y) for u, v in zip(reference, got) for x, y in zip(u, v))
                    if worst > 1e-5:
                        sys.exit(f"{e.name} and {engines[0].name} differ by {worst:.2g}")
            request["repeats"] = a.repeats
            wall, cpu = {e.name: [] for e in engines}, {e.name: [] for e in engines}
            for _ in range(a.rounds):
                for e in engines:
                    r = e.ask(request)
                    wall[e.name].append([x / batch for x in r["ms"]])
                    cpu[e.name].append([x / batch for x in r["cpu_ms"]])
            for e in engines:
                report.append({
                    "tokens": tokens, "batch": batch, "engine": e.name, "best": min(map(min, wall[e.name])),
                    "median": statistics.median(map(statistics.median, wall[e.name])),
                    "cpu": statistics.median(map(statistics.median, cpu[e.name])), "rounds": wall[e.name]})
    load = os.getloadavg()
    print(f"{a.threads} threads, {a.rounds} rounds of {a.repeats} calls, load {load[0]:.1f}; " + ", ".join(f"{k} {v}" for k, v in versions.items()))
    print(f"{'engine':12} {'tokens':>6} {'batch':>5} {'median ms/text':>14} {'best':>9} {'CPU ms/text':>11} {'texts/s':>8} {'to ONNX Runtime':>15}")
    for r in report:
        base = [x["median"] for x in report if x["engine"] == "onnxruntime" and (x["tokens"], x["batch"]) == (r["tokens"], r["batch"])]
        ratio = f"{r['median'] / base[0]:.2f}" if base else ""
        print(f"{r['engine']:12} {r['tokens']:6} {r['batch']:5} {r['median']:14.3f} {r['best']:9.3f} {r['cpu']:11.3f} {1e3 / r['median']:8.0f} {ratio:>15}")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"threads": a.threads, "load": load, "versions": versions, "results": report}, f)


if __name__ == "__main__":
    main()
