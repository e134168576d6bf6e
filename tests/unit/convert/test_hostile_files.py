"""Two thousand broken files: each is converted, or is an error that names a place; none ends in a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from reconciler.convert.conversion import convert
from reconciler.model.base.errors import AnabranchError
from tests.support.converting import emr

FILES = 2_000
PROPERTIES = """\
clusters: a, b
a.bootstrap.servers = a.example:9092
b.bootstrap.servers = b.example:9092, b2.example:9092
a->b.enabled = true
a->b.topics = orders\\\\..*, payments
a->b.groups = g1, g2
a.security.protocol = SASL_SSL
a.sasl.mechanism = SCRAM-SHA-512
a.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";
a.ssl.truststore.location = /etc/kafka/trust.jks
b.producer.compression.type = gzip
b.consumer.request.timeout.ms = 20000
replication.factor = 3
tasks.max = 4
replication.policy.separator = .
config.properties.exclude = retention\\..*
emit.heartbeats.interval.seconds = 5
"""
PIECES = (
    *("=", ":", "\\", "\\u00", "\n", "\r", "\t", "#", "!", "->", ".", ",", ";", '"', "'", "{", "}", "[", "]", "(", "*"),
    *("${file:/a:b}", "${env:X}", "${", "true", "null", "-1", "99999999999999999999", "1e9", "\x00", "\x1b[31m", "ü"),
    *("\u202e", "\ud7ff", "& *x", "{{x}}", "%YAML", "---", "...", "? ", "- ", "| ", "a" * 300, "clusters", "enabled"),
)


def mutated(text: str, chance: random.Random) -> str:
    """A text in which some pieces were taken out, doubled, or put in."""
    for _ in range(chance.randint(1, 6)):
        at, length = chance.randrange(len(text) + 1), chance.randrange(12)
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + text[at : at + length] * 2 + text[at + length :]
        else:
            text = text[:at] + chance.choice(PIECES) + text[at + (length if kind == 2 else 0) :]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("form", ["properties", "json"])
def test_none_of_them_ends_in_a_traceback(form: str, tmp_path: Path) -> None:
    whole = (
        PROPERTIES if form == "properties" else json.dumps(json.loads(emr(tmp_path, "s:1", "t:1;u:2")[0].read_text()))
    )
    path = tmp_path / f"broken.{form}"
    ends = {"converted": 0, "refused": 0}
    for seed in range(FILES // 2):
        path.write_text(mutated(whole, random.Random(seed)), encoding="utf-8")
        try:
            made = convert([path])
        except AnabranchError as error:
            assert all(problem.where and problem.message for problem in error.problems)
            ends["refused"] += 1
        else:
            assert made.text.startswith("# Converted from broken.")
            ends["converted"] += 1
    # A test that knows one of the two alone proves little.
    assert min(ends.values()) > FILES // 20, ends
