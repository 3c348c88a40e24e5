package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pauseImage holds the network of every pod; see pause/.
const pauseImage = "localhost/boxwright-pause:1"

const containerdConfig = `version = 2
root = "%[1]s"
state = "%[2]s"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
  address = "%[3]s"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[4]s"
  # Without CAP_SYS_RESOURCE the kernel refuses a lower score, and with it every pod.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%[5]s"
`

const cniConfig = `{
  "cniVersion": "0.4.0",
  "name": "boxwright",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "%[1]s",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {"type": "host-local", "dataDir": "%[2]s", "ranges": [[{"subnet": "%[3]s", "gateway": "%[4]s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// A developer's disk may be nearly full: nothing is evicted and no image removed for that. Images
// here come from files, so a removed one would not come back by itself.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: %[2]d
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
healthzPort: %[3]d
tlsCertFile: %[4]s
tlsPrivateKeyFile: %[5]s
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[6]s}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://%[7]s
volumePluginDir: %[8]s
cgroupDriver: cgroupfs
failSwapOn: false
oomScoreAdj: 0
clusterDomain: %[9]s
clusterDNS: ["%[1]s"]
maxPods: 200
podPidsLimit: 1024
evictionHard: {}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 200
kubeAPIBurst: 400
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %[1]s}
hostnameOverride: %[2]s
healthzBindAddress: 127.0.0.1:%[3]d
metricsBindAddress: 127.0.0.1:%[4]d
mode: iptables
clusterCIDR: %[5]s
oomScoreAdj: 0
# Node ports answer on this machine only.
nodePortAddresses: [127.0.0.0/8, %[6]s/32]
iptables: {localhostNodePorts: %[7]t, masqueradeAll: %[8]t}
# All zero: leave the kernel's limits alone, they are read-only in places.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

const corefile = `.:53 {
    bind %[1]s
    errors
    health 127.0.0.1:%[2]d
    kubernetes %[3]s in-addr.arpa {
        kubeconfig %[4]s
        ttl 5
        fallthrough in-addr.arpa
    }
%[5]s}
`

func (n *native) containerdSocket() string { return filepath.Join(n.folders.run, "containerd.sock") }

func (n *native) containerd() (component, error) {
	config := n.statePath("config", "containerd.toml")
	cniFolder := n.statePath("config", "cni")
	conflist := filepath.Join(cniFolder, "10-boxwright.conflist")
	err := writeAll(map[string]string{
		config:   fmt.Sprintf(containerdConfig, n.statePath("containerd"), filepath.Join(n.folders.run, "containerd"), n.containerdSocket(), pauseImage, cniFolder),
		conflist: fmt.Sprintf(cniConfig, bridgeName, n.addressFolder(), podCIDR, nodeAddress),
	})
	return component{
		name:      "containerd",
		path:      "/usr/bin/containerd",
		arguments: []string{"--config=" + config},
		inputs:    []string{config, conflist},
		ready:     dialProbe("unix", n.containerdSocket()),
	}, err
}

// addressFolder is where CNI notes which pod addresses are taken.
func (n *native) addressFolder() string { return n.statePath("cni-addresses") }

func (n *native) kubelet() (component, error) {
	config := n.statePath("config", "kubelet.yaml")
	err := writeAll(map[string]string{
		config: fmt.Sprintf(kubeletConfig, nodeAddress, kubeletPort, kubeletHealthPort, n.pki.cert("kubelet"), n.pki.key("kubelet"),
			n.pki.cert("ca"), n.containerdSocket(), n.statePath("kubelet", "volume-plugins"), clusterDomain),
	})
	return component{
		name: "kubelet",
		path: filepath.Join(n.kube, "kubelet"),
		arguments: []string{
			"--config=" + config,
			"--kubeconfig=" + n.kubeconfig("node"),
			"--root-dir=" + n.statePath("kubelet"),
			"--cert-dir=" + n.statePath("kubelet", "pki"),
			"--node-ip=" + nodeAddress,
			"--hostname-override=" + nodeName,
		},
		inputs: []string{config, n.kubeconfig("node"), n.pki.cert("kubelet")},
		ready:  httpProbe(fmt.Sprintf("http://127.0.0.1:%d/healthz", kubeletHealthPort)),
	}, err
}

func (n *native) proxy() (component, error) {
	config := n.statePath("config", "kube-proxy.yaml")
	err := writeAll(map[string]string{
		config: fmt.Sprintf(proxyConfig, n.kubeconfig("proxy"), nodeName, proxyHealthPort, proxyMetricsPort, podCIDR, nodeAddress,
			n.kernel.loopbackRouting, !n.kernel.bridgeFiltering),
	})
	return component{
		name:      "proxy",
		path:      filepath.Join(n.kube, "kube-proxy"),
		arguments: []string{"--config=" + config},
		inputs:    []string{config, n.kubeconfig("proxy")},
		ready:     httpProbe(fmt.Sprintf("http://127.0.0.1:%d/healthz", proxyHealthPort)),
	}, err
}

func (n *native) dns() (component, error) {
	config := n.statePath("config", "Corefile")
	err := writeAll(map[string]string{
		config: fmt.Sprintf(corefile, nodeAddress, dnsHealthPort, clusterDomain, n.kubeconfig("dns"), upstreamDNS("/etc/resolv.conf")),
	})
	return component{
		name:      "dns",
		path:      n.coredns,
		arguments: []string{"-conf=" + config},
		inputs:    []string{config, n.kubeconfig("dns")},
		ready:     httpProbe(fmt.Sprintf("http://127.0.0.1:%d/health", dnsHealthPort)),
	}, err
}

// upstreamDNS forwards other names to the machine's own servers. CoreDNS refuses to start with a
// forward to nobody, which is what a machine without a network would give.
func upstreamDNS(resolvConf string) string {
	content, err := os.ReadFile(resolvConf)
	if err != nil || !regexp.MustCompile(`(?m)^\s*nameserver\s`).Match(content) {
		return ""
	}
	return "    forward . " + resolvConf + "\n    cache 5\n"
}

// forwarder makes the service port answer on loopback where the kernel cannot route it there.
func (n *native) forwarder() (component, error) {
	self, err := os.Executable()
	return component{
		name:      "forwarder",
		path:      self,
		arguments: []string{"forward", n.loopbackService(), fmt.Sprintf("%s:%d", nodeAddress, servicePort)},
		ready:     dialProbe("tcp", n.loopbackService()),
	}, err
}

func (n *native) loopbackService() string { return fmt.Sprintf("127.0.0.1:%d", servicePort) }

// containerdClient is the command line of ctr for our containerd, in the kubelet's namespace.
func (n *native) containerdClient(arguments ...string) []string {
	return append([]string{"/usr/bin/ctr", "-a", n.containerdSocket(), "-n", "k8s.io"}, arguments...)
}

// containerdScript is ctr for people.
func (n *native) containerdScript() string { return n.statePath("bin", "ctr") }

func (n *native) writeContainerdScript() error {
	text := "#!/bin/sh\nexec " + strings.Join(n.containerdClient(), " ") + " \"$@\"\n"
	return writeFile(n.containerdScript(), []byte(text), 0o755)
}

func writeAll(files map[string]string) error {
	for name, content := range files {
		if err := writeFile(name, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
