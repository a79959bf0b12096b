"""Code blocks of pages, run as a reader would.

Blocks of ``python`` are run by Python, those without a block of the shell between them as one
program; blocks of ``sh`` by the shell. A block below a line ``*Not run by the tests: why.*`` is
left out. `kubectl` and `helm` are stand-ins that print a small cluster and a small chart.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forks import forked

from placeopt import cli

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"(?P<reason>^\*Not run by the tests: [^*]+\*\n+)?"
    r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: What only a shell understands.
SHELL = frozenset("|&;<>$`*")
#: pod -> its node; two of one Deployment, on nodes that are half empty.
PODS = {"web-6f9-a": "node-1", "web-6f9-b": "node-2"}


def blocks(text: str) -> list[tuple[str, str]]:
    """Return (language, code) of the blocks to run."""
    found = [
        (m["language"], m["code"])
        for m in FENCE.finditer(text)
        if m["language"] in ("python", "sh") and not m["reason"]
    ]
    joined: list[tuple[str, str]] = []
    for language, group in itertools.groupby(found, key=lambda block: block[0]):
        codes = [code for _, code in group]
        joined += [(language, code) for code in (codes if language == "sh" else ["".join(codes)])]
    return joined


def command_of(language: str, code: str) -> list[str]:
    """Return what runs a block."""
    if language == "python":
        return ["python", "-c", code]
    return ["bash", "-euo", "pipefail", "-c", code]


def environment(folder: Path | None = None) -> dict[str, str]:
    """Return the environment of a reader: this checkout's package, this interpreter's commands.

    With a folder, programs in its ``bin`` come first.
    """
    paths = [str(folder / "bin")] if folder else []
    paths += [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return os.environ | {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT)}


def plain_commands(code: str) -> list[list[str]] | None:
    """Return the arguments of each line; None where some line is more than a command of ours."""
    lines = code.replace("\\\n", " ").splitlines()
    commands = [words for line in lines if (words := shlex.split(line, comments=True))]
    if any(words[0] != "placeopt" or SHELL & set("".join(words)) for words in commands):
        return None
    return [words[1:] for words in commands]


def run_here(commands: list[list[str]], folder: Path) -> None:
    """Run commands in this process, which is warm: a process of their own takes a second each."""
    for arguments in commands:
        with contextlib.chdir(folder), pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert not end.value.code, arguments


def run_blocks(found: list[tuple[str, str]], folder: Path) -> None:
    """Run blocks one after another in an empty folder; one may use what an earlier one wrote."""
    stand_ins(folder / "bin")
    for language, code in found:
        commands = plain_commands(code) if language == "sh" else None
        if commands is not None:
            run_here(commands, folder)
            continue
        if language == "python":
            done = forked(code, cwd=folder, environment=environment(folder))
        else:
            done = subprocess.run(
                command_of(language, code),
                capture_output=True,
                text=True,
                cwd=folder,
                env=environment(folder),
            )
        assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def stand_ins(folder: Path) -> None:
    """Write programs that print what `kubectl get` and `helm template` would."""
    folder.mkdir()
    (folder / "cluster.json").write_text(json.dumps(cluster()), encoding="utf-8")
    shutil.copy(ROOT / "examples" / "data" / "shop.yaml", folder / "chart.yaml")
    for program, printed in (("kubectl", "cluster.json"), ("helm", "chart.yaml")):
        (folder / program).write_text(f'#!/bin/sh\ncat "{folder / printed}"\n', encoding="utf-8")
        (folder / program).chmod(0o755)


def cluster() -> dict[str, Any]:
    """Return a list of Kubernetes: two nodes, a Deployment, its ReplicaSet, its pods."""
    place = {
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/region": "us-east-1",
    }
    labels = {"app": "web", "pod-template-hash": "6f9"}
    requests = {"requests": {"cpu": "500m", "memory": "512Mi"}}
    spec = {"containers": [{"name": "main", "image": "web", "resources": requests}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}

    def thing(version: str, kind: str, name: str, owner: tuple[str, str] = ("", ""), **rest: Any):
        about: dict[str, Any] = {"name": name, "labels": rest.pop("labels", labels)}
        if kind != "Node":
            about["namespace"] = "shop"
        if owner[0]:
            about["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
        return {"apiVersion": version, "kind": kind, "metadata": about, **rest}

    room = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    ready = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    wanted = {"replicas": len(PODS), "selector": selector, "template": template}
    items = [thing("v1", "Node", n, labels=place, status=ready) for n in sorted(set(PODS.values()))]
    items += [
        thing("apps/v1", "Deployment", "web", spec=wanted),
        thing("apps/v1", "ReplicaSet", "web-6f9", ("Deployment", "web"), spec=wanted),
    ]
    running = {"phase": "Running", "conditions": ready["conditions"]}
    owner = ("ReplicaSet", "web-6f9")
    items += [
        thing("v1", "Pod", pod, owner, spec=spec | {"nodeName": node}, status=running)
        for pod, node in PODS.items()
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}
