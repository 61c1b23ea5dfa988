"""Writes stats.json: reference values of Wilson intervals and Fisher's exact test.

    pip install scipy
    python3 floor/study/testdata/stats.py > floor/study/testdata/stats.json
"""
import json, random
import scipy
from scipy.stats import binomtest, fisher_exact

random.seed(20260701)
wilson = []
for n in range(1, 37):  # every count of a cell of the tables
    for k in range(n + 1):
        ci = binomtest(k, n).proportion_ci(0.95, method="wilson")
        wilson.append([k, n, ci.low, ci.high])
for n in [51, 72, 98, 167, 1000, 20000]:
    for k in sorted({0, 1, n // 7, n // 2, n - 1, n}):
        ci = binomtest(k, n).proportion_ci(0.95, method="wilson")
        wilson.append([k, n, ci.low, ci.high])
tables = [[0, 36, 17, 19], [10, 26, 8, 28], [0, 72, 25, 47], [4, 32, 12, 24], [0, 0, 0, 0], [0, 5, 0, 7], [3, 0, 4, 0], [1, 9, 11, 3], [8, 2, 1, 5], [50, 50, 50, 50], [500, 1200, 480, 1300]]
tables += [[a, b, c, d] for a in range(6) for b in range(6) for c in range(6) for d in range(6)]
tables += [[a, 36 - a, c, 36 - c] for a in range(0, 37, 3) for c in range(37)]
for _ in range(60):
    m = random.choice([3, 12, 40, 200])
    tables.append([random.randint(0, m) for _ in range(4)])
fisher = [t + [float(fisher_exact([t[:2], t[2:]])[1])] for t in tables]
print(json.dumps({"scipy": scipy.__version__, "wilson": wilson, "fisher": fisher}))
