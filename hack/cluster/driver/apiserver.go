package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// apiserverSettings is what differs between the API server of the cluster and one for tests.
type apiserverSettings struct {
	pki         *pki
	etcdURL     string
	bindAddress string
	advertise   string
	port        int
	extra       []string
}

// apiserverSubjects names the certificates that etcd and the API server need.
func apiserverSubjects(hosts ...string) map[string]subject {
	return map[string]subject{
		"etcd":             {commonName: "etcd", hosts: []string{"127.0.0.1"}},
		"etcd-client":      {commonName: "kube-apiserver-etcd-client"},
		"kube-apiserver":   {commonName: "kube-apiserver", hosts: append([]string{"localhost", "127.0.0.1"}, hosts...)},
		"kubernetes-admin": {commonName: "kubernetes-admin", organization: []string{"system:masters"}},
	}
}

// etcdArguments starts a single etcd that only holders of our client certificates can use: whoever
// writes to etcd is root of the cluster, and other users of the machine reach its port.
func etcdArguments(p *pki, dataFolder string, clientPort, peerPort int) []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", clientPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--name=" + clusterName,
		"--data-dir=" + dataFolder,
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--cert-file=" + p.cert("etcd"),
		"--key-file=" + p.key("etcd"),
		"--trusted-ca-file=" + p.cert("ca"),
		"--client-cert-auth",
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + clusterName + "=" + peer,
		"--log-level=warn",
	}
}

func etcdProbe(p *pki, clientPort int) probe {
	return tlsProbe(fmt.Sprintf("https://127.0.0.1:%d/health", clientPort), p, "etcd-client")
}

func apiserverArguments(s apiserverSettings) []string {
	return append([]string{
		"--etcd-servers=" + s.etcdURL,
		"--etcd-cafile=" + s.pki.cert("ca"),
		"--etcd-certfile=" + s.pki.cert("etcd-client"),
		"--etcd-keyfile=" + s.pki.key("etcd-client"),
		"--bind-address=" + s.bindAddress,
		"--secure-port=" + strconv.Itoa(s.port),
		"--advertise-address=" + s.advertise,
		"--tls-cert-file=" + s.pki.cert("kube-apiserver"),
		"--tls-private-key-file=" + s.pki.key("kube-apiserver"),
		"--client-ca-file=" + s.pki.cert("ca"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=" + serviceIssuer,
		"--service-account-key-file=" + s.pki.serviceAccountPublicKey(),
		"--service-account-signing-key-file=" + s.pki.key("service-account"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--profiling=false",
	}, s.extra...)
}

func apiserverProbe(p *pki, port int) probe {
	return tlsProbe(fmt.Sprintf("https://127.0.0.1:%d/readyz", port), p, "kubernetes-admin")
}

// issueAll makes every certificate of a list.
func (p *pki) issueAll(subjects map[string]subject) error {
	for name, holder := range subjects {
		if err := p.issue(name, holder); err != nil {
			return fmt.Errorf("certificate %s: %w", filepath.Base(p.cert(name)), err)
		}
	}
	return nil
}
