"""A cluster of a topology, from the settings that Kafka's clients have for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.convert.settings import UNREADABLE, WITHOUT_EQUAL, Loss, Setting, Settings
from reconciler.convert.tree import Tree
from reconciler.convert.values import jaas, listed, plain_or_reference, reference, variable, whole
from reconciler.model.base.errors import DeclaredInputError, Problem

Role = str
"""`consumer`, `producer` or `admin`."""

_SHARED = (
    *("client.id", "request.timeout.ms", "send.buffer.bytes", "receive.buffer.bytes", "reconnect.backoff.ms"),
    *("reconnect.backoff.max.ms", "connections.max.idle.ms", "metadata.max.age.ms"),
)
_CLIENTS: dict[Role, tuple[str, ...]] = {
    "consumer": (*_SHARED, "fetch.max.bytes", "max.partition.fetch.bytes", "fetch.max.wait.ms"),
    "producer": (*_SHARED, "max.request.size"),
    "admin": ("client.id", "request.timeout.ms"),
}
_STATE_FACTORS = tuple(f"{name}.topic.replication.factor" for name in ("offset-syncs", "checkpoints", "heartbeats"))
# Names of librdkafka, also for certificates in Secrets.
_PEM_FILES = {"ssl.ca.location": "ca", "ssl.certificate.location": "certificate", "ssl.key.location": "key"}
_OF_AWS = "AWS_MSK_IAM"
_BROKERS = ("bootstrap.servers", "brokers.list")
_PEM = (".pem", ".crt", ".cer", ".key")
_SEPARATORS = re.compile(r"[,;]")


def brokers_in(value: str) -> list[str]:
    """Return the brokers of a list with commas or semicolons, each once: clients take one that is named twice."""
    return list(dict.fromkeys(item.strip() for item in _SEPARATORS.split(value) if item.strip()))


@dataclass(frozen=True)
class ClusterKeys:
    """Where the settings of a cluster stand.

    Attributes:
        own: returns the keys of what is the cluster's alone, such as its brokers.
        shared: returns the keys of what may stand for all clusters too, the most specific first.
        of_client: likewise of a client's own settings, by its role.
    """

    own: Callable[[str], tuple[str, ...]]
    shared: Callable[[str], tuple[str, ...]]
    of_client: Callable[[Role, str], tuple[str, ...]]


class ClusterConversion:
    """Puts one cluster into a tree.

    Args:
        tree: where to.
        alias: of the cluster.
        settings: where from.
        keys: where they stand.
        where: file, or file and connector.

    Attributes:
        losses: what the topology does not have.
        todo: what is to be done before it can be used, a line each.
    """

    def __init__(self, tree: Tree, alias: str, settings: Settings, keys: ClusterKeys, where: str) -> None:
        self._tree = tree
        self._alias = alias
        self._settings = settings
        self._keys = keys
        self._where = where
        self.losses: list[Loss] = []
        self.todo: list[str] = []

    def run(self) -> None:
        """Put it there.

        Raises:
            DeclaredInputError: AB140, it has no brokers; AB141 or AB142, a setting cannot be converted.
        """
        found = self._settings.first(*(key for name in _BROKERS for key in self._keys.own(name)))
        if found is None:
            message = f"cluster {self._alias} has no bootstrap.servers"
            key = self._keys.own("bootstrap.servers")[0]
            raise DeclaredInputError(Problem(UNREADABLE, self._where, message, f"add {key}"))
        items = brokers_in(found.value)
        told = reference(found, found.value)
        self._put("bootstrap", told or (items if len(items) > 1 else "".join(items)), found)
        if (rack := self._settings.first(*self._keys.of_client("consumer", "client.rack"))) is not None:
            self._put("rack", plain_or_reference(rack), rack)
        self._security()
        self._clients()

    def state_factor(self, keys: Callable[[str], tuple[str, ...]]) -> None:
        """Take the replicas of MirrorMaker 2's own topics at this cluster, which one field has for all of them."""
        named = [one for name in _STATE_FACTORS if (one := self._settings.first(*keys(name))) is not None]
        most = max(named, key=whole, default=None)
        if most is not None and whole(most) >= 1:
            self._put("state-replication-factor", whole(most), most)
        for one in named:
            if whole(one) < 1:
                why = "topics of our own have three replicas, or one on each broker of a smaller cluster"
                self.losses.append(Loss(one, why))
            elif most is not None and whole(one) != whole(most):
                self.losses.append(Loss(one, f"all topics of our own get the same number of replicas: {most.value}"))

    def _put(self, field: str, value: object, origin: Setting, remark: str = "") -> None:
        self._tree.put(("clusters", self._alias, *field.split("/")), value, origin, remark)

    def _shared(self, *names: str) -> Setting | None:
        return self._settings.first(*(key for name in names for key in self._keys.shared(name)))

    # --- security ----------------------------------------------------------------------------------------------------

    def _security(self) -> None:
        protocol = self._shared("security.protocol")
        if protocol is None or protocol.value.upper() == "PLAINTEXT":
            return
        self._put("security/protocol", protocol.value.upper(), protocol)
        if protocol.value.upper().startswith("SASL"):
            self._login()
        if protocol.value.upper().endswith("SSL"):
            self._tls()

    def _login(self) -> None:
        mechanism = self._shared("sasl.mechanism")
        if mechanism is not None and mechanism.value == _OF_AWS:
            self._of_aws(mechanism)
            return
        if mechanism is not None:
            self._put("security/mechanism", mechanism.value, mechanism)
        login = self._shared("sasl.jaas.config")
        if login is not None and "=" not in login.value and (together := reference(login, login.value)):
            message = f"the user and the password stand together in {together}"
            remedy = "keep them in files or variables of their own, and convert again"
            raise DeclaredInputError(login.problem(WITHOUT_EQUAL, message, remedy))
        module, options = jaas(login) if login is not None else ("", {})
        if mechanism is None and module == "Krb5LoginModule" and login is not None:
            self._put("security/mechanism", "GSSAPI", login, "the default of Kafka's clients")
        if module in ("PlainLoginModule", "ScramLoginModule") and login is not None:
            self._put("security/username", plain_or_reference(login, options.get("username", "")), login)
            self._secret("security/password", login, options.get("password", ""), "PASSWORD")
        elif module == "Krb5LoginModule" and login is not None:
            self._kerberos(login, options)
        elif module == "OAuthBearerLoginModule" or (mechanism is not None and mechanism.value == "OAUTHBEARER"):
            self._oauth(login, options)
        elif login is not None:
            message = f"the login module {module or 'of no name'} has no equal"
            remedy = "declare clusters.*.security by hand, and leave this out of what is converted"
            raise DeclaredInputError(login.problem(WITHOUT_EQUAL, message, remedy))

    def _of_aws(self, mechanism: Setting) -> None:
        """Put what brokers of AWS take beside their own mechanism: tokens, which a class of the user's gives."""
        for name in ("sasl.jaas.config", "sasl.client.callback.handler.class"):
            if (found := self._shared(name)) is not None:
                self.losses.append(Loss(found, "a token provider takes its place"))
        self._put("security/mechanism", "OAUTHBEARER", mechanism)
        self._put("security/oauth/token-provider", "msk-iam", mechanism, "an entry point: see Token providers")
        self.todo.append("install a token provider msk-iam for brokers of AWS, and name its region in its options")

    def _secret(self, field: str, origin: Setting, text: str, *words: str) -> None:
        """Put a reference in place of a secret; one that stands in clear text is not carried over."""
        told = reference(origin, text)
        if told is None:
            told = variable(self._alias, *words)
            self.todo.append(f"the secret of {origin.title} ({origin.where}) into the variable {told[4:]}")
        self._put(field, told, origin)

    def _kerberos(self, login: Setting, options: dict[str, str]) -> None:
        if principal := options.get("principal"):
            self._put("security/kerberos/principal", principal, login)
        if keytab := options.get("keyTab"):
            self._put("security/kerberos/keytab", f"file:{keytab}", login)
        if (service := self._shared("sasl.kerberos.service.name")) is not None:
            self._put("security/kerberos/service", service.value, service)

    def _oauth(self, login: Setting | None, options: dict[str, str]) -> None:
        client = "sasl.oauthbearer.client.credentials."
        for field, names, option in (
            ("token-endpoint", ("sasl.oauthbearer.token.endpoint.url",), ""),
            ("client-id", (f"{client}client.id", "sasl.oauthbearer.client.id"), "clientId"),
            ("client-secret", (f"{client}client.secret", "sasl.oauthbearer.client.secret"), "clientSecret"),
            ("scope", (f"{client}scope", "sasl.oauthbearer.scope"), "scope"),
        ):
            found = self._shared(*names)
            text = found.value if found is not None else options.get(option, "")
            origin = found or login
            if origin is None or not text:
                continue
            if field == "client-secret":
                self._secret(f"security/oauth/{field}", origin, text, "CLIENT_SECRET")
            else:
                self._put(f"security/oauth/{field}", plain_or_reference(origin, text), origin)

    def _tls(self) -> None:
        if (found := self._shared("ssl.endpoint.identification.algorithm")) is not None and not found.value:
            self._put("security/verify-hostname", False, found)
        if (found := self._shared("ssl.enabled.protocols")) is not None:
            self._put("security/tls-protocols", listed(found), found)
        for name, field in _PEM_FILES.items():
            if (found := self._shared(name)) is not None:
                self._put(f"security/{field}", f"file:{found.value}", found)
        if (store := self._shared("ssl.truststore.location")) is not None:
            self._store(store, "truststore", (("ca", "-nokeys -cacerts", "ca"),))
        if (store := self._shared("ssl.keystore.location")) is not None:
            parts = (("certificate", "-nokeys -clcerts", "certificate"), ("key", "-nocerts", "key"))
            self._store(store, "keystore", parts)
            password = self._shared("ssl.key.password", "ssl.keystore.password")
            if password is not None:
                self._secret("security/key-password", password, password.value, "KEY_PASSWORD")

    def _store(self, store: Setting, name: str, parts: tuple[tuple[str, str, str], ...]) -> None:
        """Put references to PEM files in place of a store of Java's, and list the commands that make these."""
        kind, password = self._shared(f"ssl.{name}.type"), self._shared(f"ssl.{name}.password")
        path = store.value
        if kind is not None:
            self.losses.append(Loss(kind, "files of certificates and keys are PEM"))
        if password is not None and name == "truststore":
            self.losses.append(Loss(password, "certificates are read without a password"))
        if told := reference(store, path):
            message = f"the path is in {told}, and a reference to a file needs it here"
            raise DeclaredInputError(store.problem(WITHOUT_EQUAL, message, "write the path"))
        if (kind is not None and kind.value.upper() == "PEM") or path.endswith(_PEM):
            for field, _, _ in parts:
                self._put(f"security/{field}", f"file:{path}", store)
            return
        packed = path if path.endswith((".p12", ".pfx")) else f"{path}.p12"
        if packed != path:
            self.todo.append(
                f"keytool -importkeystore -srckeystore {path} -destkeystore {packed} -deststoretype PKCS12"
            )
        for field, options, ending in parts:
            self._put(f"security/{field}", f"file:{path}.{ending}.pem", store)
            self.todo.append(f"openssl pkcs12 -in {packed} {options} -out {path}.{ending}.pem")

    # --- clients -----------------------------------------------------------------------------------------------------

    def _clients(self) -> None:
        for role, names in _CLIENTS.items():
            for name in names:
                found = self._settings.first(*self._keys.of_client(role, name))
                if found is not None:
                    value = found.value if name == "client.id" else whole(found)
                    self._put(f"clients/{role}/{name}", value, found)
