"""One thin file per command."""

import sys

# jsonschema imports what checks formats, of which our schemas have none. One such package, which other programs may
# have brought into the environment, takes more than a second of CPU time; nothing else in this process needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
