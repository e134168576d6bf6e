"""Whether what a namespace allows leaves room for the pods of a data centre. Pure.

Pods are made by controllers, long after manifests were taken: what a ResourceQuota refuses then is seen in events
alone. Objects themselves are checked by the API server, by a dry run.

Sources: https://kubernetes.io/docs/concepts/policy/resource-quotas/ and
https://kubernetes.io/docs/concepts/policy/limit-range/
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from reconciler.deploy.kubernetes.quantities import in_words, quantity

_ZERO = Fraction(0)
# Names of a quota without a prefix are those of requests.
_OF_REQUESTS = {"cpu": "requests.cpu", "memory": "requests.memory"}
_PODS = ("pods", "count/pods")
_COMPUTE = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
# Scopes of a quota that pods of ours are in: they have no deadline, and requests of their own.
_OUR_SCOPES = ("NotTerminating", "NotBestEffort")
_WITHOUT_CLASS = ("NotIn", "DoesNotExist")


class PodNeeds(NamedTuple):
    """What the pods of one object take of a namespace.

    Attributes:
        of: kind and name of the object.
        amounts: for one pod: processors and bytes by `requests.cpu`, `requests.memory`, `limits.cpu`, `limits.memory`.
        pods: how many there are.
    """

    of: str
    amounts: Mapping[str, Fraction]
    pods: int = 1

    def takes(self, resource: str) -> Fraction:
        """Return how much of a resource all of its pods take; 0 of one that they do not name."""
        if resource in _PODS:
            return Fraction(self.pods)
        return self.amounts.get(_OF_REQUESTS.get(resource, resource), _ZERO) * self.pods


def pod_needs(one: Mapping[str, Any]) -> PodNeeds | None:
    """Return what the pods of an object take; None of an object that makes no pods.

    Raises:
        ValueError: a quantity in it cannot be read.
        KeyError: it lacks what every manifest of ours has.
    """
    of = f"{one['kind']} {one['metadata']['name']}"
    if one["kind"] == "SparkApplication":
        return PodNeeds(of, _of_driver(one["spec"]["sparkConf"]))
    if one["kind"] == "Deployment":
        spec = one["spec"]
        containers = spec["template"]["spec"]["containers"]
        return PodNeeds(of, _of_containers(containers), int(spec.get("replicas", 1)))
    return None


def _of_driver(conf: Mapping[str, str]) -> dict[str, Fraction]:
    """Return what Spark requests for one driver: its memory is request and limit, and sizes are binary.

    Source: https://spark.apache.org/docs/latest/running-on-kubernetes.html#spark-properties
    """
    memory = sum(
        quantity(f"{conf[f'spark.driver.{name}'].removesuffix('m')}Mi") for name in ("memory", "memoryOverhead")
    )
    return {
        "requests.cpu": quantity(conf["spark.kubernetes.driver.request.cores"]),
        "limits.cpu": quantity(conf["spark.kubernetes.driver.limit.cores"]),
        "requests.memory": Fraction(memory),
        "limits.memory": Fraction(memory),
    }


def _of_containers(containers: Sequence[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Return what containers take together; a resource without a request has that of its limit."""
    amounts: defaultdict[str, Fraction] = defaultdict(Fraction)
    for container in containers:
        resources = container.get("resources", {})
        limits, requests = resources.get("limits", {}), resources.get("requests", {})
        for name in ("cpu", "memory"):
            if name in limits:
                amounts[f"limits.{name}"] += quantity(str(limits[name]))
            if name in requests or name in limits:
                amounts[f"requests.{name}"] += quantity(str(requests.get(name, limits.get(name))))
    return dict(amounts)


def shortages(
    rules: Collection[Mapping[str, Any]], planned: Collection[PodNeeds], there: Collection[PodNeeds]
) -> Iterator[str]:
    """Yield which pods would be refused.

    Args:
        rules: the ResourceQuotas and LimitRanges of the namespace.
        planned: what they take.
        there: what those that are there already take, which is in what quotas count as used.

    Raises:
        ValueError: a quantity of a rule cannot be read.
    """
    ranges = [limit for one in rules if one["kind"] == "LimitRange" for limit in one["spec"].get("limits", ())]
    filled = [_filled(one, ranges) for one in planned]
    for limit in ranges:
        yield from _out_of_range(limit, filled)
    before = {one.of: _filled(one, ranges) for one in there}
    for quota in rules:
        if quota["kind"] == "ResourceQuota" and _is_for_ours(quota.get("spec", {})):
            yield from _beyond(quota, filled, before)


def _filled(needs: PodNeeds, ranges: Sequence[Mapping[str, Any]]) -> PodNeeds:
    """Return needs with the defaults that the namespace gives containers."""
    amounts = dict(needs.amounts)
    for limit in ranges:
        if limit.get("type") != "Container":
            continue
        for prefix, key in (("limits", "default"), ("requests", "defaultRequest")):
            for name, value in limit.get(key, {}).items():
                amounts.setdefault(f"{prefix}.{name}", quantity(str(value)))
    return needs._replace(amounts=amounts)


def _out_of_range(limit: Mapping[str, Any], planned: Collection[PodNeeds]) -> Iterator[str]:
    """Yield which pods are larger or smaller than a LimitRange allows; each of ours has one container."""
    kind = limit.get("type")
    if kind not in ("Container", "Pod"):
        return
    for needs in planned:
        for name in ("cpu", "memory"):
            is_bytes = name == "memory"
            least, most = (limit.get(key, {}).get(name) for key in ("min", "max"))
            requested, limited = needs.amounts.get(f"requests.{name}"), needs.amounts.get(f"limits.{name}")
            if most is not None and (limited is None or limited > quantity(str(most))):
                found = "no limit" if limited is None else in_words(limited, is_bytes=is_bytes)
                yield f"a LimitRange allows a {kind.lower()} {most} of {name}, and {needs.of} declares {found}"
            if least is not None and (requested is None or requested < quantity(str(least))):
                found = "no request" if requested is None else in_words(requested, is_bytes=is_bytes)
                yield f"a LimitRange gives a {kind.lower()} no less than {least} of {name}, and {needs.of} has {found}"


def _is_for_ours(spec: Mapping[str, Any]) -> bool:
    """Return whether a quota counts pods of ours, which have no priority class."""
    expressions = spec.get("scopeSelector", {}).get("matchExpressions", ())
    named = [(one["scopeName"], one.get("operator", "Exists")) for one in expressions]
    return all(
        scope in _OUR_SCOPES or (scope == "PriorityClass" and operator in _WITHOUT_CLASS)
        for scope, operator in (*((scope, "Exists") for scope in spec.get("scopes", ())), *named)
    )


def _beyond(quota: Mapping[str, Any], planned: Collection[PodNeeds], before: Mapping[str, PodNeeds]) -> Iterator[str]:
    """Yield of which resources a quota leaves too little."""
    status, name = quota.get("status", {}), quota["metadata"]["name"]
    for resource, most in status.get("hard", {}).items():
        full = _OF_REQUESTS.get(resource, resource)
        if full not in (*_COMPUTE, *_PODS):
            continue
        if full in _COMPUTE and (lacking := [one.of for one in planned if full not in one.amounts]):
            yield f"ResourceQuota {name} counts {resource}, so each pod has to name it, and {lacking[0]} does not"
        needed = sum((one.takes(full) for one in planned), _ZERO)
        needed -= sum((before[one.of].takes(full) for one in planned if one.of in before), _ZERO)
        left = quantity(str(most)) - quantity(str(status.get("used", {}).get(resource, "0")))
        if needed > max(left, _ZERO):
            is_bytes = full.endswith("memory")
            found = in_words(max(left, _ZERO), is_bytes=is_bytes)
            more = " more" if before else ""
            yield (
                f"ResourceQuota {name} leaves {found} of {most} {resource}, and these pods need"
                f" {in_words(needed, is_bytes=is_bytes)}{more}"
            )
