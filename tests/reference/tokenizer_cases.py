#!/usr/bin/python3
"""Trains small tokenizers with the libraries `tokenizers` and `sentencepiece`, and writes what they make of difficult texts.

    pip install tokenizers sentencepiece
    tests/reference/tokenizer_cases.py    # writes the folder tokenizers beside itself

    gpt2.json            byte-level BPE as GPT-2 has it, merges as "a b"
    llama3.json          as Llama 3 has it: a pattern of its own, merges as pairs, ignore_merges, special tokens, an added one
    bpe.model            SentencePiece: BPE with byte fallback, no normalization, as Llama 2 has it
    unigram.model        SentencePiece: unigram, no normalization but of spaces (the usual has a table of 240 kB)
    cases.json           texts, and the ids that each gives; "variants" are gpt2.json with other fields
"""
import io
import json
import pathlib

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CASES = {
    "empty": "",
    "words": "In the beginning God created the heaven and the earth.",
    "accents": "Grüße aus München, déjà vu: naïve façade, Ångström, señor, œuvre, ñandú, İstanbul ıI",
    "combining marks": "e\u0301 a\u0308o\u0302\u0323 q\u0307\u0323 \u1100\u1161\u11a8 \u212b \u0344 n\u0303o",
    "emoji": "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇫🇷 ❤️ 1️⃣ 🤷🏻‍♀️😀😀😀",
    "cjk": "我们在北京大学学习中文。「こんにちは、世界！」カタカナ 한국어 문장입니다. 𠀀𠮷野家",
    "arabic and others": "مرحبا بالعالم، كيف حالك؟ שלום עולם हिन्दी में नमस्ते ไทยไม่มีช่องว่าง Ελληνικά Русский язык",
    "code": "def f(x):\n\tif x > 0:\n\t\treturn x ** 2  # squared\n\telse:\n\t\treturn -x\n\n\nfor(int i=0;i<n;++i){a[i]+=b[i]*0x1F;}\n",
    "contractions": "I'm you're he's we'll they've I'd can't CAN'T It'S 'tis 'Twas y'all'd've ’s l'été 'ſ 'ſt 'RE 'Ve'Ll",
    "digits": "1 12 123 1234 12345678 3.14159 1,000,000 ½ ²³ ٣٤٥ Ⅻ 一二三 0x10 1e-5 2024-01-31",
    "punctuation": "...!!!???---___***///\\\\\\ (a) [b] {c} <d> \"e\" 'f' `g` ~@#$%^&*+=|;:,. …—–«»„“”",
    "spaces": "a b  c   d    e\t\tf \t g\u00a0h\u00a0\u00a0i\u3000j \u2003k\u202fl",
    "rare spaces": "a\u0085b\u0085\u0085c \u0085d\u180ee \u180ef\u2028g\u2029h\u200bi\ufeffj\u1680k\u205fl\u001cm\u001fn\x0bo\x0cp",
    "lines": "a\nb\n\nc\n\n\n d\r\ne\r\n\r\nf\r\r\ng\n \n h  \n\n  i \r\n",
    "space at the end": "end of it   ",
    "lines at the end": "end of it\n\n",
    "space at the start": "   start of it",
    "only space": " \n\t \r\n ",
    "control characters": "a\x00b\x01c\x7fd\x1b[31mred\x1b[0m",
    "special tokens": "a<|endoftext|>b <|eot_id|><|eot_id|>c<|begin_of_text|> </s> <s> <unk> <|eot_id|",
    "added tokens": "x<tool_call>y <tool_call> z<tool_call",
    "no characters": "\ufffd\ufffe\uffff\U0010ffff \ue000",
    "one word": "a" * 300 + "ab" * 200 + " " + "=" * 200,
    "long space": " " * 300 + "x" + "\n" * 150 + "\t" * 100 + "y",
    "marks at the start": "\u0301\u0301a \u200d\u200db",
    "case": "İ ẞ ß ŉ ǰ ΐ Σς ﬁ ﬆ K Å",
    "metaspace": "a▁b ▁▁c",
    "unicode letters": "ªº ʰʱ ⁿ ₐ 〱 ꟲ ᴬ \u16ee ⅰ \U0001d7d8\U0001d400",
}


# Where several ways to cut a text are as likely, versions of the library differ.
UNLIKE = {"one word", "long space"}


def mixed_text(size):
    """The same as MixedText of tests/tokenizer makes."""
    pieces, state, text = list(CASES.values()), 1, ""
    while len(text.encode()) < size:
        state = (state * 1664525 + 1013904223) % 2**32
        text += pieces[(state >> 16) % len(pieces)]
    return text


def digests(ids):
    """Of all ids up to each thousandth, and of all: FNV-1a over their 32 bits."""
    digest, found = 0xCBF29CE484222325, []
    for i, id in enumerate(ids):
        if i % 1000 == 0 and i > 0:
            found.append(f"{digest:016x}")
        for byte in id.to_bytes(4, "little"):
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return found + [f"{digest:016x}"]


def written(name, data):
    (OUT / name).write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


def train_bpe(pre_tokenizer, size, special, texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())


def ids_of(definition, text, special=False):
    tokenizer = Tokenizer.from_str(json.dumps(definition))
    tokenizer.encode_special_tokens = not special
    return tokenizer.encode(text, add_special_tokens=False).ids


def train_sentencepiece(texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, num_threads=1,
                                             minloglevel=2, **options)
    return model.getvalue()


def main():
    OUT.mkdir(exist_ok=True)
    texts = (HERE / "../../share/text/genesis.txt").read_text().splitlines(keepends=True)[:2500]
    texts += [text for text in CASES.values()] * 3

    gpt2 = train_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), 1300, ["<|endoftext|>"], texts)
    gpt2["model"]["merges"] = [" ".join(pair) for pair in gpt2["model"]["merges"]]
    written("gpt2.json", gpt2)

    cuts = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    llama3 = train_bpe(cuts, 1200, [], texts)
    llama3["model"]["ignore_merges"] = True
    # Tokens that no merge makes: words that are such a token are found all the same.
    llama3["model"]["merges"] = [pair for i, pair in enumerate(llama3["model"]["merges"]) if i < 600 or i % 5]
    first = len(llama3["model"]["vocab"])
    for i, (text, special) in enumerate([("<|begin_of_text|>", True), ("<|end_of_text|>", True), ("<|eot_id|>", True),
                                         ("<tool_call>", False)]):
        llama3["added_tokens"].append(dict(id=first + i, content=text, single_word=False, lstrip=False, rstrip=False,
                                           normalized=False, special=special))
    written("llama3.json", llama3)

    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    bpe = train_sentencepiece(lines, model_type="bpe", vocab_size=1000, byte_fallback=True,
                              normalization_rule_name="identity", split_digits=True, remove_extra_whitespaces=False,
                              allow_whitespace_only_pieces=True, character_coverage=0.9995)
    unigram = train_sentencepiece(lines, model_type="unigram", vocab_size=700, normalization_rule_name="identity",
                                  hard_vocab_limit=False, character_coverage=0.9995)
    (OUT / "bpe.model").write_bytes(bpe)
    (OUT / "unigram.model").write_bytes(unigram)

    variants = {
        "nfc": {"normalizer": {"type": "NFC"}},
        "space before": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}},
        "digits": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}},
        "space before pieces": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}]}},
        "removed": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": r"\s+"}, "behavior": "Removed", "invert": False},
            {"type": "Split", "pattern": {"Regex": r"\p{L}+|\d{1,2}|\S"}, "behavior": "Removed", "invert": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}},
        "looks behind": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": r"(?<=[\S\u00a0])\s|[^\S\r\n]+"}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}},
    }
    processors = {name: sentencepiece.SentencePieceProcessor(model_proto=model)
                  for name, model in (("bpe", bpe), ("unigram", unigram))}

    def all_ids(text):
        ids = {"gpt2": ids_of(gpt2, text), "llama3": ids_of(llama3, text)}
        for name, changes in variants.items():
            ids[name] = ids_of(gpt2 | changes, text)
        for name, processor in processors.items():
            ids[name] = processor.encode(text)
        return ids

    cases = []
    for name, text in CASES.items():
        case = {"name": name, "text": text, "ids": all_ids(text)}
        if name in UNLIKE:
            del case["ids"]["unigram"]
        if "<|" in text:
            case["special"] = {"gpt2": ids_of(gpt2, text, True), "llama3": ids_of(llama3, text, True)}
        case["decoded"] = {name: processor.decode(case["ids"][name]) for name, processor in processors.items()
                           if name in case["ids"]}
        cases.append(case)
    mixed = {name: digests(ids) for name, ids in all_ids(mixed_text(100000)).items() if name != "unigram"}
    (OUT / "cases.json").write_text(
        '{"variants":' + json.dumps(variants) + ',\n"mixed":' + json.dumps(mixed) + ',\n"cases":[\n' +
        ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases) + "\n]}\n")


main()
