"""The conversations: real ones in the form of OpenAI Chat, and generated ones for rare cases.

The real ones come from examples/data; if FOLDLINE_SHARED names the shared transcripts, all 25 tasks of tau-bench and
the requests that pydantic-ai's tests recorded replace them. Generated ones are the same on every machine.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

from judging import Message, problems

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "data"

#: The sentinel by which tau-bench's simulated user ends a conversation: no model is called with it.
STOP = "###STOP###"

WORDS = [
    "the",
    "plan",
    "of",
    "this",
    "week",
    "says",
    "that",
    "we",
    "read",
    "every",
    "file",
    "before",
    "we",
    "change",
    "one",
    "and",
    "write",
    "down",
    "what",
    "was",
    "found",
    "there",
    "then",
    "run",
    "all",
    "tests",
    "again",
    "and",
    "report",
    "which",
    "of",
    "them",
    "failed",
    "with",
    "the",
    "line",
    "and",
    "the",
    "reason",
]
HAN = "我们今天讨论这个项目的计划请先阅读所有文件然后修改代码再运行测试最后报告哪些失败以及原因"
KANA = "このプロジェクトの計画を読んでからコードを変更しテストを実行して結果を報告してください"
HANGUL = "이 프로젝트의 계획을 읽고 코드를 변경한 다음 시험을 실행하고 결과를 보고해 주세요 "


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its source."""

    name: str
    source: str
    messages: list[Message]


def conversations() -> list[Conversation]:
    """All conversations that the API accepts unchanged."""
    return [*_recorded(), *generated()]


# --- recorded -------------------------------------------------------------------------------------------


def _shared() -> Path | None:
    folder = Path(os.environ["FOLDLINE_SHARED"]) / "data" if "FOLDLINE_SHARED" in os.environ else None
    return folder if folder is not None and folder.is_dir() else None


def _recorded() -> list[Conversation]:
    found = []
    data = _shared()
    if data is None:
        for name in ("openai-tools", "chinese-dialogues"):
            for line in (EXAMPLES / f"{name}.jsonl").read_text("utf-8").splitlines():
                value = json.loads(line)
                found.append(Conversation(value["id"], f"examples/data/{name}", until_the_model(value["messages"])))
        return found
    tasks = json.loads((data / "openai-tau-airline" / "gpt-4o-airline.tasks0-24.json").read_bytes())
    for number, task in enumerate(tasks):
        found.append(Conversation(f"tau-airline-{number}", "openai-tau-airline", until_the_model(task["traj"])))
    seen = set()
    for line in (data / "pydantic-ai-requests" / "openai-chat.jsonl").read_text("utf-8").splitlines():
        value = json.loads(line)
        messages = value["body"].get("messages") or []
        key = json.dumps(messages, sort_keys=True)
        # Some were recorded from other services, which accept messages that OpenAI's API rejects.
        if len(messages) >= 4 and key not in seen and all(map(_is_text, messages)) and not problems(messages):
            seen.add(key)
            found.append(Conversation(f"pydantic-ai-{len(seen)}", "pydantic-ai openai-chat", messages))
    for line in (EXAMPLES / "chinese-dialogues.jsonl").read_text("utf-8").splitlines():
        value = json.loads(line)
        found.append(Conversation(value["id"], "examples/data/chinese-dialogues", until_the_model(value["messages"])))
    return found


def until_the_model(messages: list[Message]) -> list[Message]:
    """Up to the newest message that a model would answer: a user or tool message."""
    end = len(messages)
    while end and (messages[end - 1]["role"] not in ("user", "tool") or messages[end - 1]["content"] == STOP):
        end -= 1
    return messages[:end]


def _is_text(message: Message) -> bool:
    """Whether the counting rule covers it: only texts, no pictures or sounds."""
    content = message.get("content")
    if isinstance(content, list):
        return all(part.get("type") == "text" for part in content)
    return content is None or isinstance(content, str)


# --- generated ------------------------------------------------------------------------------------------


class _Writer:
    """Messages with seeded texts; ids count up."""

    def __init__(self, seed: int, text: str = "words") -> None:
        self.random = random.Random(seed)
        self.text = text
        self.messages: list[Message] = []
        self.calls = 0

    def words(self, least: int, most: int) -> str:
        length = self.random.randint(least, most)
        if self.text == "words":
            return " ".join(self.random.choices(WORDS, k=length))
        if self.text == "hex":
            return self.random.randbytes(2 * length).hex()
        letters = {"han": HAN, "kana": KANA, "hangul": HANGUL}[self.text]
        return "".join(self.random.choices(letters, k=3 * length))

    def system(self, length: int = 60) -> None:
        self.messages.append({"role": "system", "content": self.words(length, length)})

    def user(self, least: int = 5, most: int = 60) -> None:
        self.messages.append({"role": "user", "content": self.words(least, most)})

    def assistant(self, least: int = 10, most: int = 120) -> None:
        self.messages.append({"role": "assistant", "content": self.words(least, most)})

    def call(self, count: int = 1, *, ids: list[str] | None = None, arguments: int = 8, say: bool = False) -> list[str]:
        """A message with `count` calls; returns their ids."""
        if ids is None:
            ids = [f"call_{self.calls + i}" for i in range(count)]
            self.calls += count
        calls = [
            {"id": id, "type": "function", "function": {"name": "look_up", "arguments": self._arguments(arguments)}}
            for id in ids
        ]
        content = self.words(5, 20) if say else None
        self.messages.append({"role": "assistant", "content": content, "tool_calls": calls})
        return ids

    def _arguments(self, length: int) -> str:
        return json.dumps({"query": self.words(length, length)}, ensure_ascii=False)

    def result(self, id: str, least: int = 10, most: int = 200) -> None:
        self.messages.append({"role": "tool", "tool_call_id": id, "content": self.words(least, most)})


def generated() -> list[Conversation]:
    """Cases that are rare in recorded conversations but occur in agents."""
    made = {
        "parallel calls": _parallel(1),
        "parallel calls beside text": _parallel(2, say=True),
        "results far from their call": _far(),
        "ids used again in every turn": _ids_again(),
        "one user message, then an agent at work": _one_user(),
        "one user message, parallel calls": _one_user(parallel=3),
        "a system message larger than most budgets": _large_system(),
        "a group larger than most budgets": _large_group(),
        "large arguments, small results": _large_arguments(),
        "Chinese": _talk("han"),
        "Japanese": _talk("kana"),
        "Korean": _talk("hangul"),
        "hexadecimal": _talk("hex"),
        "no system message": _parallel(3, system=False),
    }
    return [Conversation(name, "generated", messages) for name, messages in made.items()]


def _parallel(seed: int, *, say: bool = False, system: bool = True) -> list[Message]:
    """Turns of one to five calls at once; results come in any order."""
    writer = _Writer(seed)
    if system:
        writer.system()
    for turn in range(7):
        writer.user()
        ids = writer.call(1 + (turn + seed) % 5, say=say)
        writer.random.shuffle(ids)
        for id in ids:
            writer.result(id)
        writer.assistant()
    writer.user()
    return writer.messages


def _far() -> list[Message]:
    """Sixteen calls at once: the last result is sixteen messages after its call."""
    writer = _Writer(11)
    writer.system()
    for _ in range(2):
        writer.user()
        for id in reversed(writer.call(16)):
            writer.result(id, 5, 40)
        writer.assistant()
    writer.user()
    return writer.messages


def _ids_again() -> list[Message]:
    writer = _Writer(12)
    writer.system()
    for _ in range(8):
        writer.user()
        for id in writer.call(ids=["call_0", "call_1"]):
            writer.result(id)
        writer.assistant()
    writer.user()
    return writer.messages


def _one_user(parallel: int = 1) -> list[Message]:
    writer = _Writer(13 + parallel)
    writer.system()
    writer.user(40, 40)
    for _ in range(20 // parallel):
        for id in writer.call(parallel):
            writer.result(id)
    return writer.messages


def _large_system() -> list[Message]:
    writer = _Writer(17)
    writer.system(2000)
    for _ in range(6):
        writer.user()
        writer.assistant()
    writer.user()
    return writer.messages


def _large_group() -> list[Message]:
    """The newest result is most of the conversation."""
    writer = _Writer(18)
    writer.system()
    for _ in range(4):
        writer.user()
        writer.assistant()
    writer.user()
    for id in writer.call(2):
        writer.result(id, 1500, 1500)
    return writer.messages


def _large_arguments() -> list[Message]:
    """An agent that writes files: the arguments are large."""
    writer = _Writer(19)
    writer.system()
    for _ in range(5):
        writer.user()
        for id in writer.call(arguments=250):
            writer.result(id, 2, 4)
        writer.assistant(5, 20)
    writer.user()
    return writer.messages


def _talk(text: str) -> list[Message]:
    writer = _Writer(20, text)
    writer.system()
    for turn in range(8):
        writer.user()
        if turn % 2:
            for id in writer.call():
                writer.result(id)
        writer.assistant()
    writer.user()
    return writer.messages


def late_results() -> list[Conversation]:
    """Results after other messages. The API rejects the input; the requirement is that no pair is torn."""
    found = []
    for distance in (2, 4, 6, 8, 12):
        writer = _Writer(30 + distance)
        writer.system()
        for _ in range(3):
            writer.user()
            writer.assistant()
        ids = writer.call()
        for i in range(distance):
            (writer.assistant, writer.user)[i % 2]()
        writer.result(ids[0])
        for _ in range(3):
            writer.assistant()
            writer.user()
        found.append(Conversation(f"a result {distance + 1} messages behind its call", "generated", writer.messages))
    return found
