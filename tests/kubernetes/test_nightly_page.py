"""The page about a CronJob: what its role may do is what its command reads."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"


def test_the_role_may_read_what_is_read_and_nothing_else() -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## Look every night", 1)[1]
    found = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    asked = re.search(r"kubectl get (\S+) -A", text)
    assert found and asked
    objects = {o["kind"]: o for o in yaml.safe_load_all(found[1])}
    rules = objects["ClusterRole"]["rules"]
    assert all(rule["verbs"] == ["get", "list"] for rule in rules)
    may = {name for rule in rules for name in rule["resources"]}
    assert may == set(asked[1].split(","))
    pod = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
