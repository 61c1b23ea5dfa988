# Reference values for fit_test.go, made with numpy and scipy in float64:
#   python3 reference.py > reference.json
# The input is made by a small generator that the test repeats.
import json

import numpy as np
from scipy.stats import pearsonr, spearmanr

V, WIDTH, DIMS, TEXTS = 40, 7, 6, 60
A, RIDGE, TOKENS, OUT = 0.05, 0.3, 0.7, 4
state = 12345


def step():
    global state
    state = (state * 1664525 + 1013904223) % 2**32
    return state >> 8


def number():
    return float(np.float32(step() / 2**23 - 1))


tokens = np.array([[number() for _ in range(WIDTH)] for _ in range(V)])
texts = []
for i in range(TEXTS):
    n = 0 if i == 17 else 1 + step() % 12
    texts.append([step() % (V - 5) for _ in range(n)])  # the last five stand in no text
counts = np.array([float(step() % 1000) for _ in range(V)])
teacher = np.array([[number() for _ in range(DIMS)] for _ in range(TEXTS)])

w = A / (A + counts / counts.sum())
e = w[:, None] * tokens
c = np.zeros((TEXTS, V))
for i, t in enumerate(texts):
    for k in t:
        c[i, k] += 1
c = np.sqrt(c)
x = c @ e
length = np.linalg.norm(x, axis=1, keepdims=True)
inv = np.where(length > 0, 1 / np.maximum(length, 1e-300), 0)
x = x * inv
c = c * w * inv
tau = TOKENS * (c * c).sum() / TEXTS
f = np.hstack([x, c])
penalty = np.diag([RIDGE] * WIDTH + [tau] * V)
solution = np.linalg.solve(f.T @ f + penalty, f.T @ teacher)
table = e @ solution[:WIDTH] + w[:, None] * solution[WIDTH:]
only = e @ np.linalg.solve(x.T @ x + RIDGE * np.eye(WIDTH), x.T @ teacher)
values = np.linalg.eigvalsh(table.T @ table)[::-1]
a, b = [1.0, 2.0, 2.0, 3.5, -1.0, 0.0, 2.0], [0.1, 0.4, 0.2, 0.2, -3.0, 0.5, 0.2]
print(json.dumps({
    "table": table.tolist(),  # before the projection
    "ridge_only": only.tolist(),
    "kept": values[:OUT].sum() / values.sum(),
    "spearman": spearmanr(a, b)[0],
    "pearson": pearsonr(a, b)[0],
}))
