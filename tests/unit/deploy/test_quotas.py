"""What a namespace's quotas and ranges leave for pods: numbers as Kubernetes writes them, and rules as it has them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.deploy.kubernetes.quantities import in_words, quantity
from reconciler.deploy.kubernetes.quotas import PodNeeds, pod_needs, shortages
from tests.support.kubernetes.kubectl_stand_in import limit_range, quota

GIB = Fraction(2**30)
COPYING = PodNeeds(
    "SparkApplication a",
    {"requests.cpu": Fraction(2), "limits.cpu": Fraction(2), "requests.memory": 4 * GIB, "limits.memory": 4 * GIB},
)
SERVING = PodNeeds("Deployment b", {"requests.cpu": Fraction(1, 10), "requests.memory": GIB / 4, "limits.memory": GIB})


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", Fraction(2)),
        ("500m", Fraction(1, 2)),
        ("1.5Gi", 3 * GIB / 2),
        ("4Gi", 4 * GIB),
        ("128974848", Fraction(128974848)),
        ("129e6", Fraction(129_000_000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("12k", Fraction(12_000)),
        ("100n", Fraction(1, 10**7)),
        ("5u", Fraction(5, 10**6)),
        (".5", Fraction(1, 2)),
        ("3.", Fraction(3)),
        ("1e-3", Fraction(1, 1000)),
        ("0", Fraction(0)),
        ("1Ei", Fraction(2**60)),
    ],
)
def test_quantities_are_read_as_kubernetes_reads_them(text: str, amount: Fraction) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize("text", ["", "many", "4GB", "4 Gi", "1e", "0x10", "Gi", "1KI", "--1", "1e99999", "²"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a quantity of Kubernetes"):
        quantity(text)


@given(st.integers(0, 10**15), st.booleans())
def test_an_amount_in_words_is_the_same_amount(thousandths: int, is_bytes: bool) -> None:
    amount = Fraction(thousandths) if is_bytes else Fraction(thousandths, 1000)
    assert quantity(in_words(amount, is_bytes=is_bytes)) == amount


def told(rules: list[dict[str, Any]], *wanted: PodNeeds, there: tuple[PodNeeds, ...] = ()) -> list[str]:
    return list(shortages(rules, wanted, there))


@pytest.mark.parametrize(
    ("hard", "used", "said"),
    [
        ({"requests.cpu": "2"}, {}, []),
        ({"requests.cpu": "2"}, {"requests.cpu": "1m"}, ["leaves 1999m of 2 requests.cpu, and these pods need 2"]),
        ({"cpu": "1"}, {}, ["leaves 1 of 1 cpu, and these pods need 2"]),
        ({"limits.cpu": "1500m"}, {}, ["leaves 1500m of 1500m limits.cpu, and these pods need 2"]),
        ({"memory": "4Gi"}, {"memory": "0"}, []),
        ({"memory": "4Gi"}, {"memory": "1Gi"}, ["leaves 3Gi of 4Gi memory, and these pods need 4Gi"]),
        ({"limits.memory": "4G"}, {}, ["leaves 3906250Ki of 4G limits.memory, and these pods need 4Gi"]),
        ({"pods": "3"}, {"pods": "3"}, ["leaves 0 of 3 pods, and these pods need 1"]),
        ({"count/pods": "3"}, {"count/pods": "2"}, []),
        # More is used than there may be, since the quota was lowered.
        ({"pods": "3"}, {"pods": "5"}, ["leaves 0 of 3 pods, and these pods need 1"]),
        ({"persistentvolumeclaims": "0", "count/secrets": "0", "requests.nvidia.com/gpu": "0"}, {}, []),
    ],
)
def test_what_a_quota_leaves(hard: dict[str, str], used: dict[str, str], said: list[str]) -> None:
    assert told([quota(hard, used)], COPYING) == [f"ResourceQuota compute {one}" for one in said]


def test_all_pods_of_a_data_centre_are_added_up() -> None:
    two = COPYING._replace(of="SparkApplication a-2")
    (said,) = told([quota({"requests.cpu": "4"})], COPYING, two, SERVING)
    assert said == "ResourceQuota compute leaves 4 of 4 requests.cpu, and these pods need 4100m"
    assert told([quota({"requests.cpu": "4100m"})], COPYING, two, SERVING) == []


def test_what_runs_already_is_in_what_is_used() -> None:
    full = [quota({"memory": "4Gi"}, {"memory": "4Gi"})]
    assert told(full, COPYING, there=(COPYING,)) == []
    larger = COPYING._replace(amounts={**COPYING.amounts, "requests.memory": 6 * GIB})
    (said,) = told(full, larger, there=(COPYING,))
    assert said == "ResourceQuota compute leaves 0 of 4Gi memory, and these pods need 2Gi more"


def of_class(operator: str, *values: str) -> dict[str, Any]:
    """Return the scopes of a quota that counts pods by their priority class."""
    expression = {"scopeName": "PriorityClass", "operator": operator, **({"values": list(values)} if values else {})}
    return {"scopeSelector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
        (of_class("Exists"), False),
        (of_class("In", "x"), False),
        (of_class("NotIn", "x"), True),
        (of_class("DoesNotExist"), True),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "NotBestEffort", "operator": "Exists"}]}}, True),
    ],
)
def test_a_quota_counts_the_pods_in_its_scopes(spec: dict[str, Any], counts: bool) -> None:
    assert bool(told([quota({"cpu": "1"}, **spec)], COPYING)) is counts


def test_a_quota_wants_each_pod_to_name_what_it_counts() -> None:
    limited = quota({"limits.cpu": "10"})
    (said,) = told([limited], COPYING, SERVING)
    assert said == "ResourceQuota compute counts limits.cpu, so each pod has to name it, and Deployment b does not"
    assert told([limited, limit_range(default={"cpu": "1"})], COPYING, SERVING) == []
    (beyond,) = told([quota({"limits.cpu": "2500m"}), limit_range(default={"cpu": "1"})], COPYING, SERVING)
    assert beyond.endswith("leaves 2500m of 2500m limits.cpu, and these pods need 3")


@pytest.mark.parametrize("kind", ["Container", "Pod"])
def test_what_a_range_allows(kind: str) -> None:
    (most,) = told([limit_range(kind, max={"memory": "2Gi"})], COPYING, SERVING)
    assert most == f"a LimitRange allows a {kind.lower()} 2Gi of memory, and SparkApplication a declares 4Gi"
    (least,) = told([limit_range(kind, min={"cpu": "250m"})], COPYING, SERVING)
    assert least == f"a LimitRange gives a {kind.lower()} no less than 250m of cpu, and Deployment b has 100m"
    (unlimited,) = told([limit_range(kind, max={"cpu": "2"})], COPYING, SERVING)
    assert unlimited == f"a LimitRange allows a {kind.lower()} 2 of cpu, and Deployment b declares no limit"
    assert told([limit_range("PersistentVolumeClaim", max={"storage": "1Gi"})], COPYING) == []


def test_needs_are_those_of_the_objects() -> None:
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 3,
            "template": {
                "spec": {
                    "containers": [
                        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}},
                        {"resources": {"requests": {"memory": "512Mi"}}},
                        {},
                    ]
                }
            },
        },
    }
    needs = pod_needs(deployment)
    assert needs is not None
    assert needs.pods == 3
    assert needs.amounts == {
        "limits.cpu": 1,
        "requests.cpu": Fraction(1, 10),
        "limits.memory": GIB,
        "requests.memory": GIB * 3 / 2,
    }
    assert needs.takes("requests.memory") == needs.takes("memory") == GIB * 9 / 2
    assert needs.takes("count/pods") == 3
    assert pod_needs({"kind": "ConfigMap", "metadata": {"name": "c"}}) is None
