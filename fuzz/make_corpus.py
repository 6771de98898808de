"""Writes the first inputs of the fuzz targets into `fuzz/corpus`: `python fuzz/make_corpus.py`.

A few small lists in each dialect and a few session entries in each format; the fuzzer finds the rest. The first byte of
an input is the choice that its target makes, see `fuzz/targets`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from pathlib import Path
from typing import Any

from foldline._core import SESSIONS as FORMS

CORPUS = Path(__file__).parent / "corpus"

#: A question, a call, its result and an answer, in the order of `Format::ALL`.
LISTS: list[list[Any]] = [
    [  # openai_chat
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Never touch a.py"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1\n2"},
        {"role": "assistant", "content": "Done \ud83d\ude00 \u00e9"},
    ],
    [  # openai_responses
        {"role": "user", "content": "Read b"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "AAAA"},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "text"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    ],
    [  # anthropic
        {"role": "user", "content": "Run the tests, and never push."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "so", "signature": "s"},
                {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test -q && rm -r x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "is_error": True,
                    "content": [{"type": "text", "text": "error: x"}],
                },
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            ],
        },
    ],
    [  # gemini
        {"role": "user", "parts": [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "q"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "y"}}}]},
    ],
    [  # pi
        {"role": "assistant", "content": [{"type": "toolCall", "id": "p", "name": "read", "arguments": {"path": "a"}}]},
        {"role": "toolResult", "toolCallId": "p", "toolName": "read", "content": [{"type": "text", "text": "t"}]},
        {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0},
    ],
    [  # ai_sdk
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "k", "toolName": "f", "input": {}}]},
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "k", "toolName": "f", "output": {"type": "text", "value": "v"}}
            ],
        },
    ],
    [  # langchain
        {"type": "human", "data": {"content": "hi"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"id": "l", "name": "f", "args": {}}]}},
        {"type": "tool", "data": {"tool_call_id": "l", "content": "r"}},
    ],
    [  # gent
        {
            "messages": [
                {"role": "model", "content": [{"type": "tool_call", "id": "g", "name": "f", "arguments": "{}"}]},
                {"role": "tool", "content": [{"type": "tool_result", "id": "g", "output": "r"}]},
            ],
            "origin": "compaction",
            "metadata": {},
        }
    ],
    [  # sharegpt
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": '<tool_call>{"name": "f"}</tool_call>'},
        {"from": "tool", "value": "<tool_response>r</tool_response>"},
    ],
    [  # bedrock_converse
        {"role": "user", "content": [{"text": "go"}, {"cachePoint": {"type": "default"}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "b", "name": "f", "input": {"x": 1}}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "b", "content": [{"json": {"y": 2}}], "status": "error"}}],
        },
    ],
    [  # ai_sdk_ui
        {"role": "user", "parts": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "tool-f", "toolCallId": "u", "state": "output-available", "input": {}, "output": "r"},
                {"type": "dynamic-tool", "toolName": "g", "toolCallId": "v", "state": "output-error", "errorText": "e"},
            ],
        },
    ],
    [  # mistral
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]},
    ],
    [  # cohere
        {"role": "assistant", "tool_plan": "p", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "document", "document": {"data": {"r": 1}}}]},
    ],
]

#: Entries of each form of a session; the input begins with the number of its row in `Agent::ALL`.
SESSIONS: dict[str, list[Any]] = {
    "claude_code": [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "hi"}},
        {
            "type": "assistant",
            "uuid": "2",
            "parentUuid": "1",
            "requestId": "q",
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "a"}]},
        },
        {"type": "system", "subtype": "compact_boundary", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
        {
            "type": "user",
            "uuid": "4",
            "parentUuid": "3",
            "isSidechain": True,
            "isCompactSummary": True,
            "message": {"role": "user", "content": "s"},
        },
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s"}},
        {
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        },
        {
            "type": "response_item",
            "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        },
        {"type": "compacted", "payload": {"message": "so far"}},
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    ],
    "dialogue": [{"message": "hello", "attrs": []}, {"message": "you"}],
    "gemini_cli": [
        {"id": "1", "type": "user", "content": "x"},
        {
            "id": "2",
            "type": "gemini",
            "content": "y",
            "thoughts": [],
            "toolCalls": [{"id": "t", "name": "f", "args": {}, "result": []}],
        },
    ],
    "gemini_cli_log": [
        {"id": "1", "type": "user", "content": "x"},
        {"$set": {"messages": []}},
        {"$rewindTo": "1"},
    ],
    "pi": [
        {"type": "session", "id": "s", "version": 3},
        {"type": "message", "id": "1", "parentId": None, "message": {"role": "user", "content": "x"}},
        {"type": "compaction", "id": "2", "parentId": "1", "summary": "s", "firstKeptEntryId": "1"},
        {"type": "branch_summary", "id": "3", "parentId": "1", "summary": "b", "fromId": "2"},
    ],
    "swe_agent": [
        {"role": "system", "content": "s", "agent": "primary"},
        {"role": "user", "content": "d", "agent": "primary", "is_demo": True},
        {"role": "assistant", "content": "a", "thought": "t", "action": "ls", "agent": "primary"},
    ],
    "swe_agent_steps": [
        {
            "query": [{"role": "user", "content": "q"}],
            "response": "r",
            "thought": "t",
            "action": "ls",
            "observation": "o",
        }
    ],
    "opencode": [
        {
            "info": {"id": "m", "role": "assistant", "sessionID": "s"},
            "parts": [
                {"type": "text", "text": "x"},
                {
                    "type": "tool",
                    "callID": "c",
                    "tool": "f",
                    "state": {"status": "completed", "input": {}, "output": "r"},
                },
            ],
        }
    ],
    "cline": [
        {"role": "user", "content": "x", "ts": 1, "condenseParent": "k"},
        {"role": "user", "content": "s", "ts": 2, "isSummary": True, "condenseId": "k"},
    ],
    "cline_log": [
        {"ts": 1, "type": "say", "say": "text", "text": "x"},
        {"ts": 2, "type": "ask", "ask": "tool", "text": "{}"},
    ],
    "goose": [
        {
            "role": "assistant",
            "content": [
                {
                    "type": "toolRequest",
                    "id": "c",
                    "toolCall": {"status": "success", "value": {"name": "f", "arguments": {}}},
                },
                {
                    "type": "toolResponse",
                    "id": "c",
                    "toolResult": {"status": "success", "value": [{"type": "text", "text": "r"}]},
                },
            ],
        }
    ],
    "inspect": [
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "function": "f", "arguments": {"a": 1}}]}
    ],
}

STREAM = (
    b'data: {"model": "m", "choices": [{"index": 0, "delta": {"content": "So "}, "finish_reason": null}]}\r\n\r\n'
    b": ping\n\nevent: message\nid: 1\n"
    b'data: {"choices": [{"index": 0, "delta": {"content": "far."}, "finish_reason": "stop"}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}\n\ndata: [DONE]\n\n'
)


def compact(value: Any) -> bytes:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def tokenizers() -> list[bytes]:
    """A small file in each format, without the bytes that its choice stands for."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(0x100, 0x200))
    letters = [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
    vocab = [*letters, "ab", "abc", "\u0120a"]
    merges = ["a b", "ab c", "\u0120 a"]
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
    ]
    whole = {
        "added_tokens": [{"id": 300, "content": "<t>", "special": False, "normalized": False}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(vocab)}, "merges": merges},
    }

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def texts(values: list[str]) -> bytes:
        return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))

    values = {
        "model": struct.pack("<I", 8) + text("gpt2"),
        "pre": struct.pack("<I", 8) + text("qwen2"),
        "tokens": texts(vocab),
        "merges": texts(merges),
    }
    metadata = b"".join(text(f"tokenizer.ggml.{name}") + value for name, value in values.items())
    pieces = [(f"<0x{byte:02X}>", 6) for byte in range(256)] + [("a", 1), ("b", 1), ("ab", 1), ("<t>", 4)]
    message = b""
    for rank, (piece, kind) in enumerate(pieces):
        field = bytes([0x0A, len(piece)]) + piece.encode() + b"\x15" + struct.pack("<f", -rank) + bytes([0x18, kind])
        message += bytes([0x0A, len(field)]) + field
    message += b"\x12\x05\x18\x02\x98\x02\x01" + b"\x1a\x04\x18\x00\x20\x00"
    return [
        b"\0" + json.dumps(whole).encode()[1:],
        b"\x01" + struct.pack("<IQQ", 3, 0, len(values)) + metadata,
        b"\x02" + message[1:],
        b"\x03IQ== 0\nIg== 1\n",
    ]


def inputs() -> dict[str, list[bytes]]:
    """The inputs of each target."""
    lists, forms = [compact(each) for each in LISTS], list(FORMS)
    sessions = {forms.index(name): compact(each) for name, each in SESSIONS.items()}
    lines = b"\n".join(compact({"id": str(i), "messages": each}) for i, each in enumerate(LISTS[:1]))
    return {
        "json_tape": [lists[0], b' [1,-0.5e3,1e999,"\\ud83d\\ude00\\ud800\\u0000",{"a":1,"a":[true,null]},{}] '],
        "readers": [bytes([i]) + each for i, each in enumerate(lists)] + [bytes([len(lists)]) + each for each in lists],
        "sessions": [bytes([i]) + each for i, each in sorted(sessions.items())],
        "repair": [bytes([64 + i, *each]) for i, each in enumerate(lists[:4])],
        "summary_checks": [
            bytes([i]) + each + b"\0## Files\n- `a.py` read\n\n## Constraints\n- never push [1]\n"
            for i, each in enumerate(lists[:4])
        ],
        "lines": [
            b"\x07" + lines + b'\n{"a":1}{}\n\0\0{"id": "torn", "mess',
            b'\x21\xef\xbb\xbf[1]\r\n\n{x}\n"\xff"\n' + b"9" * 600 + b"\n{}",
        ],
        "tokenizers": tokenizers(),
        "event_streams": [STREAM],
        "compressed": [
            gzip.compress(lines, mtime=0),
            gzip.compress(b"{}\n", mtime=0) + gzip.compress(lists[2], mtime=0),
        ],
    }


def main() -> None:
    """Writes the files."""
    shutil.rmtree(CORPUS, ignore_errors=True)
    for target, each in inputs().items():
        (CORPUS / target).mkdir(parents=True)
        for i, data in enumerate(each):
            (CORPUS / target / f"{i:02}").write_bytes(data)


if __name__ == "__main__":
    main()
