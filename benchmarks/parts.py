"""Parts of a page, each kept when it is measured: a stopped run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import stamps
from machine import facts

#: What runs found so far, by page; never committed.
KEPT = stamps.ROOT / "out" / "parts"


def measured(
    page: Path,
    parts: Mapping[str, Callable[[], Iterable[str]]],
    script: str,
    settings: Mapping[str, Any],
    *distributions: str,
) -> str:
    """Return the parts of a page, one after the other; what is kept is not measured again.

    Parameters
    ----------
    page : names the file of what is kept.
    parts : yields the lines of each.
    script : the ``__file__`` of the script; what another version of it found does not count.
    settings : the arguments of the run; as above.
    distributions : whose versions the last line of a part says, beside date and machine.
    """
    code = stamps.code_hash(Path(script).resolve(), json.loads(json.dumps(settings)))
    file = KEPT / f"{page.parent.name}-{page.stem}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    found: dict[str, str] = kept["parts"] if kept.get("code") == code else {}
    for name, lines in parts.items():
        if name not in found:
            said = f"Measured {facts(*distributions)}"
            found[name] = "\n".join([*lines()]).strip() + f"\n\n{said}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"code": code, "parts": found}), encoding="utf-8")
            print(name, flush=True)
    return "\n\n".join(found[name] for name in parts)
