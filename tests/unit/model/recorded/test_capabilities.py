"""What a probe found: what is enough, what is missing, JSON and back."""

from __future__ import annotations

import json

import pytest

from reconciler.model.recorded.capabilities import REQUIRED, Capabilities, Capability, ProbeFinding, Verdict


def found(**others: Verdict) -> Capabilities:
    named = {Capability(name.replace("_", "-")): verdict for name, verdict in others.items()}
    findings = (ProbeFinding(one, named.get(one, Verdict.HOLDS), "seen" if one in named else "") for one in Capability)
    return Capabilities("id", 5.0, tuple(findings))


def test_json_and_back() -> None:
    value = found(repeat=Verdict.FAILS, markers=Verdict.REFUSED)
    assert Capabilities.from_json(json.loads(json.dumps(value.to_json()))) == value


@pytest.mark.parametrize("capability", Capability)
@pytest.mark.parametrize("verdict", [Verdict.FAILS, Verdict.REFUSED])
def test_only_what_is_required_decides(capability: Capability, verdict: Verdict) -> None:
    value = found(**{capability.value.replace("-", "_"): verdict})
    assert value.is_sufficient is (capability not in REQUIRED)
    assert [str(one) for one in value.required(verdict)] == ([f"{capability}: seen"] if capability in REQUIRED else [])
    assert value.verdict(capability) is verdict


def test_what_was_not_tried_is_not_there() -> None:
    nothing = Capabilities("id", 5.0, ())
    assert nothing.verdict(Capability.REPEAT) is None
    assert not nothing.is_sufficient
