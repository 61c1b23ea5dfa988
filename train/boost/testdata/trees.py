"""Makes trees.json: reference values of gradient-boosted trees from scikit-learn.

    python3 -m venv venv && venv/bin/pip install scikit-learn
    venv/bin/python trees.py > trees.json
"""
import json
import random
import sys

import numpy
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier

out = {"python": sys.version.split()[0], "sklearn": sklearn.__version__, "numpy": numpy.__version__, "fits": []}
rng = random.Random(20260701)

n = 240
# Few distinct values per feature: every one gets a bin of its own.
x = [[round(rng.gauss(0, 1), 1), float(rng.randrange(4)), round(rng.random(), 2), 7.0] for _ in range(n)]
y = [int((r[0] > 0.3) != (r[1] > 1) and r[2] + 0.2 * rng.gauss(0, 1) > 0.3) for r in x]
w = [rng.choice([0.3, 1.0, 2.0]) for _ in range(n)]
out["x"], out["y"], out["w"] = x, y, w
# Rows of the fit with some targets turned: where a cut lies between two rows of a
# leaf is a matter of rounding, and must not matter here.
hx, hy, hw = x[:80], [t ^ (i % 5 == 0) for i, t in enumerate(y[:80])], w[80:160]
out["held_y"], out["held_w"] = hy, hw
# The last two have fewer bins than values, whose ends scikit-learn weighs: no weights there.
for trees, leaves, depth, leaf, rate, l2, bins in (
    (1, 4, 3, 5, 0.5, 0.0, 255), (5, 8, 4, 10, 0.2, 1.0, 255), (40, 15, 6, 20, 0.1, 1.0, 255),
    (3, 8, 4, 10, 0.2, 0.5, 16), (3, 8, 4, 10, 0.2, 0.5, 7),
):
    m = HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=leaves, max_depth=depth, min_samples_leaf=leaf,
                                       learning_rate=rate, l2_regularization=l2, max_bins=bins,
                                       early_stopping=True, n_iter_no_change=trees)  # for the losses; it never stops
    weighted = bins == 255
    m.fit(numpy.array(x), y, sample_weight=w if weighted else None,
          X_val=numpy.array(hx), y_val=hy, sample_weight_val=hw if weighted else None)
    assert len(m.validation_score_) == trees + 1
    out["fits"].append({"trees": trees, "leaves": leaves, "depth": depth, "min_leaf": leaf, "rate": rate, "l2": l2, "bins": bins,
                        "weighted": weighted, "logit": [round(z, 12) for z in m.decision_function(numpy.array(x)).tolist()],
                        "held_loss": (-m.validation_score_).tolist()})
json.dump(out, sys.stdout)
print()
