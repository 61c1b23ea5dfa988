"""Makes wilcoxon.json: two-sided p-values of the signed-rank test from SciPy.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python wilcoxon.py > wilcoxon.json
"""
import json
import random
import sys
import warnings

import scipy
from scipy import stats

rng = random.Random(20260701)
cases = []


def add(d, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = stats.wilcoxon(d, method=method, alternative="two-sided")
        up = stats.wilcoxon(d, method=method, alternative="greater")  # its statistic is the sum of positive ranks
    cases.append({"d": d, "statistic": float(up.statistic), "p": float(r.pvalue)})


for n in (1, 2, 3, 5, 9, 15, 30, 50):
    add([round(rng.gauss(0.3, 1), 6) for _ in range(n)], "exact")
add([0.25] * 9, stats.PermutationMethod())  # all equal
for n in (4, 8, 12):  # ties, and zeros, which SciPy's exact method does not take: all permutations instead
    d = [rng.randrange(-2, 5) / 4 for _ in range(n)]
    add([x for x in d if x] or [1.0], stats.PermutationMethod(n_resamples=2**n))
add([rng.gauss(0.2, 1) for _ in range(80)], "asymptotic")
add([float(rng.randrange(-3, 5)) for _ in range(120)], "asymptotic")
json.dump({"python": sys.version.split()[0], "scipy": scipy.__version__, "cases": cases}, sys.stdout)
print()
