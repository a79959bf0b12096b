"""The shell of every page: one style, a policy that forbids the network, scripts by their hash."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from placeopt.plot.markup import clean
from placeopt.version import __version__

#: What a browser may load and run: this page's own scripts, and nothing from anywhere.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'"
)


def asset(name: str, package: str = "placeopt.plot") -> str:
    """Return a file of a package as text."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def shell(
    *,
    title: str,
    heading: str,
    eyebrow: str,
    body: str,
    lead: str = "",
    links: Sequence[tuple[str, str]] = (),
    footer: str = "",
    script: str = "",
    reload: int | None = None,
) -> str:
    """Return a page.

    Parameters
    ----------
    title, heading, eyebrow, lead : str
        Plain text.
    body, footer : str
        HTML; names in it are escaped.
    links : sequence of (str, str)
        The sections of the body that the navigation leads to: id and text.
    script : str
        JavaScript, run after the body.
    reload : int, optional
        Seconds after which a browser reads the page again.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return asset("page.html").format(
        version=__version__,
        policy=_POLICY.format(scripts=f"'sha256-{digest}'" if script else "'none'"),
        reload="" if reload is None else f'<meta http-equiv="refresh" content="{reload}">\n',
        title=clean(title),
        style=asset("page.css"),
        eyebrow=clean(eyebrow),
        heading=clean(heading),
        lead=clean(lead),
        navigation=_navigation(links),
        body=body,
        footer=footer,
        script=f"<script>{script}</script>" if script else "",
    )


def _navigation(links: Sequence[tuple[str, str]]) -> str:
    inside = "".join(f'<a href="#{name}">{clean(text)}</a>' for name, text in links)
    return f'<nav aria-label="Sections">{inside}</nav>' if links else ""
