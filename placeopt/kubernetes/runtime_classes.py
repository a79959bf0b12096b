"""RuntimeClasses: what they add to pods that name them, as the API server does."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.kubernetes.notes import note
from placeopt.kubernetes.objects import PodSpec, pod_spec
from placeopt.kubernetes.reading import View


def with_runtime(spec: PodSpec, runtimes: Mapping[str, View], label: str) -> PodSpec:
    """Return a spec with the overhead, node selector and tolerations of its runtime class."""
    name = spec.view["runtimeClassName"].text()
    if not name:
        return spec
    runtime = runtimes.get(name)
    if runtime is None:
        if not spec.view["overhead"]:
            text = f"RuntimeClass {name[:63]} is not in the files: it is taken to add nothing"
            note("assumption", text, label)
        return spec
    scheduling, value = runtime["scheduling"], dict(spec.view.mapping())
    value.setdefault("overhead", runtime["overhead"]["podFixed"].mapping())
    value["nodeSelector"] = scheduling["nodeSelector"].labels() | spec.selector
    own = [t.value for t in spec.view["tolerations"].items()]
    more = [t.value for t in scheduling["tolerations"].items() if t.value not in own]
    value["tolerations"] = [*own, *more]
    view = spec.view
    return pod_spec(View(value, view.source, view.document, view.parent, view.key))
