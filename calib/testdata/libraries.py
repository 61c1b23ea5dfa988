"""Makes libraries.json: what MAPIE, crepes, scikit-learn and venn-abers answer.

    python3 -m venv venv && venv/bin/pip install mapie==1.6.0 crepes==0.9.1 venn-abers==1.5.4
    venv/bin/python libraries.py > libraries.json
"""
import importlib.metadata as metadata
import json
import random
import sys
import warnings

import numpy as np
from crepes import ConformalRegressor
from crepes.base import p_values_batch
from crepes.martingales import EpsilonBettingFunction, SimpleJumper, semi_online_p_values
from mapie._venn_abers import calc_p0p1, calc_probs
from mapie.exchangeability_testing.martingales import OnlineMartingaleTest
from mapie.regression import SplitConformalRegressor
from mapie.risk_control import BinaryClassificationController
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value, get_r_hat_plus
from sklearn.dummy import DummyRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_curve
from venn_abers import VennAbers

warnings.simplefilter("ignore")
rng = random.Random(20260702)
out = {"python": sys.version.split()[0]}
for name in ("numpy", "scipy", "scikit-learn", "mapie", "crepes", "venn-abers"):
    out[name] = metadata.version(name)


def grid(n, step=1):
    """n scores on the grid of 2^-16, in multiples of step so that some tie."""
    return [rng.randrange(0, 65536 // step) * step / 65536 for _ in range(n)]


# The k-th smallest score as the half-width of a conformal interval around 0.
# Levels and sizes at which (n+1) alpha is no whole number, where the libraries'
# floating point could go either way.
out["quantiles"] = []
for n, alpha, step in ((25, 0.1, 1), (60, 0.05, 1), (60, 0.05, 4096), (137, 0.02, 256), (1000, 0.07, 1)):
    s = grid(n, step)
    y = np.array(s)
    mapie = SplitConformalRegressor(DummyRegressor(strategy="constant", constant=0).fit(np.zeros((2, 1)), [0, 0]),
                                    confidence_level=1 - alpha, conformity_score="absolute", prefit=True)
    mapie.conformalize(np.zeros((n, 1)), y)
    q_mapie = float(mapie.predict_interval(np.zeros((1, 1)))[1][0, 1, 0])
    crepes = ConformalRegressor()
    crepes.fit(y)
    q_crepes = float(crepes.predict_int(np.zeros(1), confidence=1 - alpha)[0, 1])
    out["quantiles"].append({"scores": s, "alpha": alpha, "mapie": q_mapie, "crepes": q_crepes})

# The same per Mondrian category.
s, bins = grid(300), [rng.choice("aabc") for _ in range(300)]
crepes = ConformalRegressor()
crepes.fit(np.array(s), bins=np.array(bins))
q = crepes.predict_int(np.zeros(3), bins=np.array(["a", "b", "c"]), confidence=1 - 0.0433)[:, 1]
out["mondrian"] = {"scores": s, "bins": bins, "alpha": 0.0433, "q": {b: float(v) for b, v in zip("abc", q)}}

# Conformal p-values, without smoothing.
s, t = grid(50, 1024), grid(40, 1024)
out["p_values"] = {"scores": s, "tests": t, "p": [float(p) for p in p_values_batch(np.array(s), np.array(t), smoothing=False)]}

# Online smoothed p-values: the calibration scores come first.
s = grid(400, 512)
np.random.seed(7)
u = np.random.rand(len(s))
out["online"] = {"scores": s, "u": [float(x) for x in u], "p": [float(p) for p in semi_online_p_values(np.array(s), seed=7)]}

# The simple jumper on p-values that start to be too small.
p = [rng.random() for _ in range(300)] + [rng.random() ** 2 for _ in range(200)]
jumper = SimpleJumper(J=0.01, bf=EpsilonBettingFunction(E=[-1, 0, 1])).apply(np.array(p))
mapie = OnlineMartingaleTest(test_method="jumper_martingale", jump_size=0.01, warn=False)
both = [float(mapie.update_simple_jumper_martingale(x)) for x in p]
assert np.allclose(jumper, both, rtol=1e-9)
out["jumper"] = {"p": p, "crepes": [float(x) for x in jumper], "mapie": both}

out["hoeffding_bentkus"] = []
for n in (10, 100, 1000):
    for mean in (0.0, 0.013, 0.05, 0.2):
        for level in (0.02, 0.05, 0.1, 0.3):
            v = compute_hoeffding_bentkus_p_value(np.array([mean]), n, level)
            out["hoeffding_bentkus"].append({"mean": mean, "n": n, "level": level, "p": min(float(v[0, 0]), 1.0)})

# Conformal risk control of the miss rate: the largest threshold whose corrected
# risk keeps the level.
out["misses"] = []
for n, miss, step in ((30, 0.1, 1), (30, 0.1, 2048), (200, 0.053, 1)):
    s = grid(n, step)
    lambdas = np.array(sorted(set(s)) + [1.0])
    losses = (np.array(s)[:, None] < lambdas[None, :]).astype(float)
    _, plus = get_r_hat_plus(losses, lambdas, "crc", None, None, None)
    out["misses"].append({"scores": s, "miss": miss, "threshold": float(max(lambdas[plus <= miss]))})

# Learn Then Test with two risks over pairs of levels: which pairs are valid by
# Bonferroni. A row is (hazard, risk).
n = 400
label = [i % 2 for i in range(n)]
rows = [[min(max(rng.gauss(0.25 + 0.35 * y, 0.15), 0), 1), min(max(rng.gauss(0.25 + 0.45 * y, 0.14), 0), 1)] for y in label]
rows = [[round(h * 65536) / 65536, round(r * 65536) / 65536] for h, r in rows]
pairs = [[i / 16, j / 16] for i in range(5, 12) for j in range(8, 16)]
control = BinaryClassificationController(
    lambda x, hold, block: ((x[:, 1] >= hold) | (x[:, 0] >= block)).astype(int),
    risk=["fpr", "recall"], target_level=[0.15, 0.8], confidence_level=0.9,
    list_predict_params=np.array(pairs), fwer_method="bonferroni")
control.calibrate(np.array(rows), np.array(label))
out["ltt"] = {"rows": rows, "labels": label, "pairs": pairs, "false_alarm": 0.15, "miss": 0.2, "confidence": 0.9,
              "valid": [[float(a) for a in p] for p in control.valid_predict_params]}

out["isotonic"] = []
for n, step, weighted in ((40, 1, False), (200, 2048, True)):
    x = grid(n, step)
    y = [float(rng.random() < v) for v in x]
    w = [rng.choice([0.3, 1.0, 2.5]) if weighted else 1.0 for _ in x]
    at = [i / 37 for i in range(38)]
    f = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y, sample_weight=w)
    out["isotonic"].append({"x": x, "y": y, "w": w, "at": at, "f": [float(v) for v in f.predict(at)]})

s = grid(80, 1024)
y = [int(rng.random() < v) for v in s]
at = grid(30, 1024) + [0.0, 1.0]
two = lambda v: np.column_stack([1 - np.array(v), v])
_, mapie = calc_probs(*calc_p0p1(two(s), np.array(y)), two(at))
va = VennAbers()
va.fit(two(s), np.array(y))
_, other = va.predict_proba(two(at))
assert np.allclose(mapie, other)
out["venn_abers"] = {"scores": s, "labels": y, "at": at, "p0": [float(v) for v in mapie[:, 0]], "p1": [float(v) for v in mapie[:, 1]]}

# Every operating point of a score.
s = grid(120, 2048)
y = [int(rng.random() < v) for v in s]
fpr, tpr, level = roc_curve(y, s, drop_intermediate=False)
pos, neg = sum(y), len(y) - sum(y)
out["roc"] = {"scores": s, "labels": y,
              "points": [[float(l), round(float(f) * neg), pos - round(float(t) * pos)] for f, t, l in zip(fpr, tpr, level) if np.isfinite(l)]}

json.dump(out, sys.stdout)
