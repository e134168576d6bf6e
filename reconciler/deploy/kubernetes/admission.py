"""Whether a Kubernetes cluster would take the manifests of a data centre and start its pods, before it is tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from reconciler.deploy.kubernetes.kubectl import Kubectl, KubectlOutput, Refusal
from reconciler.deploy.kubernetes.quotas import pod_needs, shortages
from reconciler.model.declared.deployment import KubernetesPods
from reconciler.model.planning.health import Check


class Admission:
    """What stands against the pods of one data centre.

    Args:
        what: name of the check.
        pods: as declared.
        place: `file:line:column (json path)` of the deployment.
        kubectl: of its namespace.
    """

    def __init__(self, what: str, pods: KubernetesPods, place: str, kubectl: Kubectl) -> None:
        self._what, self._pods, self._place, self._kubectl = what, pods, place, kubectl

    def checks(
        self, objects: Sequence[Mapping[str, Any]], variables: Collection[str], files: Collection[str]
    ) -> Iterator[Check]:
        """Yield what was found, one check at least.

        Args:
            objects: all manifests.
            variables: the keys that `kubernetes.secret` needs.
            files: absolute paths of the files that Secrets have to hold.

        Raises:
            EnvironmentFault: AB772, kubectl or its context is not there; AB309, its server may not be connected to.
        """
        self._kubectl.check()
        found = list(self._of_objects(objects))
        if not any(one.level == "failure" for one in found):
            found += [*self._of_secrets(variables, files), *self._of_room(objects)]
        yield from found
        if not any(one.level == "failure" for one in found):
            taken = f"context {self._pods.context} takes all {len(objects)} objects in namespace {self._pods.namespace}"
            unseen = any(one.level == "warning" for one in found)
            yield Check(self._what, "ok", taken if unseen else f"{taken}, has its Secrets, and has room for its pods")

    def _of_objects(self, objects: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
        """Yield what the API server has against objects: a namespace, a kind or a right that is not there, a policy."""
        answer = self._kubectl.dry_run(objects)
        yield from (self._warning(f"the API server warns: {one}") for one in answer.warnings)
        yield from self._refused(answer, "whether it takes the objects")

    def _of_secrets(self, variables: Collection[str], files: Collection[str]) -> Iterator[Check]:
        """Yield which Secrets, or keys in them, are not there."""
        needed: dict[str, set[str]] = {}
        if self._pods.secret is not None:
            needed.setdefault(self._pods.secret, set()).update(variables)
        for folder, secret in self._pods.mounts:
            inside = {PurePosixPath(path).name for path in files if str(PurePosixPath(path).parent) == folder}
            needed.setdefault(secret, set()).update(inside)
        if self._pods.pull_secret is not None:
            needed.setdefault(self._pods.pull_secret, set())
        for secret, keys in sorted(needed.items()):
            there, answer = self._kubectl.keys_of(secret)
            yield from self._refused(answer, f"the keys of Secret {secret}")
            if not answer.refusals and (lacking := sorted(keys - there)):
                yield self._failure(f"Secret {secret} has no {', '.join(lacking)}", "add these keys to the Secret")

    def _of_room(self, objects: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
        """Yield which pods would be refused by a quota or a range of the namespace."""
        rules, answer = self._kubectl.listed("resourcequotas,limitranges")
        yield from self._refused(answer, "quotas of the namespace")
        if not rules:
            return
        there, answer = self._kubectl.existing(objects)
        yield from self._refused(answer, "what already runs")
        planned = [needs for one in objects if (needs := pod_needs(one)) is not None]
        try:
            before = [needs for one in there if (needs := pod_needs(one)) is not None]
            lacking = list(shortages(rules, planned, before))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield self._warning(f"quotas of the namespace cannot be read: {error}")
            return
        remedy = "have it raised, or declare less memory, cpus or processes"
        yield from (self._failure(one, remedy) for one in lacking)

    def _refused(self, answer: KubectlOutput, sought: str) -> Iterator[Check]:
        for one in answer.refusals:
            if one.is_of_rights:
                yield self._warning(f"{sought} cannot be seen: {one.text}")
            else:
                yield self._failure(one.text, _remedy(one))

    def _warning(self, found: str) -> Check:
        return Check(self._what, "warning", found, f"see {self._place}")

    def _failure(self, found: str, remedy: str) -> Check:
        return Check(self._what, "failure", found, f"{remedy}; see {self._place}")


def _remedy(refusal: Refusal) -> str:
    """Return what to do about what the API server did not take."""
    if "no matches for kind" in refusal.text or "ensure CRDs are installed" in refusal.text:
        return "install Apache's Spark operator, which brings this kind along"
    if refusal.reason == "NotFound":
        return "make it, or name another one"
    return "change what it names, or have it allowed"
