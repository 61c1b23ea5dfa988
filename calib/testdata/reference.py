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
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import beta, binom, binomtest, median_abs_deviation

out = {"python": sys.version.split()[0], "scipy": scipy.__version__, "numpy": numpy.__version__}

out["intervals"] = []
for n in (1, 2, 10, 19, 59, 200, 1000, 33000):
    for x in sorted({0, 1, n // 20, n // 2, n - 1, n}):
        for c in (0.9, 0.95, 0.99):
            e = binomtest(x, n).proportion_ci(c, method="exact")
            up = 1.0 if x == n else float(beta.ppf(c, x + 1, n - x))
            out["intervals"].append(
                {"x": x, "n": n, "c": c, "lo": float(e.low), "hi": float(e.high), "upper": up})

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

# P(Bin(n, level) <= x), the p-value of "the risk exceeds level".
out["binomial"] = [
    {"x": x, "n": n, "level": level, "p": float(binom.cdf(x, n, level))}
    for n in (1, 19, 59, 400, 10000)
    for level in (0.01, 0.05, 0.1, 0.5)
    for x in sorted({0, 1, int(n * level / 2), int(n * level), n - 1, n})
]


def hoeffding_bentkus(mean, n, level):
    a = min(mean, level)
    h = (a * math.log(a / level) if a > 0 else 0) + (1 - a) * math.log((1 - a) / (1 - level))
    return min(math.exp(-n * h), math.e * float(binom.cdf(math.ceil(n * mean - 1e-9), n, level)), 1)


# Upper bounds: the root in level; the p-value jumps nowhere in level.
out["hoeffding_bentkus_upper"] = []
for n in (20, 100, 1000):
    for mean in (0, 0.01, 0.0333, 0.2, 0.75):
        for c in (0.9, 0.95, 0.99):
            root = brentq(lambda b: hoeffding_bentkus(mean, n, b) - (1 - c), max(mean, 1e-9) + 1e-9, 1 - 1e-12, xtol=1e-14)
            out["hoeffding_bentkus_upper"].append({"mean": mean, "n": n, "c": c, "upper": root})

# The smallest q with F_w(q) >= 1-alpha, where F_w has the weights and the
# weight top at infinity: NumPy's weighted inverse distribution function.
out["weighted"] = []
for n, alpha, heavy in ((40, 0.1, 1), (200, 0.05, 1), (200, 0.05, 3), (200, 0.07, 1.7), (500, 0.2, 10)):
    x = [rng.randrange(0, 65536) / 65536 for _ in range(n)]
    w = [rng.choice([1, heavy]) for _ in range(n)]
    q = numpy.quantile(x + [2.0], 1 - alpha, weights=w + [heavy], method="inverted_cdf")
    out["weighted"].append({"scores": x, "weights": w, "top": heavy, "alpha": alpha, "q": float(q)})

# W(a) = F(a) + int_a^1 (q/a)^x ((1-q)/(1-a))^(n-x) dF(q), F = Beta(1/2, 1/2),
# by adaptive quadrature in u, q = sin(u)^2, which takes the poles of F away.
out["rate"] = []
for x, n in ((0, 1), (1, 1), (3, 10), (0, 50), (12, 100), (60, 1000), (130, 1000)):
    for a in (0.01, 0.05, 0.1, 0.4):
        def f(u):
            q = math.sin(u) ** 2
            if q in (0.0, 1.0):
                return 0.0
            return 2 / math.pi * math.exp(x * math.log(q / a) + (n - x) * math.log((1 - q) / (1 - a)))

        lo = math.asin(math.sqrt(a))
        peak = math.asin(math.sqrt(min(max(x / n, a), 1)))
        total = sum(quad(f, *ab, limit=400, epsabs=0, epsrel=1e-12)[0] for ab in ((lo, peak), (peak, math.pi / 2)) if ab[1] > ab[0])
        out["rate"].append({"x": x, "n": n, "level": a, "log_wealth": math.log(float(beta.cdf(a, 0.5, 0.5)) + total)})

# Robust z-scores of log-odds.
x = [rng.randrange(1, 30000) / 65536 for _ in range(60)] + [0.98, 0.999]
logit = numpy.log(x) - numpy.log1p(-numpy.array(x))
x = [round(v * 65536) / 65536 for v in x]
logit = numpy.log(x) - numpy.log1p(-numpy.array(x))
z = (logit - numpy.median(logit)) / (1.4826 * median_abs_deviation(logit))
out["suspects"] = {"scores": x, "z": [float(v) for v in z]}

json.dump(out, sys.stdout)
