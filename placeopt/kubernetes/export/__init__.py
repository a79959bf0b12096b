"""Plans out: ordered steps with their commands, and Karmada policies; no cluster is asked.

==================  ================================================================================
``steps``           rolling-update and rescheduling plans as steps
``steps_document``  steps as JSON, format ``placeopt/steps@1``, and back to the plan
``script``          a script of the steps that can be run again, from script.sh and arrivals.sh
``purchases``       what to buy and to free, and how a script finds what was bought
``karmada``         edge-cloud and multi-cluster plans as PropagationPolicies with static weights
==================  ================================================================================
"""

from __future__ import annotations

from placeopt.core.errors import DocumentError, UnsupportedError, UsageError
from placeopt.core.files.documents import layout
from placeopt.core.fronts.values import Plan
from placeopt.core.problem import Problem
from placeopt.kubernetes.origin import Origin

#: What a plan of each problem can become; the first is the default.
FORMATS = {
    "rolling-update": ("commands", "json", "node-groups"),
    "rescheduling": ("commands", "json"),
    "edge-cloud": ("karmada",),
    "multi-cluster": ("karmada",),
}


def export(
    problem: Problem,
    plan: Plan,
    origin: Origin | None = None,
    *,
    form: str | None = None,
    namespace: str = "default",
) -> str:
    """Return a plan as text to apply.

    Parameters
    ----------
    problem : Problem
    plan : mapping
        A plan that breaks nothing.
    origin : Origin, optional
        What the instance's names are in the cluster. `commands` need it; without it, steps as
        `json` name no pods.
    form : str, optional
        One of `FORMATS` of the problem.
    namespace : str
        For Karmada policies of instances without an origin.

    Raises
    ------
    UnsupportedError
        Plans of this problem cannot be exported in this form, or no command can move something in
        the cluster.
    DocumentError
        The plan breaks the instance, or the origin does not fit to it.
    """
    form = _form(problem, form)
    broken = problem.evaluate(plan).violations
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        raise DocumentError(
            f"the plan breaks the instance: {broken[0].message}{more}",
            remedy="export a point that the referee accepts",
        )
    if origin is not None:
        origin.check(problem)
    if form == "karmada":
        from placeopt.kubernetes.export.karmada import policies, to_yaml

        return to_yaml(policies(problem, plan, origin, namespace=namespace))
    from placeopt.kubernetes.export import script

    if form == "node-groups":
        return layout(script.node_groups(problem, plan, origin))
    if form == "json":
        return layout(script.document(problem, plan, origin))
    if origin is None:
        raise UsageError(
            "commands need the names of the cluster: give --origin, which "
            "`placeopt import kubernetes` writes, or ask for json"
        )
    return script.script(problem, plan, origin)


def _form(problem: Problem, form: str | None) -> str:
    legal = FORMATS.get(problem.problem, ())
    if not legal:
        raise UnsupportedError(
            f"plans of {problem.problem} are not Kubernetes objects; "
            "`placeopt report` and `placeopt pick` show them"
        )
    if form is not None and form not in legal:
        raise UnsupportedError(
            f"a {problem.problem} plan cannot become {form!r}; legal: {', '.join(legal)}"
        )
    return form or legal[0]
