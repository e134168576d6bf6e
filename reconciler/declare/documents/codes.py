"""The codes of declared-input problems.

Each is explained in docs/reference/errors.md, and never changes its meaning.
"""

from __future__ import annotations

from typing import Final

UNREADABLE: Final = "AB100"
SYNTAX: Final = "AB101"
NOT_A_MAPPING: Final = "AB102"
UNKNOWN_KEY: Final = "AB103"
WRONG_VALUE: Final = "AB104"
UNKNOWN_CLUSTER: Final = "AB105"
DUPLICATE: Final = "AB106"
CYCLE: Final = "AB107"
IDENTITY_BOTH_WAYS: Final = "AB108"
BAD_REGEX: Final = "AB109"
BAD_REFERENCE: Final = "AB110"
NOT_YET: Final = "AB111"
VERSION: Final = "AB112"
EMPTY_TOPICS: Final = "AB113"
MISSING: Final = "AB114"
AMBIGUOUS_ALIAS: Final = "AB115"
TAKEN_TWICE: Final = "AB116"
WRITTEN_TWICE: Final = "AB117"
NEVER_REPLICATED: Final = "AB118"
BAD_RENAME: Final = "AB119"
BAD_POLICY_CLASS: Final = "AB120"
BAD_NAME: Final = "AB121"
ONE_NAME: Final = "AB122"
TWO_PRINCIPALS: Final = "AB123"
FIXED_CONFIG: Final = "AB124"
NOT_LINEAR: Final = "AB125"
NO_REFERENCE: Final = "AB129"
OUR_PREFIX: Final = "AB131"
NO_VALUES: Final = "AB133"
NO_NAME: Final = "AB135"

# Warnings: the topology is accepted.
UNUSED_CLUSTER: Final = "AB190"
SAME_BROKERS: Final = "AB191"
UNUSED_DATACENTER: Final = "AB192"
ENDPOINT_IN_CLEAR: Final = "AB127"
LOGIN_IN_CLEAR: Final = "AB128"
ANY_HOSTNAME: Final = "AB130"
GLOB: Final = "AB136"
UNLIKELY_GROUP: Final = "AB137"
