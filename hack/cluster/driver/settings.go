package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Exact versions of the programs that are not part of this module.
const (
	helmVersion    = "v3.19.5"
	corednsVersion = "v1.12.4"
	kindVersion    = "v0.30.0" // its default node image is Kubernetes 1.34.0, pinned by digest
)

// Names and addresses of the cluster. The ports are not the usual ones, so that this cluster can
// stand beside another one on the same machine.
const (
	clusterName   = "boxwright"
	nodeName      = "boxwright"
	bridgeName    = "boxwright0"
	nodeAddress   = "10.244.0.1" // the bridge's address; the node's programs are reached here from pods
	podCIDR       = "10.244.0.0/24"
	serviceCIDR   = "10.96.0.0/16"
	apiServiceIP  = "10.96.0.1" // the first address of serviceCIDR is the Service "kubernetes"
	clusterDomain = "cluster.local"
	serviceIssuer = "https://kubernetes.default.svc." + clusterDomain

	// servicePort is the nodePort of the product's Service; it answers on 127.0.0.1 of the host.
	servicePort = 30080

	etcdPort              = 16379
	etcdPeerPort          = 16380
	apiserverPort         = 16443
	kubeletHealthPort     = 16248
	proxyMetricsPort      = 16249
	kubeletPort           = 16250
	dnsHealthPort         = 16253
	proxyHealthPort       = 16256
	controllerManagerPort = 16257
	schedulerPort         = 16259
)

// folders says where things are kept.
type folders struct {
	source string // hack/cluster of the work tree
	cache  string // binaries; shared by all clones
	state  string // the clusters' data; a folder for each way
	run    string // sockets and mounts that do not outlive a reboot
}

// findFolders reads the folders from the environment that cluster.sh has prepared.
func findFolders() (folders, error) {
	f := folders{
		source: os.Getenv("BOXWRIGHT_CLUSTER_SOURCE"),
		cache:  os.Getenv("BOXWRIGHT_CACHE"),
		state:  os.Getenv("BOXWRIGHT_STATE"),
		run:    "/run/boxwright-cluster",
	}
	if f.source == "" || f.cache == "" {
		return f, errors.New("start this program through hack/cluster/cluster.sh")
	}
	if f.state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return f, fmt.Errorf("set BOXWRIGHT_STATE or HOME: %w", err)
		}
		f.state = filepath.Join(home, ".local", "state", "boxwright")
	}
	for _, path := range []*string{&f.cache, &f.state} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return f, err
		}
		*path = absolute
	}
	return f, nil
}

// kubernetesVersion reads the version from go.mod, which is the one place that states it.
func (f folders) kubernetesVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.source, "go.mod"))
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`).FindSubmatch(text)
	if match == nil {
		return "", errors.New("go.mod does not name k8s.io/kubernetes")
	}
	return string(match[1]), nil
}
