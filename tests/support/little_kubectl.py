"""The commands of kubectl that exported scripts give, over the objects of an API stub.

A real kubectl costs a tenth of a CPU second a command, which a script gives a hundred times. This
one is a few lines of bash that hand their words to this process. Controllers and scheduler of the
stub have done what they would before a command ends, so that no test waits for them.
"""

from __future__ import annotations

import argparse
import json
import re
import socketserver
import threading
from pathlib import Path
from typing import Any

from api_stub import RESOURCES, ApiStub, Key, Object, RefusedError, asked_for, shown

CLIENT = """#!/usr/bin/env bash
given=
[[ "${*: -1}" != - ]] || IFS= read -r -d '' given
exec 3<>/dev/tcp/127.0.0.1/PORT
printf '%s\\0' "$#" "$@" "$given" >&3
IFS= read -r -d '' -u 3 code
IFS= read -r -d '' -u 3 said
[[ -z "$said" ]] || echo "$said" >&2
[[ "$code" == 0 ]] && cat <&3
exit "$code"
"""

_WORDS = argparse.ArgumentParser(exit_on_error=False)
for _name in ("--context", "-n", "-l", "--field-selector", "-o", "--type", "-p", "-f"):
    _WORDS.add_argument(_name)
for _name in ("-A", "--ignore-not-found", "--overwrite"):
    _WORDS.add_argument(_name, action="store_true")
_WORDS.add_argument("--replicas", type=int)
_WORDS.add_argument("--wait", nargs="?")
_WORDS.add_argument("words", nargs="*")


class CommandStub(ApiStub):
    """An API stub that such commands reach, in place of HTTP.

    ``log`` has the words of each command; ``break_at`` the numbers of those that are lost.

    Parameters
    ----------
    items : list of dict
        Objects of the cluster.
    context : str
        The only context that there is.
    """

    def __init__(self, items: list[Object], context: str):
        super().__init__(items, _Server)
        self.server.stub = self  # type: ignore[attr-defined]
        self.context = context
        self.log: list[list[str]] = []
        self.break_at: list[int] = []

    def __enter__(self) -> CommandStub:
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def install(self, folder: Path) -> None:
        """Write a kubectl that reaches this stub."""
        tool = folder / "kubectl"
        port = str(self.server.server_address[1])
        tool.write_text(CLIENT.replace("PORT", port), encoding="utf-8")
        tool.chmod(0o755)

    def settle(self) -> None:
        """Let controllers and scheduler do all that they would."""
        seen = -1
        while seen != self.store.version:
            seen = self.store.version
            self.cluster.round()

    def answer(self, words: list[str], given: str) -> str:
        """Return what a command prints."""
        asked = _WORDS.parse_intermixed_args(words)
        if asked.words == ["config", "current-context"]:
            return self.context
        assert asked.context in (None, self.context), "the script asks another cluster"
        self.log.append(words)
        if len(self.log) in self.break_at:
            raise RefusedError(1, "Lost", "the connection was lost")
        verb, *rest = asked.words
        self.settle()
        if verb == "get":
            return self.get(rest, asked)
        for method, key, body in self.changes(verb, rest, asked, given):
            self.store.request(method, key, body, by_name=asked.type != "merge")
            self.settle()
        return f"{verb} is done"

    def keys(self, kind: str, rest: list[str], asked: argparse.Namespace) -> list[Key]:
        """Return the objects that a command names, by name or selectors."""
        known = (p for p, (*_, short) in RESOURCES.items() if kind in (p, p[:-1], *short))
        plural = next(known)
        space = (asked.n or "default") if RESOURCES[plural][2] else ""
        if rest:
            return [(plural, space, rest[0])]
        wanted = {"labelSelector": asked.l or "", "fieldSelector": asked.field_selector or ""}
        return [
            key
            for key, item in self.store.all(plural)
            if (asked.A or key[1] == space) and asked_for(item, wanted)
        ]

    def get(self, rest: list[str], asked: argparse.Namespace) -> str:
        """Print an object, a part of it, or a list."""
        keys = [key for kind in rest[0].split(",") for key in self.keys(kind, rest[1:], asked)]
        if len(rest) == 1:
            listed = [shown(self.store.tables[key]) for key in keys]
            return json.dumps({"kind": "List", "items": listed})
        [key] = keys
        if asked.ignore_not_found and key not in self.store.tables:
            return ""
        item = shown(self.store.one(key))
        if asked.o == "name":
            return f"{rest[0]}/{key[2]}"
        return json.dumps(item) if asked.o == "json" else part(item, asked.o)

    def changes(
        self, verb: str, rest: list[str], asked: argparse.Namespace, given: str
    ) -> list[tuple[str, Key, Any]]:
        """Return the requests that a command becomes: method, object, body."""
        if verb in ("create", "replace"):
            item = json.loads(given)
            about = item["metadata"]
            plural = next(p for p, (_, kind, *_) in RESOURCES.items() if kind == item["kind"])
            key = (plural, asked.n or about.get("namespace", "default"), about["name"])
            return [("POST" if verb == "create" else "PUT", key, item)]
        if verb in ("cordon", "uncordon"):
            body: Any = {"spec": {"unschedulable": True if verb == "cordon" else None}}
            return [("PATCH", ("nodes", "", rest[0]), body)]
        if verb in ("annotate", "label"):
            named = rest[1:] if asked.l else rest[2:]
            pairs = (p.partition("=") if not p.endswith("-") else (p[:-1], "", None) for p in named)
            table = "annotations" if verb == "annotate" else "labels"
            body = {"metadata": {table: {name: value for name, _, value in pairs}}}
            return [
                ("PATCH", k, body) for k in self.keys(rest[0], rest[1:2] * (not asked.l), asked)
            ]
        [key] = self.keys(rest[0], rest[1:], asked)
        if verb == "delete":
            gone = asked.ignore_not_found and key not in self.store.tables
            return [] if gone else [("DELETE", key, None)]
        if verb == "scale":
            return [("PATCH", key, {"spec": {"replicas": asked.replicas}})]
        assert verb == "patch", f"unknown command {verb}"
        return [("PATCH", key, json.loads(asked.p))]


def part(thing: Any, path: str) -> str:
    """Return what a jsonpath of the scripts finds."""
    if "ownerReferences" in path:
        owners = thing["metadata"].get("ownerReferences", [])
        return next((o["name"] for o in owners if o.get("controller")), "")
    for key in re.findall(r"[^.{}]+", path.removeprefix("jsonpath=")):
        thing = thing.get(key, "") if isinstance(thing, dict) else ""
    return thing if isinstance(thing, str) else json.dumps(thing)


class _Command(socketserver.StreamRequestHandler):
    """One command: its words and what is written into it, NUL behind each."""

    def word(self) -> str:
        text = b""
        while not text.endswith(b"\0"):
            byte = self.rfile.read(1)
            if not byte:
                raise ConnectionError("the script was killed")
            text += byte
        return text[:-1].decode()

    def handle(self) -> None:
        stub: CommandStub = self.server.stub  # type: ignore[attr-defined]
        words, given = [self.word() for _ in range(int(self.word()))], self.word()
        try:
            with stub.store.changed:
                code, said, out = 0, "", stub.answer(words, given)
        except Exception as error:
            code, said, out = 1, f"{type(error).__name__}: {error}", ""
        self.wfile.write(f"{code}\0{said}\0{out}".encode())


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], _: Any):
        super().__init__(address, _Command)
