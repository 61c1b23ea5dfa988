"""Makes reference.json: reference values of package eval from scikit-learn.

    python3 -m venv venv && venv/bin/pip install scikit-learn
    venv/bin/python reference.py > reference.json
"""
import json
import random
import sys

import numpy
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

out = {"python": sys.version.split()[0], "sklearn": sklearn.__version__, "numpy": numpy.__version__}

rng = random.Random(20260701)
n, d = 120, 4
x = [[round(rng.gauss(0, 1), 3) for _ in range(d)] for _ in range(n)]
y = [int(1.5 * r[0] - r[1] + rng.gauss(0, 1) > 1.2) for r in x]
out["x"], out["y"], out["fits"] = x, y, []
for c in (0.01, 1.0, 100.0):
    m = LogisticRegression(C=c, class_weight="balanced", tol=1e-12, max_iter=10000)
    m.fit(numpy.array(x), y)
    out["fits"].append({"c": c, "w": m.coef_[0].tolist(), "b": float(m.intercept_[0])})

texts = ["read the file notes", "send the notes to ann", "send send send the file", "delete the file notes now", "Read NOTES: a b ann!"]
v = TfidfVectorizer(min_df=2, sublinear_tf=True, token_pattern=r"[a-z0-9]{2,}")
m = v.fit_transform(texts).toarray()
out["texts"] = texts
out["tfidf"] = [{w: float(row[i]) for w, i in sorted(v.vocabulary_.items()) if row[i]} for row in m]
json.dump(out, sys.stdout)
