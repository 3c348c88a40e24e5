package main

import (
	"fmt"
	"path/filepath"
)

// controlPlaneSubjects names the certificates of the native cluster. The host names are those by
// which pods and people reach the API server.
func controlPlaneSubjects() map[string]subject {
	subjects := apiserverSubjects(
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc."+clusterDomain,
		apiServiceIP, nodeAddress,
	)
	subjects["kube-apiserver-kubelet-client"] = subject{commonName: "kube-apiserver-kubelet-client"}
	subjects["controller-manager"] = subject{commonName: "system:kube-controller-manager"}
	subjects["scheduler"] = subject{commonName: "system:kube-scheduler"}
	subjects["proxy"] = subject{commonName: "system:kube-proxy"}
	subjects["dns"] = subject{commonName: "system:coredns"}
	subjects["node"] = subject{commonName: "system:node:" + nodeName, organization: []string{"system:nodes"}}
	subjects["kubelet"] = subject{commonName: "kubelet", hosts: []string{nodeAddress, nodeName}}
	return subjects
}

// accessRules are the rights that Kubernetes does not give by itself: the API server's on the
// kubelet, for logs and exec, and those of CoreDNS.
const accessRules = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: boxwright-local:kubelet-api
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kubelet-api-admin"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: boxwright-local:coredns
rules:
- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: boxwright-local:coredns
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "boxwright-local:coredns"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:coredns"}
`

func (n *native) etcd() component {
	return component{
		name:      "etcd",
		path:      filepath.Join(n.kube, "etcd"),
		arguments: etcdArguments(n.pki, n.statePath("etcd"), etcdPort, etcdPeerPort),
		inputs:    []string{n.pki.cert("etcd")},
		ready:     etcdProbe(n.pki, etcdPort),
	}
}

func (n *native) apiserver() component {
	return component{
		name: "apiserver",
		path: filepath.Join(n.kube, "kube-apiserver"),
		arguments: apiserverArguments(apiserverSettings{
			pki:         n.pki,
			etcdURL:     fmt.Sprintf("https://127.0.0.1:%d", etcdPort),
			bindAddress: "0.0.0.0", // people come through loopback, pods through the bridge
			advertise:   nodeAddress,
			port:        apiserverPort,
			extra: []string{
				"--enable-admission-plugins=NodeRestriction",
				"--kubelet-client-certificate=" + n.pki.cert("kube-apiserver-kubelet-client"),
				"--kubelet-client-key=" + n.pki.key("kube-apiserver-kubelet-client"),
				"--kubelet-certificate-authority=" + n.pki.cert("ca"),
				"--kubelet-preferred-address-types=InternalIP", // nobody resolves the node's name
			},
		}),
		inputs: []string{n.pki.cert("kube-apiserver"), n.pki.cert("kube-apiserver-kubelet-client")},
		ready:  apiserverProbe(n.pki, apiserverPort),
	}
}

// The two programs below run without leader election: there is one of each, and with it they would
// exit when the API server is away for some seconds, as it is in tests.

func (n *native) controllerManager() component {
	config := n.kubeconfig("controller-manager")
	return component{
		name: "controller-manager",
		path: filepath.Join(n.kube, "kube-controller-manager"),
		arguments: []string{
			"--kubeconfig=" + config,
			"--authentication-kubeconfig=" + config,
			"--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", controllerManagerPort),
			"--leader-elect=false",
			"--use-service-account-credentials",
			"--service-account-private-key-file=" + n.pki.key("service-account"),
			"--root-ca-file=" + n.pki.cert("ca"),
			"--cluster-signing-cert-file=" + n.pki.cert("ca"),
			"--cluster-signing-key-file=" + n.pki.key("ca"),
			"--cluster-name=" + clusterName,
			// The defaults, 20 and 30, hold Jobs back to three finished in a second.
			"--kube-api-qps=200",
			"--kube-api-burst=400",
		},
		inputs: []string{config},
		ready:  selfSignedProbe(fmt.Sprintf("https://127.0.0.1:%d/healthz", controllerManagerPort)),
	}
}

func (n *native) scheduler() component {
	config := n.kubeconfig("scheduler")
	return component{
		name: "scheduler",
		path: filepath.Join(n.kube, "kube-scheduler"),
		arguments: []string{
			"--kubeconfig=" + config,
			"--authentication-kubeconfig=" + config,
			"--authorization-kubeconfig=" + config,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", schedulerPort),
			"--leader-elect=false",
			"--kube-api-qps=200",
			"--kube-api-burst=400",
		},
		inputs: []string{config},
		ready:  selfSignedProbe(fmt.Sprintf("https://127.0.0.1:%d/healthz", schedulerPort)),
	}
}
