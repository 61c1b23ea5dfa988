"""The training steps of docs/reference/model.md in PyTorch, on the CPU: the other side of
`go test ./train -bench Step`. bench/train/run.sh runs both.

    python step.py --preset paper --stage 1 --mode eager --seconds 10

Sizes are those of the preset and of BenchmarkStep, data is random, all rows are full. A
step is forward, backward, clipping by the global norm and Adam on the groups that learn in
the stage. It prints one line: steps per second (median step), seconds of the first step.
"""
import argparse
import os
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {
    "paper": dict(H=256, G=16, C=16, P=256, Q=128, U=0, drop_state=0.0),
    "protocol-p1": dict(H=96, G=8, C=8, P=96, Q=64, U=64, drop_state=0.5),
}
D, FEATURES, B, T, MIX = 256, 90, 8, 16, 0.01


class MLP(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear, self.norm = nn.Linear(n_in, n_out), nn.LayerNorm(n_out)

    def forward(self, x):
        return F.silu(self.norm(self.linear(x)))


class Head(nn.Module):
    def __init__(self, n_in, q, u):
        super().__init__()
        self.l1, self.out, self.skip = MLP(n_in, q), nn.Linear(q, 1), nn.Linear(FEATURES, 1, bias=False)
        self.feat, self.feat_out = (MLP(FEATURES, u), nn.Linear(u, 1, bias=False)) if u else (None, None)

    def forward(self, x, f, keep):
        y = F.linear(self.l1(x), self.out.weight)
        if keep is not None:
            y = y * keep
        y = y + self.out.bias + self.skip(f)
        if self.feat is not None:
            y = y + self.feat_out(self.feat(f))
        return y[..., 0]


class Model(nn.Module):
    def __init__(self, H, G, C, P, Q, U, drop_state):
        super().__init__()
        self.G, self.C, self.drop_state = G, C, drop_state
        z, x = G * C, G * C + P + FEATURES
        self.adapt_e, self.adapt_o, self.adapt_a = MLP(D, P), MLP(D, P), MLP(D, P)
        self.none, self.init = nn.Parameter(torch.zeros(P)), nn.Linear(P, H)
        self.post, self.post_out = MLP(H + P, H), nn.Linear(H, z)
        self.prior, self.prior_out = MLP(H, H), nn.Linear(H, z)
        self.obs, self.obs_out = MLP(H + z, H), nn.Linear(H, D)
        # The cell is torch's: the same equations.
        self.norm, self.cell = nn.LayerNorm(x), nn.GRUCell(x, H)
        self.haz, self.pre = Head(H + x + P, Q, U), Head(H + x + P, Q, U)

    def groups(self, stage):
        adapters = [self.adapt_e, self.adapt_o, self.adapt_a]
        world = [self.init, self.post, self.post_out, self.prior, self.prior_out, self.obs, self.obs_out]
        core, heads = [self.norm, self.cell], [self.haz, self.pre]
        params = lambda ms: [p for m in ms for p in m.parameters()]
        if stage == 1:
            return [dict(params=params(adapters + world + core) + [self.none])]
        for p in params(core):
            p.requires_grad_(False)
        return [dict(params=params(heads)), dict(params=params(adapters + world) + [self.none], lr=0.25 * 2e-4)]

    def probabilities(self, logits):
        p = torch.softmax(logits.unflatten(-1, (self.G, self.C)), -1)
        return (1 - MIX) * p + MIX / self.C

    def sample(self, p):
        index = torch.searchsorted(p.detach().cumsum(-1), torch.rand(*p.shape[:-1], 1)).clamp(max=self.C - 1)
        hard = torch.zeros_like(p).scatter(-1, index, 1.0)
        return (hard + p - p.detach()).flatten(-2)

    def forward(self, batch, stage):
        e, a, f, o, has = batch["e"], batch["a"], batch["f"], batch["o"], batch["has"]
        task, call = self.adapt_e(e), self.adapt_a(a)
        seen = self.adapt_o(o) * has + self.none * (1 - has)
        h = torch.tanh(self.init(task))
        hs, qs, zs = [], [], []
        for t in range(T + 1):
            q = self.probabilities(self.post_out(self.post(torch.cat([h, seen[t]], -1))))
            z = self.sample(q)
            if t > 0:
                qs.append(q), zs.append(z)
            if t < T:
                h = self.cell(self.norm(torch.cat([z, call[t], f[t]], -1)), h)
                hs.append(h)
        h, q, z = torch.stack(hs), torch.stack(qs), torch.stack(zs)
        p = self.probabilities(self.prior_out(self.prior(h)))
        kl = lambda x, y: (x * (x.log() - y.log())).sum((-1, -2))
        dyn = kl(q.detach(), p).clamp(min=0.2).mean()
        rep = kl(q, p.detach()).clamp(min=0.2).mean()
        guess, target = self.obs_out(self.obs(torch.cat([h, z], -1))).flatten(0, 1), o[1:].flatten(0, 1)
        cos = F.cosine_similarity(guess - guess.mean(0), target - target.mean(0), dim=-1)
        world = 1.25 * (1 - cos).mean() + 0.03 * dyn + 0.03 * rep
        if stage == 1:
            return world
        x = torch.cat([h, self.sample(p), call, f, task.expand(T, -1, -1)], -1)
        x = F.dropout(x, 0.1)
        keep = None
        if self.drop_state:
            keep = (torch.rand(T, B, 1) >= self.drop_state).float() / (1 - self.drop_state)
        bce = F.binary_cross_entropy_with_logits
        return bce(self.haz(x, f, keep), batch["haz"]) + bce(self.pre(x, f, keep), batch["pre"]) + 0.1 * world


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--preset", choices=SIZES, required=True)
    args.add_argument("--stage", type=int, choices=(1, 2), required=True)
    args.add_argument("--mode", choices=("eager", "compile"), required=True)
    args.add_argument("--seconds", type=float, default=10)
    args.add_argument("--threads", type=int, default=os.cpu_count())
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Model(**SIZES[args.preset])
    adam = torch.optim.Adam(model.groups(args.stage), lr=2e-4)
    learn = [p for g in adam.param_groups for p in g["params"]]
    loss = torch.compile(model) if args.mode == "compile" else model
    batches = [dict(
        e=torch.randn(B, D), a=torch.randn(T, B, D), f=torch.randn(T, B, FEATURES), o=torch.randn(T + 1, B, D),
        has=torch.ones(T + 1, B, 1), haz=torch.zeros(T, B), pre=torch.zeros(T, B)) for _ in range(4)]

    def step(i):
        begin = time.perf_counter()
        adam.zero_grad(set_to_none=True)
        loss(batches[i % 4], args.stage).backward()
        torch.nn.utils.clip_grad_norm_(learn, 10.0)
        adam.step()
        return time.perf_counter() - begin

    first, times, begin = step(0), [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < args.seconds:
        times.append(step(len(times) + 1))
    median = sorted(times)[len(times) // 2]
    print(f"torch {torch.__version__} {args.preset} stage{args.stage} {args.mode}: {1 / median:.1f} steps/s, first step {first:.1f} s, {len(times)} steps")


main()
