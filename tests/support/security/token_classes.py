"""Token providers of users for the tests: a distribution in a folder, as an installed one is."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
import base64, json, os, time

CALLS = []


class Unsigned:
    """Gives tokens that brokers take without a signature."""

    def __init__(self, options):
        self.options = options

    def token(self):
        CALLS.append(self.options["user"])
        ends = time.time() + float(self.options.get("life", "60"))
        parts = ({"alg": "none"}, {"sub": self.options["user"], "iat": time.time() - 1, "exp": ends})
        text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        return text + ".", ends

    def extensions(self):
        return {"logicalCluster": "own", "other": "own"}


class Failing:
    def __init__(self, options):
        self.options = options

    def token(self):
        raise RuntimeError(f"no credentials for {self.options['password']}")


class Given:
    """Gives what its option says, as Python."""

    def __init__(self, options):
        self.given = eval(options["given"], {"time": time})

    def token(self):
        return self.given


class Leaving:
    def __init__(self, options):
        raise SystemExit(3)
'''
_POINTS = ("unsigned:Unsigned", "failing:Failing", "given:Given", "leaving:Leaving", "broken:NoSuchClass")


def install(folder: Path) -> Path:
    """Write the distribution into a folder, and return what belongs on `sys.path`."""
    site = folder / "tokens-site"
    info = site / "acme_tokens-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_tokens.py").write_text(SOURCE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tokens\nVersion: 1.0\n")
    points = [point.partition(":") for point in _POINTS]
    lines = [f"{name} = acme_tokens:{made}\n" for name, _, made in points]
    (info / "entry_points.txt").write_text("[anabranch.token_providers]\n" + "".join(lines))
    return site
