"""Makes reference.json: reference values of package calib from SciPy.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python reference.py > reference.json
"""
import json
import math
import random
import sys
from fractions import Fraction

import numpy
import scipy
from scipy.optimize import minimize_scalar
from scipy.stats import beta, binomtest

out = {"python": sys.version.split()[0], "scipy": scipy.__version__, "numpy": numpy.__version__}

out["intervals"] = []
for n in (1, 2, 10, 19, 59, 200, 1000, 33000):
    for x in sorted({0, 1, n // 20, n // 2, n - 1, n}):
        for c in (0.9, 0.95, 0.99):
            e = binomtest(x, n).proportion_ci(c, method="exact")
            w = binomtest(x, n).proportion_ci(c, method="wilson")
            up = 1.0 if x == n else float(beta.ppf(c, x + 1, n - x))
            out["intervals"].append(
                {"x": x, "n": n, "c": c, "lo": float(e.low), "hi": float(e.high), "upper": up,
                 "wilson_lo": float(w.low), "wilson_hi": float(w.high)})

# Ranks in exact rational arithmetic from the decimal alpha.
out["ranks"] = []
for a in ("0.01", "0.04", "0.05", "0.06", "0.07", "0.1", "0.29", "0.3", "0.58"):
    for n in list(range(1, 130)) + [199, 999, 1999, 99999]:
        k = math.ceil((n + 1) * (1 - Fraction(a)))
        out["ranks"].append([float(a), n, k])

# Smallest n with (1-alpha)^n <= 1-confidence, by counting up.
out["need"] = []
for a in (0.01, 0.05, 0.07, 0.1):
    for c in (0.9, 0.95, 0.99):
        n = 1
        while float(beta.ppf(c, 1, n)) > a:
            n += 1
        out["need"].append({"alpha": a, "c": c, "n": n})

rng = random.Random(20260701)
out["temperatures"] = []
for true_t, n in ((0.5, 60), (1.0, 60), (3.0, 60)):
    x = [rng.gauss(0, 3) for _ in range(n)]
    y = [float(rng.random() < 1 / (1 + math.exp(-v / true_t))) for v in x]
    w = [rng.choice([0.3, 1.0]) for _ in range(n)]
    xa, ya, wa = map(numpy.array, (x, y, w))

    def nll(logt):
        z = xa / math.exp(logt)
        return float(numpy.sum(wa * (numpy.logaddexp(0, z) - ya * z)))

    r = minimize_scalar(nll, bounds=(math.log(0.05), math.log(20)), method="bounded", options={"xatol": 1e-12})
    out["temperatures"].append({"logits": x, "targets": y, "weights": w, "t": math.exp(r.x)})

json.dump(out, sys.stdout)
