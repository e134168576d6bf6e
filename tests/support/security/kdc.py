"""A Kerberos realm of its own on 127.0.0.1: MIT's key distribution center, where the machine has it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
REALM = "ANABRANCH.TEST"
SECONDS = 120.0
# Debian keeps them where only root looks.
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")

_CONF = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = {host}:{port}
  }}
[domain_realm]
  {host} = {realm}
"""
_KDC_CONF = """\
[kdcdefaults]
  kdc_listen = {host}:{port}
  kdc_tcp_listen = {host}:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
"""


def missing() -> str | None:
    """Return what a realm needs and this machine has not."""
    return next((f"no {name}" for name in _PROGRAMS if shutil.which(name, path=_PATH) is None), None)


@dataclass(frozen=True)
class Realm:
    """A realm that is served.

    Attributes:
        folder: where its files are.
        conf: what clients read as KRB5_CONFIG.
    """

    folder: Path
    conf: Path

    def keytab(self, principal: str, file: str | None = None, life: str = "1 hour") -> Path:
        """Make a principal, or new keys for one, and return the keytab that holds them.

        Args:
            principal: whom.
            file: the keytab's name; by default the principal's.
            life: how long its tickets are valid.
        """
        path = self.folder / (file or f"{principal.replace('/', '_')}.keytab")
        self._run("kadmin.local", "-q", f'addprinc -randkey -maxlife "{life}" {principal}')
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        assert path.exists()
        return path

    def create(self) -> None:
        """Make the database."""
        self._run("kdb5_util", "create", "-s", "-P", "of-tests-alone", "-r", REALM)

    def environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.conf),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder}/tickets",
        }

    def command(self, name: str) -> str:
        found = shutil.which(name, path=_PATH)
        assert found is not None
        return found

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.command(name), *arguments],
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def serving(folder: Path) -> Iterator[Realm]:
    """Serve a new realm for the length of a block."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    realm = Realm(folder, folder / "krb5.conf")
    realm.conf.write_text(_CONF.format(realm=REALM, host=HOST, port=port))
    (folder / "kdc.conf").write_text(_KDC_CONF.format(realm=REALM, host=HOST, port=port, folder=folder))
    realm.create()
    kdc = subprocess.Popen([realm.command("krb5kdc"), "-n"], env={**os.environ, **realm.environment()})
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection((HOST, port), 1.0).close()
                break
            except OSError:
                assert kdc.poll() is None, "the key distribution center has ended"
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield realm
    finally:
        kdc.terminate()
        kdc.wait()
