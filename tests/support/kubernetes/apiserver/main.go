// An API server of Kubernetes with a database of its own, for tests: one process, on loopback alone.
//
// Usage: apiserver FOLDER PORT ETCD_PORT. FOLDER has tokens.csv (a token of a member of system:masters) and
// service-account.key (a key in PEM); the certificate is made there.
package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	folder, port, etcdPort := os.Args[1], os.Args[2], os.Args[3]
	address := url.URL{Scheme: "http", Host: "127.0.0.1:" + etcdPort}
	peers := url.URL{Scheme: "unix", Host: "peers:1"}
	config := embed.NewConfig()
	config.Dir = filepath.Join(folder, "etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{address}, []url.URL{address}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	config.InitialCluster = config.InitialClusterFromName("default")
	config.LogLevel = "error"
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-etcd.Server.ReadyNotify()
	key := filepath.Join(folder, "service-account.key")
	command := app.NewAPIServerCommand()
	command.SetArgs([]string{
		"--etcd-servers=" + address.String(), "--secure-port=" + port, "--bind-address=127.0.0.1",
		"--cert-dir=" + folder, "--token-auth-file=" + filepath.Join(folder, "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount", "--authorization-mode=RBAC",
	})
	if err := command.Execute(); err != nil {
		os.Exit(1)
	}
}
