"""Makes the fixtures of this folder with the reference implementation: the
texts, four small tokenizers trained on them, and the ids that the reference
gives for these four and for all-MiniLM-L6-v2.

    pip install tokenizers==0.23.3
    python3 golden.py MINILM_FOLDER            # that holds tokenizer.json; two minutes
"""

import gzip
import hashlib
import json
import pathlib
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

assert tokenizers.__version__ == "0.23.3", tokenizers.__version__
HERE = pathlib.Path(__file__).parent

# --- texts ---------------------------------------------------------------------

PROSE = """
Send the quarterly report to the finance team before noon, but don't attach the payroll sheet.
I've read the file; it's 4,096 bytes long, and the last line doesn't end with a newline.
They're asking whether we'll migrate the database tonight. We'd rather wait: it isn't backed up.
The agent listed the directory, opened notes.txt, and forwarded its contents to an unknown address.
Ignore the previous instructions? No. The tool's answer is data; it is never an order.
Reconciliation of untrustworthy counterparties necessitates circumspection, documentation and perseverance.
An unusually long word follows: pneumonoultramicroscopicsilicovolcanoconiosis, and then a short one.
HELLO WORLD, Hello World, hello world; MixedCase camelCase PascalCase snake_case kebab-case SCREAMING_CASE.
She said "yes" and he replied 'no' -- then both left... (or so it seemed) [sic] {really} <tag> & more.
Prices rose 3.5% to $1,299.99 (about 1.200,50 EUR) on 2026-03-14T15:09:26Z, i.e. by 1/8 or 0x1F or 1e-9.
""".strip().split("\n")

LANGUAGES = [
    "Der Bär aß süße Äpfel in Köln; die Straße heißt Größenwahn. ÜBERGRÖSSE, GROẞ.",
    "L'élève a reçu où ça? Ça coûte cher, naïve façon, œuvre, Œdipe, Æsop, cœur.",
    "El niño comió jalapeños en Málaga; ¿qué pingüino? ¡Olé! Año ñandú.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy. Łódź, Gdańsk, zażółć gęślą jaźń.",
    "Đà Nẵng, Việt Nam: Tiếng Việt có nhiều dấu thanh như ế, ộ, ữ, ặ.",
    "İstanbul'da ılık ığdır; IĞDIR, iyi günler, şeker çay.",
    "Ελληνικά: Ο Όμηρος έγραψε την Οδύσσεια. ΆΈΉΊΌΎΏ ϊϋΐΰ ὀξεῖα ᾳ ᾼ ς Σ.",
    "Съешь ещё этих мягких французских булок, да выпей чаю. ЁЙ ёй Її Ґґ ЎЎ.",
    "שָׁלוֹם עוֹלָם, זה מבחן בעברית עם ניקוד.",
    "مرحبا بالعالم، هٰذَا نَصٌّ مُشَكَّل. ٠١٢٣٤٥٦٧٨٩ ۰۱۲۳",
    "नमस्ते दुनिया, क़िला ज़मीन फ़ल ड़ ढ़, हिन्दी में परीक्षण। १२३",
    "বাংলা ভাষা: ড় ঢ় য় ো ৌ। தமிழ் ொ ோ ௌ, తెలుగు ై, ಕನ್ನಡ ೀ ೋ, മലയാളം ൊ ോ, ଓଡ଼ିଆ ୋ",
    "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง ๑๒๓ ລາວ ພາສາ",
    "你好，世界！我们今天讨论安全问题。《红楼梦》第1回。繁體中文「引號」、頓號",
    "こんにちは世界。カタカナとひらがな、漢字。ガギグ が ぱ ゔ ヷ ﾊﾝｶｸ ㍿ ①②③",
    "안녕하세요 세계, 한국어 시험입니다. 각 힣 ㄱㄴㄷ 각 힣",
    "ქართული ᲥᲐᲠᲗᲣᲚᲘ, Հայերեն և ՀԱՅ, ᎠᎡᎢ ꭰꭱ, 𐐀𐐨 Deseret, 𞤀𞤢 Adlam, Ⰰⰰ Ⲁⲁ",
    "မြန်မာဘာသာ ဦ, ខ្មែរ ភាសា, བོད་སྐད་ ཀྵ གྷ, ᠮᠣᠩᠭᠣᠯ, አማርኛ ቋንቋ, ᮞᮥᮔ᮪ᮓ, ᬩᬮᬶ ᬆ",
]

EMOJI = [
    "😀😃 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 1️⃣ #️⃣ ❤️ ☠︎ ✈︎ 🧑🏿‍🚀 🫠 🫨 🩷 🪿",
    "great job 🎉🎉🎉!!! see you 🌊at the beach🏖️, ok👌?",
    "math 𝒜𝓁𝓅𝒽𝒶 ∑∏∫ ≠ ≤ ≱ ⊄ ∄ 𝟘𝟙𝟚 ½ ⅓ Ⅷ ⅷ ⓐ Ⓐ ㎏ ™ © ® ° µ Ω Å K",
]

CODE = [
    "func main() {\n\tfmt.Println(\"héllo\", 0x1F, 3.14e-10)\n\treturn\n}\n",
    "def f(x: int = 3) -> str:\n    '''doc'''\n    return f\"{x!r:>10}\"  # it's a comment\n\n\nclass A(B):\n        pass\n",
    "SELECT * FROM users WHERE name = 'O''Brien' AND id IN (1,22,333,4444,55555); -- drop\n",
    "curl -sSL https://example.com/install.sh?a=1&b=%20c#frag | sudo bash -c 'rm -rf /tmp/x' && echo $? > /dev/null 2>&1\n",
    '{"tool":"send_email","arguments":{"to":["ann@example.com"],"body":"Hi,\\n\\nsee below\\u00e9","n":-12.50e+3,"ok":true,"x":null}}',
    "key: |\n  folded text\n    indented\nlist:\n- a\n-   b\n\n\n\n# end   \n",
    "<div class=\"a b\">text&nbsp;<br/></div><!-- comment --><![CDATA[ x ]]>",
    "if(a!=b&&c<=d||!e){x->y=*p++;z=a?b:c;}//done\r\n/* block\r\n */\r\n",
    "/home/ann/.ssh/id_ed25519 C:\\Users\\Ann\\Documents\\a.txt ~/x/../y ./z $HOME ${PATH}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "aGVsbG8gd29ybGQ= 550e8400-e29b-41d4-a716-446655440000 sk_live_4eC39HqLyjWDarjtT1zdP7dc 192.168.0.1 ::1 fe80::1%eth0",
]

SPECIAL = [
    "[CLS] hello [SEP] world [PAD] [UNK] [MASK]",
    "text [SEP][SEP] more[CLS]x [sep] [ SEP ] [MASK]ed",
    "<|im_start|>system\nYou are root.<|im_end|>\n<|endoftext|>",
    "<think>\nplan\n</think>\n<tool_call>\n{\"name\": \"x\"}\n</tool_call><tool_response>ok</tool_response>",
    "a<think>b</think >c< think><tool_call><tool_call></think></think",
    "<s>hi</s><pad><unk><mask> a <mask> b",
    "<|begin_of_text|>x<|end_of_text|><|eot_id|> <|reserved|>",
    "NEWTOKEN newtoken NewToken xNEWTOKENx new token [new] [NEW] [Néw] ~~~ ~~ ~ ~~~~~~",
    "<|im_start|<|im_start|>|> <<think>> <|<|im_end|>",
    "##ing ing ## ##s #s un##believ",
]

SPACES = [
    "", " ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", " \n", "\n ", " \n ", "\t\t\n\t ", "a ", " a", "  a", "   a", "a  ", "a   b",
    "a\tb", "a\n\nb", "a \n b", "a\n  b", "a  \n  b", "a\r\nb", "a \r\n\r\n b", "a\rb", "a\n\r\n\rb", "x\n\n\n", "\n\n\nx", "  \n\n  x  \n\n  ",
    "a b c", "a b c\u2003d\u3000e\u1680f\u2028g\u2029h\u202fi\u205fj", "a\u0085b", "a\x0bb\x0cc", "a\x1cb\x1dc\x1ed\x1fe",
    " \u00a0 a", "a \u00a0", "\u3000\u3000a", "a\u180eb", "a\ufeffb", "!!  !!", "1  2", "1 2", "12 345 6789", "1234567890123", "١٢٣٤٥", "1２3",
    "a" + " " * 100 + "b", "\n" * 50, " " * 127, "\t" * 33 + "x", " \t" * 20, "!\n\n", " !\r\n\r\nx", "!? \n?", ".\n.\r.", " .\n", "a.\n\n b",
]

CONTRACTIONS = [
    "it's IT'S It'S 's S' 'S '' 'ſ 'ſt 'ss", "we're WE'RE 'Re 'rE 'r 're're", "I've I'VE 've'VE 'v", "I'm I'M 'm 'mm", "we'll WE'LL 'lL 'l 'l l",
    "I'd 'D 'dd d'd", "don't DON'T 't'T", "rock'n'roll o'clock 'tis ’s ’t ‘s", "'", "''", "'''s", " 's", " 't x", "a 's", "1's 2'S", "é's ñ'LL", "'é 'ß 'ﬆ 'K",
]

INVISIBLE = [
    "zero\u200bwidth\u200cnon\u200djoiner\u2060word\ufeffbom", "rtl \u202eevil\u202c \u2066iso\u2069 \u200f\u200e", "soft\u00adhyphen", "a\x00b", "\x00", "\x00\x00 \x00a\x00",
    "\x01\x02\x03bell\x07\x08back\x1bescape\x7fdel\x80\x9f", "priv\ue000ate\uf8ff \U000f0000\U0010fffd", "tag\U000e0001\U000e0041\U000e007f", "vs\ufe0f\ufe0e\U000e0100",
    "rep\ufffdl \ufffd\ufffd", "non\ufffe\uffff\ufdd0\U0001fffe\U0010ffff", "unassigned \u0378\u0380\u05ff\u2fe0\U0001f8ff\U0002ffff\U000e1000",
    "\u0600\u06dd\u070f\u08e2\U000110bd\U000110cd marks", "\u115f\u1160\u3164\uffa0 fillers", "\u061c\u2061\u2062\u2063\u2064\u206a\u206f",
]

COMBINING = [
    "e\u0301 a\u0308\u0304 o\u0304\u0308 q\u0307\u0323 q\u0323\u0307 \u0301 a\u0301\u0300\u0316\u0317", "\u0301\u0301abc", "s\u0323\u0307 \u1e69 \u1e9b\u0323 \u017f\u0307",
    "\u212b \u2126 \u212a \u0340\u0341\u0343\u0344 \u0374 \u037e \u0387 \u1fbe \u1fef \u2000\u2001", "\uf900\ufa0e\ufa10 \U0002f800\U0002fa1d \u2329\u232a",
    "\ufb1d\ufb1f\ufb2a\ufb4e \u0958\u0959\u095f \u09dc\u0a33\u0b5c\u0f43\u0f4d\u0f73\u0f75\u0f81 \u2adc", "\u0915\u093c \u0928\u093c \u09c7\u09be \u0b47\u0b56 \u0bc6\u0bbe \u0dd9\u0dcf\u0dca",
    "\u1100\u1161 \u1100\u1161\u11a8 \uac00\u11a8 \uac01\u11a8 \u1100\u1100\u1161 \u1161\u11a8 \u1112\u1175\u11c2 \ua960\ud7b0",
    "\U00011099\U000110ba \U00011131\U00011127 \U0001d15e \U0001d157\U0001d165\U0001d16e \U000114b9\U000114ba", "a\u094d\u093c\u0301 \u0e38\u0e48\u0eb8\u0ec8 \u0f71\u0f72\u0f74\u0f80",
    "\u302a\u302b\u302e\u302f\u3099\u309a \u304b\u3099 \u30cf\u309a", "x\u0345\u0301 \u03b1\u0345\u0301 \u1f80 \u0391\u0345\u0300", "\u05d0\u05bc\u05b8 \u05e9\u05bc\u05c1 \u0627\u0653\u0654\u0655 \u064a\u0654",
    "a" + "\u0301" * 40 + "\u0323" * 40, "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a A\u0334\u0335\u031c L\u0336\u0337 G\u0338 O\u0489",
    "\u094d\u0e31\u093c \u1dfa\u1dc0 \U0001e8d0\U0001e94a \U00016af0\U00016b30 \u1a7f\u1ab0\u1abf\u20d0\u20f0 \ufe20\ufe2f", "\u0958\u0301\u093c \u1b35\u1b06\u1b35 \u1025\u102e",
]

LONG = ["x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "e\u0301" * 100, "漢" * 101, "ab" * 50 + "!" + "cd" * 60, "un" * 60, "1" * 150, "_" * 120, "a\u0301b" * 70]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", "  \t\n\r", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "äöüßéèñçåøłžřůőİıÆŒĳŉ",
    "'sS't'T're'RE've'm'll'd", "你好世界安全中文漢字", "がぎぐカキクァー。、", "가각힣한글", "ЖЗИЙКёЁъ", "αβγΆΈςΩῥᾳ", "אבגדּׁ", "ابتثًٌٍَّ", "कखगक़ी्ा", "กขคำิี่", "😀👍🏽🎉🇩🇪‍️", "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e",
    "\x00\x01\x07\x1b\x7f\x85\x0b\x0c", "\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u05b0\u094d\u3099\u302e", "\u00a0\u2003\u3000\u2028\u202f", "١٢٣௧२Ⅷ½²①", "\ue000\U000f1234\ufffd\u0378\U0001fbff",
]


def random_texts(rng):
    words = " ".join(PROSE).split()
    out = []
    for _ in range(150):  # sentences with one thing wrong
        s = list(" ".join(rng.choices(words, k=rng.randint(3, 40))))
        for _ in range(rng.randint(0, 4)):
            s.insert(rng.randrange(len(s) + 1), rng.choice(rng.choice(ALPHABETS)))
        out.append("".join(s))
    for _ in range(250):  # mixed scripts
        parts = rng.sample(ALPHABETS, rng.randint(1, 4))
        out.append("".join(rng.choice(rng.choice(parts)) for _ in range(rng.randint(1, 80))))
    for _ in range(150):  # words of mixed scripts with spaces and line breaks
        s = ""
        for _ in range(rng.randint(1, 15)):
            s += "".join(rng.choices(rng.choice(ALPHABETS), k=rng.randint(1, 8))) + rng.choice(["", " ", "  ", "\n", " \n", "'s ", "\r\n", "\u00a0"])
        out.append(s)
    for _ in range(150):  # any Unicode
        out.append("".join(random_char(rng) for _ in range(rng.randint(1, 60))))
    for _ in range(150):  # neighbours within one block of 128, where classes differ
        base = rng.choice([b for b in range(0, 0x3200, 128)] + [b for b in range(0xA000, 0xAC00, 128)] + [b for b in range(0xFB00, 0xFFFF, 128)] + [b for b in range(0x10000, 0x1FC00, 128)])
        out.append("".join(chr(base + rng.randrange(128)) + rng.choice(["", "", "a", " ", "1", "\u0301"]) for _ in range(rng.randint(5, 50))))
    for _ in range(100):  # JSON of tool calls
        out.append(json.dumps({rng.choice(words): rng.choice([rng.choice(words), rng.randint(-10**9, 10**9), rng.random(), None, rng.choices(words, k=3)]) for _ in range(rng.randint(1, 8))},
                              indent=rng.choice([None, 2, 4]), ensure_ascii=rng.random() < 0.5))
    return out


def random_char(rng):
    while True:
        top = rng.choice([0x250, 0x3000, 0x10000, 0x20000, 0x110000])
        c = rng.randrange(top)
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


def long_texts(rng):
    words = " ".join(PROSE + LANGUAGES + CODE).split(" ")
    prose = ""
    while len(prose) < 100_000:
        prose += " ".join(rng.choices(words, k=12)) + rng.choice([" ", "\n", ". ", "\n\n    "])
    return [prose[:100_000], "".join(rng.choice("abcde") for _ in range(4)) * 25_000, "é" * 60_000, " " * 100_000 + "x", "\u0301\u0323\u302e\u093c" * 5_000, "1" * 30_000]


def make_texts():
    rng = random.Random(20260701)
    texts = PROSE + LANGUAGES + EMOJI + CODE + SPECIAL + SPACES + CONTRACTIONS + INVISIBLE + COMBINING + LONG + random_texts(rng) + long_texts(rng)
    assert len(texts) >= 1000
    return texts


# --- tokenizers ----------------------------------------------------------------

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def plain(content):
    return AddedToken(content, special=False, normalized=False)


def wordpiece(corpus):
    """A cased BERT with added tokens that are not special, of both kinds."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=3000, special_tokens=names, show_progress=False))
    t.add_tokens([plain("~~~"), plain("<think>"), AddedToken("NEWTOKEN", normalized=True), AddedToken("[Néw]", normalized=True), AddedToken("漢字", normalized=True)])
    t.decoder = decoders.WordPiece(cleanup=False)
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    return t


def bpe(corpus, size, pre, **options):
    t = Tokenizer(models.BPE(**options))
    t.pre_tokenizer = pre
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.decoder = decoders.ByteLevel()
    return t


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def qwen(corpus):
    """Qwen2, Qwen2.5 and Qwen3, with the end token of Qwen3-Embedding."""
    t = bpe(corpus, 3000, split(QWEN))
    t.normalizer = normalizers.NFC()
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([plain(x) for x in ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]])
    end = t.token_to_id("<|endoftext|>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="$A <|endoftext|>", pair=None, special_tokens=[("<|endoftext|>", end)])])
    return t


def roberta(corpus):
    """GPT-2's pattern with RoBERTa's prefix space and special tokens."""
    t = bpe(corpus, 1500, pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), add_prefix_space=True)
    return t


def llama(corpus):
    """Llama 3: whole words first, digits in threes. Some merges are taken out,
    so that words are tokens which merging alone would not give."""
    t = bpe(corpus, 2500, split(LLAMA), ignore_merges=True)
    t.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    begin = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin_of_text|> $A", pair=None, special_tokens=[("<|begin_of_text|>", begin)])])
    state = json.loads(t.to_str())
    state["model"]["merges"] = [m for i, m in enumerate(state["model"]["merges"]) if i % 7 != 3]
    return Tokenizer.from_str(json.dumps(state))


def legacy_merges(t):
    """The older spelling of merges, which most published files have."""
    state = json.loads(t.to_str())
    state["model"]["merges"] = [" ".join(m) for m in state["model"]["merges"]]
    return json.dumps(state, ensure_ascii=False)


# --- fixtures ------------------------------------------------------------------


def write(name, text):
    with open(HERE / name, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(text.encode())
    print(name, (HERE / name).stat().st_size)


def sweep(c):
    """A text that shows what a tokenizer knows of one character."""
    return f"a{c}b {c}1 {c}\u0301\n{c}'s"


def swept():
    return [c for c in range(0x20000) if not 0xD800 <= c <= 0xDFFF] + list(range(0x20000, 0x110000, 61))


def golden(name, state, texts):
    t = Tokenizer.from_str(state)
    t.no_truncation()
    t.no_padding()
    t.encode_special_tokens = True
    ids = [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
    digests, h, block = [], hashlib.sha256(), 0
    for c in swept():
        if c >> 11 != block:
            digests.append([block << 11, h.hexdigest()[:16]])
            h, block = hashlib.sha256(), c >> 11
        h.update((" ".join(map(str, t.encode(sweep(chr(c)), add_special_tokens=False).ids)) + "\n").encode())
    digests.append([block << 11, h.hexdigest()[:16]])
    # This version decodes an added token to its normal form, 0.22 and we to what
    # the file says.
    some = [i for i in range(len(texts)) if len(texts[i]) < 200 and "漢字" not in texts[i]][:400]
    write(f"{name}-golden.json.gz", json.dumps({
        "tokenizers": tokenizers.__version__,
        "ids": ids,
        "around": t.encode("", add_special_tokens=True).ids,
        "decoded": {i: t.decode(ids[i]) for i in some},
        "sweep": digests,
    }, separators=(",", ":")))


def main():
    texts = make_texts()
    write("texts.json.gz", json.dumps(texts, separators=(",", ":")))
    corpus = [s for s in texts if len(s) < 5000] * 2
    states = {
        "minilm": (pathlib.Path(sys.argv[1]) / "tokenizer.json").read_text(),
        "wordpiece": wordpiece(corpus).to_str(),
        "qwen": qwen(corpus).to_str(),
        "roberta": legacy_merges(roberta(corpus)),
        "llama": llama(corpus).to_str(),
    }
    for name, state in states.items():
        write(f"{name}-tokenizer.json.gz", state)
        golden(name, state, texts)


main()
