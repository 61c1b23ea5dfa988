"""Writes ../unicode.txt: the character properties that the reference
implementation of Hugging Face tokenizers uses, found by asking it about every
code point. They come from four different Unicode versions (the normaliser's
crate stands at 9, the category crate is older, Rust's and Oniguruma's are new),
so no single version of Go's tables can stand in for them.

    pip install tokenizers==0.23.3
    python3 unicode.py > ../unicode.txt        # about a minute
"""

import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)


def bert(**options):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(off | options)).normalize_str


clean, han = bert(clean_text=True), bert(handle_chinese_chars=True)
strip, lower = bert(strip_accents=True), bert(lowercase=True)
nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str


def ranges(points):
    out, start, last = [], None, None
    for c in points:
        if last is not None and c == last + 1:
            last = c
            continue
        if start is not None:
            out.append((start, last))
        start = last = c
    if start is not None:
        out.append((start, last))
    return [f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in out]


def section(name, comment, items):
    print(f"\n# {comment}\n[{name}]")
    line = ""
    for item in items:
        if len(line) + len(item) > 118:
            print(line.rstrip())
            line = ""
        line += item + " "
    if line:
        print(line.rstrip())


def matches(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str
    return [c for c in POINTS if not split(chr(c))]


# White space and punctuation as BertPreTokenizer sees them. Splitting does not
# normalise, so every code point reaches it.
split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
pieces = {c: len(split("a" + chr(c) + "a")) for c in POINTS}
white = [c for c in POINTS if pieces[c] == 2]
punct = [c for c in POINTS if pieces[c] == 3]

control = [c for c in POINTS if clean(chr(c)) == ""]
dropped = set(control)
for c in POINTS:
    want = "" if c in dropped else " " if pieces[c] == 2 else chr(c)
    assert clean(chr(c)) == want, hex(c)

chinese = []
for c in POINTS:
    got = han(chr(c))
    if got == f" {chr(c)} ":
        chinese.append(c)
    else:
        assert got == chr(c), hex(c)

# Canonical decompositions, full ones first.
full = {c: nfd(chr(c)) for c in POINTS if c not in HANGUL and nfd(chr(c)) != chr(c)}
for c in HANGUL:
    s = c - 0xAC00
    jamo = chr(0x1100 + s // 588) + chr(0x1161 + s % 588 // 28) + (chr(0x11A7 + s % 28) if s % 28 else "")
    assert nfd(chr(c)) == jamo and nfc(jamo) == chr(c), hex(c)

marks = []
for c in POINTS:
    if c in full or c in HANGUL:
        continue
    got = strip("a" + chr(c))
    if got == "a":
        marks.append(c)
    else:
        assert got == "a" + chr(c), hex(c)

# Combining classes: representatives of each class give the value, or rather the
# order, which is all that matters; Python's tables name the classes.
low, high = "\u0334", "\u0345"
nonstarters = [
    c for c in POINTS
    if c not in full and c not in HANGUL and (nfd(high + chr(c)) != high + chr(c) or nfd(chr(c) + low) != chr(c) + low)
]
by_class = {}
for c in nonstarters:
    k = unicodedata.combining(chr(c))
    assert k, hex(c)
    by_class.setdefault(k, chr(c))
classes = sorted(by_class)
ccc = {}
for c in nonstarters:
    s = chr(c)
    ccc[c] = min(k for k in classes if nfd(s + by_class[k]) == s + by_class[k])
    for k in classes:
        assert (nfd(by_class[k] + s) != by_class[k] + s) == (k > ccc[c]), hex(c)
        assert (nfd(s + by_class[k]) != s + by_class[k]) == (k < ccc[c]), hex(c)

# One step of decomposition each: A=B,C, or A=B+C where B and C compose to A.
decompose = []
for c, d in full.items():
    if len(d) > 1 and nfc(d) == chr(c):
        first = nfc(d[:-1])
        assert len(first) == 1 and nfc(first + d[-1]) == chr(c), hex(c)
        decompose.append(f"{c:X}={ord(first):X}+{ord(d[-1]):X}")
    else:
        assert nfc(chr(c)) != chr(c), hex(c)
        decompose.append(f"{c:X}=" + ",".join(f"{ord(x):X}" for x in d))

# Lower case: runs of equal distance and equal step; A=B,C where one character
# becomes several.
pairs, special = [], []
for c in POINTS:
    got = lower(chr(c))
    if got == chr(c):
        continue
    if len(got) == 1:
        pairs.append((c, ord(got) - c))
    else:
        special.append(f"{c:X}=" + ",".join(f"{ord(x):X}" for x in got))
runs, i = [], 0
while i < len(pairs):
    c, delta = pairs[i]
    j, step = i + 1, 1
    if j < len(pairs) and pairs[j][1] == delta and pairs[j][0] - c <= 2:
        step = pairs[j][0] - c
        while j < len(pairs) and pairs[j][1] == delta and pairs[j][0] - pairs[j - 1][0] == step:
            j += 1
    runs.append(f"{c:X}-{pairs[j - 1][0]:X}/{step}{'+' if delta > 0 else '-'}{abs(delta):X}")
    i = j

print(f"""# Character properties of Hugging Face tokenizers {tokenizers.__version__}, in hexadecimal.
# Generated by testdata/unicode.py, which asks the library about every code point;
# do not edit.""")
section("control", "Removed by BertNormalizer's clean_text: NUL, U+FFFD, control, format and private use.", ranges(control))
section("white", "White space: a space after clean_text, and what BertPreTokenizer removes.", ranges(white))
section("punctuation", "What BertPreTokenizer isolates.", ranges(punct))
section("chinese", "What handle_chinese_chars puts spaces around.", ranges(chinese))
section("mark", "Removed by strip_accents after decomposition.", ranges(marks))
section("letter", r"\p{L} of pre-tokenizer patterns.", ranges(matches(r"\p{L}")))
section("number", r"\p{N} of pre-tokenizer patterns.", ranges(matches(r"\p{N}")))
section("space", r"\s of pre-tokenizer patterns.", ranges(matches(r"\s")))
section("lower", "Lower case: FIRST-LAST/STEP+DISTANCE, or CHARACTER=CHARACTER,CHARACTER.", runs + special)
section("class", "Canonical combining classes other than 0: CHARACTERS=CLASS.",
        [f"{r}={k:X}" for k in classes for r in ranges([c for c in nonstarters if ccc[c] == k])])
section("decompose", "Canonical decompositions but Hangul: A=B+C where B and C compose to A again, A=B,C where not.", decompose)
print(f"{len(control)} {len(white)} {len(punct)} {len(chinese)} {len(marks)} {len(nonstarters)} {len(decompose)} {len(pairs)}",
      file=sys.stderr)
