"""`KafkaMirrorMaker2` of Strimzi, in v1beta2 and v1, as the connectors that its operator makes of it.

Source: https://strimzi.io/docs/operators/latest/configuring (schemas KafkaMirrorMaker2Spec and below).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.convert.connect import CLASS, Connector
from reconciler.convert.settings import UNREADABLE, WITHOUT_EQUAL, Loss, Setting, Settings
from reconciler.declare.documents.located import Document
from reconciler.declare.documents.reader import parse
from reconciler.model.base.errors import DeclaredInputError, Problem

KIND = "KafkaMirrorMaker2"
SECRETS = "/etc/kafka-secrets"
"""The folder below which the converted topology has each Secret: the place to mount it."""

_Step = str | int
_CONNECTORS = {
    "sourceConnector": "MirrorSourceConnector",
    "checkpointConnector": "MirrorCheckpointConnector",
    "heartbeatConnector": "MirrorHeartbeatConnector",
}
_PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
_OAUTH = {
    "tokenEndpointUri": "sasl.oauthbearer.token.endpoint.url",
    "clientId": "sasl.oauthbearer.client.credentials.client.id",
    "clientSecret": "sasl.oauthbearer.client.credentials.client.secret",
}
_LOGINS = ("scram-sha-512", "scram-sha-256", "plain")
_OF_CLUSTER = ("alias", "bootstrapServers", "authentication", "tls", "config")
_OF_MIRROR = ("source", "sourceCluster", "targetCluster", *_CONNECTORS, *_PATTERNS)


class StrimziResource:
    """A resource that is converted.

    Args:
        name: what messages call the file.
        text: its content.

    Attributes:
        losses: fields that are nothing to connectors.
        todo: what is to be done before the topology can be used.

    Raises:
        DeclaredInputError: AB140, it is no YAML.
    """

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        read = parse(name, text)
        if read.document is None or read.problems:
            first = read.problems[0].problem
            raise DeclaredInputError(Problem(UNREADABLE, first.where, first.message, first.remedy))
        self._document: Document = read.document
        self.losses: list[Loss] = []
        self.todo: list[str] = []

    def connectors(self) -> list[Connector]:
        """Return the connectors of all mirrors.

        Raises:
            DeclaredInputError: AB140, it has another shape; AB142, a field has no equal.
        """
        if self._document.value.get("kind") != KIND:
            raise self._wrong(("kind",), f"expected kind: {KIND}")
        spec = self._mapping(self._document.value.get("spec"), ("spec",))
        clusters = dict(self._clusters(spec))
        mirrors = spec.get("mirrors")
        if not isinstance(mirrors, list) or not mirrors:
            raise self._wrong(("spec", "mirrors"), "expected a list of mirrors")
        found: list[Connector] = []
        for number, mirror in enumerate(mirrors):
            path = ("spec", "mirrors", number)
            found += self._of_mirror(self._mapping(mirror, path), path, spec, clusters)
        known = {"clusters", "target", "mirrors", "connectCluster", "version"}
        self._pass_over(spec, ("spec",), known)
        return found

    # --- clusters and mirrors ----------------------------------------------------------------------------------------

    def _clusters(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, tuple[_Step, ...]]]:
        """Yield the alias of each cluster and where it is declared."""
        listed = spec.get("clusters") or []
        if not isinstance(listed, list):
            raise self._wrong(("spec", "clusters"), "expected a list of clusters")
        places: list[tuple[_Step, ...]] = [("spec", "clusters", number) for number in range(len(listed))]
        if "target" in spec:
            places.append(("spec", "target"))
        for place in places:
            cluster = self._mapping(self._at(place), place)
            yield self._word(cluster.get("alias"), (*place, "alias")), place

    def _of_mirror(
        self,
        mirror: Mapping[str, Any],
        path: tuple[_Step, ...],
        spec: Mapping[str, Any],
        clusters: Mapping[str, tuple[_Step, ...]],
    ) -> Iterator[Connector]:
        ends = {
            "source": self._end(mirror, path, clusters, "source", "sourceCluster"),
            "target": ("spec", "target")
            if "target" in spec
            else self._end(mirror, path, clusters, "target", "targetCluster"),
        }
        shared = [setting for end, place in ends.items() for setting in self._cluster(end, place)]
        for field, key in _PATTERNS.items():
            if field in mirror:
                shared.append(self._setting(key, (*path, field)))
        if "sourceConnector" not in mirror:
            raise self._wrong(path, "nothing copies: sourceConnector is missing")
        for field, kind in _CONNECTORS.items():
            if field in mirror:
                place = (*path, field)
                connector = self._mapping(mirror[field], place)
                own = list(self._config(connector.get("config"), (*place, "config"), ""))
                if "tasksMax" in connector:
                    own.append(self._setting("tasks.max", (*place, "tasksMax")))
                self._pass_over(connector, place, {"config", "tasksMax"})
                settings = [Setting(CLASS, kind, self._where(place)), *shared, *own]
                yield Connector("", Settings(settings), self._where(place))
        self._pass_over(mirror, path, set(_OF_MIRROR))

    def _end(
        self,
        mirror: Mapping[str, Any],
        path: tuple[_Step, ...],
        clusters: Mapping[str, tuple[_Step, ...]],
        inner: str,
        named: str,
    ) -> tuple[_Step, ...]:
        """Return where a cluster of a mirror is declared: in it, or by its alias elsewhere."""
        if inner in mirror:
            return (*path, inner)
        alias = self._word(mirror.get(named), (*path, named))
        if alias not in clusters:
            message = f"{alias} is none of the clusters: {', '.join(clusters)}"
            raise DeclaredInputError(self._setting(named, (*path, named)).problem(WITHOUT_EQUAL, message, "correct it"))
        return clusters[alias]

    def _cluster(self, end: str, place: tuple[_Step, ...]) -> Iterator[Setting]:
        """Yield the settings of one end."""
        cluster, begins = self._mapping(self._at(place), place), f"{end}.cluster."
        yield self._setting(f"{begins}alias", (*place, "alias"))
        yield self._setting(f"{begins}bootstrap.servers", (*place, "bootstrapServers"))
        yield from self._config(cluster.get("config"), (*place, "config"), begins)
        is_tls = "tls" in cluster
        login = cluster.get("authentication")
        if is_tls:
            yield from self._tls(begins, (*place, "tls"))
        if login is not None:
            yield from self._login(begins, (*place, "authentication"), is_tls)
        elif is_tls:
            yield self._made(f"{begins}security.protocol", "SSL", (*place, "tls"))
        self._pass_over(cluster, place, set(_OF_CLUSTER))

    # --- security ----------------------------------------------------------------------------------------------------

    def _tls(self, begins: str, place: tuple[_Step, ...]) -> Iterator[Setting]:
        trusted = self._mapping(self._at(place) or {}, place).get("trustedCertificates") or []
        if not isinstance(trusted, list):
            raise self._wrong((*place, "trustedCertificates"), "expected a list")
        if len(trusted) > 1:
            self.todo.append("put all trusted certificates into one file: the topology names the first of them")
        for number, one in enumerate(trusted[:1]):
            where = (*place, "trustedCertificates", number)
            yield self._made(f"{begins}ssl.ca.location", self._secret(one, where, "certificate"), where)

    def _login(self, begins: str, place: tuple[_Step, ...], is_tls: bool) -> Iterator[Setting]:
        login = self._mapping(self._at(place), place)
        kind = self._word(login.get("type"), (*place, "type"))
        if kind == "tls":
            held = (*place, "certificateAndKey")
            yield self._made(f"{begins}security.protocol", "SSL", place)
            for name in ("certificate", "key"):
                yield self._made(f"{begins}ssl.{name}.location", self._secret(self._at(held), held, name), held)
            return
        protocol = "SASL_SSL" if is_tls else "SASL_PLAINTEXT"
        if kind == "oauth":
            yield self._made(f"{begins}security.protocol", protocol, place)
            yield from self._oauth(begins, place, login)
            return
        if kind == "custom":
            if login.get("sasl") or is_tls:
                yield self._made(f"{begins}security.protocol", protocol if login.get("sasl") else "SSL", place)
            yield from self._config(login.get("config"), (*place, "config"), begins)
            self._pass_over(login, place, {"type", "sasl", "config"})
            return
        if kind not in _LOGINS:
            message = f"the authentication {kind} has no equal that could be made of this"
            remedy = "declare clusters.*.security by hand"
            raise DeclaredInputError(self._setting("type", (*place, "type")).problem(WITHOUT_EQUAL, message, remedy))
        yield self._made(f"{begins}security.protocol", protocol, place)
        yield self._made(f"{begins}sasl.mechanism", kind.upper(), place)
        user = self._word(login.get("username"), (*place, "username"))
        password = self._provided((*place, "passwordSecret"), "password")
        module = "PlainLoginModule" if kind == "plain" else "ScramLoginModule"
        jaas = f'{module} required username="{user}" password="{password}";'
        yield self._made(f"{begins}sasl.jaas.config", jaas, (*place, "passwordSecret"))

    def _oauth(self, begins: str, place: tuple[_Step, ...], login: Mapping[str, Any]) -> Iterator[Setting]:
        """Yield a login with client id and secret at a token endpoint; others need a class of the user's."""
        yield self._made(f"{begins}sasl.mechanism", "OAUTHBEARER", place)
        for field, key in _OAUTH.items():
            if field not in login:
                message = f"a login by OAuth without {field} has no equal that could be made of this"
                remedy = "declare clusters.*.security.oauth by hand, with token-provider"
                raise DeclaredInputError(
                    self._setting("type", (*place, "type")).problem(WITHOUT_EQUAL, message, remedy)
                )
            if field != "clientSecret":
                yield self._setting(f"{begins}{key}", (*place, field))
        kept = (*place, "clientSecret")
        yield self._made(f"{begins}{_OAUTH['clientSecret']}", self._provided(kept, "key"), kept)
        if "scope" in login:
            yield self._setting(f"{begins}sasl.oauthbearer.scope", (*place, "scope"))
        why = "no field stands for it: see clusters.*.security.oauth"
        self._pass_over(login, place, {"type", "scope", *_OAUTH}, why)

    def _provided(self, place: tuple[_Step, ...], field: str) -> str:
        """Return the placeholder of Kafka's config provider for a key of the Secret that is named at a place."""
        folder, _, key = self._secret(self._at(place), place, field).rpartition("/")
        return f"${{directory:{folder}:{key}}}"

    def _secret(self, value: Any, place: tuple[_Step, ...], field: str) -> str:
        """Return the path of a Secret's key where the Secret is to be mounted."""
        held = self._mapping(value, place)
        name = self._word(held.get("secretName"), (*place, "secretName"))
        key = self._word(held.get(field), (*place, field))
        self.todo.append(f"mount the Secret {name} at {SECRETS}/{name}")
        return f"{SECRETS}/{name}/{key}"

    # --- values ------------------------------------------------------------------------------------------------------

    def _config(self, value: Any, place: tuple[_Step, ...], begins: str) -> Iterator[Setting]:
        for key in self._mapping(value or {}, place):
            yield self._setting(f"{begins}{key}", (*place, key))

    def _setting(self, key: str, place: tuple[_Step, ...]) -> Setting:
        """Return a setting from a plain value of the file."""
        written = self._document.at(*place).text
        return self._made(key, written or self._word(self._at(place), place), place)

    def _made(self, key: str, value: str, place: tuple[_Step, ...]) -> Setting:
        return Setting(key, value.strip(), self._where(place), _written(place))

    def _pass_over(
        self,
        value: Mapping[str, Any],
        place: tuple[_Step, ...],
        known: set[str],
        why: str = "it is a matter of what runs the processes",
    ) -> None:
        for key in value:
            if key not in known:
                path = (*place, key)
                setting = Setting(key, "", self._where(path), _written(path))
                self.losses.append(Loss(setting, why))

    def _at(self, place: tuple[_Step, ...]) -> Any:
        return self._document.at(*place).value

    def _where(self, place: tuple[_Step, ...]) -> str:
        """Return file and line of a value, or of what would hold it."""
        return f"{self._name}:{self._document.at(*place).mark.line}"

    def _mapping(self, value: Any, place: tuple[_Step, ...]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self._wrong(place, "expected a mapping")
        return value

    def _word(self, value: Any, place: tuple[_Step, ...]) -> str:
        """Return a plain value as text."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int | float):
            raise self._wrong(place, "expected a plain value")
        return str(value)

    def _wrong(self, place: tuple[_Step, ...], message: str) -> DeclaredInputError:
        where = f"{self._where(place)} ({_written(place)})"
        return DeclaredInputError(Problem(UNREADABLE, where, message, f"correct it, as a {KIND} has it"))


def _written(place: tuple[_Step, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
