"""What a shell completes of the commands of this door."""

from __future__ import annotations

from placeopt.cli.completion import beginning


def import_targets(incomplete: str) -> list[str]:
    """Return the problems that a cluster becomes an instance of."""
    from placeopt.kubernetes.importing import TARGETS

    return beginning(incomplete, TARGETS)


def export_formats(incomplete: str) -> list[str]:
    """Return what a plan becomes, for any problem."""
    from placeopt.kubernetes.export import FORMATS

    forms = dict.fromkeys(form for forms in FORMATS.values() for form in forms)
    return beginning(incomplete, forms)
