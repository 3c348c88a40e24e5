package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
)

// kernelAbilities are what the machine's kernel lets us do for the cluster's network.
type kernelAbilities struct {
	loopbackRouting bool // node ports can answer on 127.0.0.1
	bridgeFiltering bool // Service addresses work between two pods of the bridge without masquerading
}

// ensureNetwork makes the bridge and sets the kernel's switches. The bridge is made before anything
// else starts, because its address is the one that the API server and DNS are reached at.
func (n *native) ensureNetwork() error {
	if err := n.refuseForeignNetwork(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", bridgeName)); err != nil {
		if err := execute("ip", "link", "add", bridgeName, "type", "bridge"); err != nil {
			return err
		}
	}
	prefix := podCIDR[strings.IndexByte(podCIDR, '/'):]
	if err := execute("ip", "addr", "replace", nodeAddress+prefix, "dev", bridgeName); err != nil {
		return err
	}
	if err := execute("ip", "link", "set", bridgeName, "up"); err != nil {
		return err
	}
	if err := n.setSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return fmt.Errorf("pods need forwarding of packets: %w", err)
	}
	// The module may be built in or absent; what counts is whether the switch is there afterwards.
	_ = exec.Command("modprobe", "br_netfilter").Run()
	n.kernel.bridgeFiltering = n.setSysctl("net/bridge/bridge-nf-call-iptables", "1") == nil
	n.kernel.loopbackRouting = n.setSysctl("net/ipv4/conf/all/route_localnet", "1") == nil
	return nil
}

// refuseForeignNetwork protects another Kubernetes on this machine: two kube-proxies would destroy
// each other's rules.
func (n *native) refuseForeignNetwork() error {
	marker := n.statePath("network-is-ours")
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	rules, err := exec.Command("iptables-save", "-t", "nat").Output()
	if err != nil {
		return fmt.Errorf("iptables-save: %w", describe(err))
	}
	if strings.Contains(string(rules), ":KUBE-SERVICES ") {
		return fmt.Errorf("another Kubernetes has its rules in this machine's iptables; stop it first, or use CLUSTER=current")
	}
	return writeFile(marker, nil, 0o644)
}

// removeNetwork takes back everything that ensureNetwork, kube-proxy, the kubelet and CNI have made.
func (n *native) removeNetwork() error {
	if _, err := os.Stat(n.statePath("network-is-ours")); err != nil {
		return nil
	}
	for _, table := range []string{"nat", "filter", "mangle"} {
		if err := removeChains(table); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", bridgeName)); err == nil {
		if err := execute("ip", "link", "delete", bridgeName); err != nil {
			return err
		}
	}
	if err := n.restoreSysctls(); err != nil {
		return err
	}
	if err := os.RemoveAll(n.addressFolder()); err != nil {
		return err
	}
	return removeIfThere(n.statePath("network-is-ours"))
}

var (
	ourChain   = regexp.MustCompile(`^:((?:KUBE|CNI)-\S+) `)
	jumpToOurs = regexp.MustCompile(`^-A (\S+) .*-j (?:KUBE|CNI)-\S+`)
)

// removeChains deletes the chains of kube-proxy, the kubelet and CNI from a table, and the rules
// that jump there. All other rules stay.
func removeChains(table string) error {
	saved, err := exec.Command("iptables-save", "-t", table).Output()
	if err != nil {
		return fmt.Errorf("iptables-save: %w", describe(err))
	}
	script := removalScript(table, string(saved))
	if script == "" {
		return nil
	}
	restore := exec.Command("iptables-restore", "--noflush")
	restore.Stdin = strings.NewReader(script)
	if output, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("iptables-restore: %w\n%s", err, output)
	}
	return nil
}

// removalScript turns the output of iptables-save into the input of iptables-restore that removes
// our chains. It is empty when there are none.
func removalScript(table, saved string) string {
	var flushes, deletions, jumps strings.Builder
	for _, line := range strings.Split(saved, "\n") {
		if match := ourChain.FindStringSubmatch(line); match != nil {
			fmt.Fprintf(&flushes, "-F %s\n", match[1])
			fmt.Fprintf(&deletions, "-X %s\n", match[1])
		} else if match := jumpToOurs.FindStringSubmatch(line); match != nil && !isOurs(match[1]) {
			fmt.Fprintf(&jumps, "-D%s\n", strings.TrimPrefix(line, "-A"))
		}
	}
	if flushes.Len() == 0 {
		return ""
	}
	// A chain can be deleted only when no rule jumps to it any more.
	return "*" + table + "\n" + jumps.String() + flushes.String() + deletions.String() + "COMMIT\n"
}

func isOurs(chain string) bool {
	return strings.HasPrefix(chain, "KUBE-") || strings.HasPrefix(chain, "CNI-")
}

// setSysctl sets a kernel switch and notes its old value for restoreSysctls.
func (n *native) setSysctl(name, value string) error {
	file := filepath.Join("/proc/sys", name)
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(old)) == value {
		return nil
	}
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
		return err
	}
	return writeFile(filepath.Join(n.statePath("sysctl"), strings.ReplaceAll(name, "/", ".")), old, 0o644)
}

func (n *native) restoreSysctls() error {
	saved, err := filepath.Glob(filepath.Join(n.statePath("sysctl"), "*"))
	if err != nil {
		return err
	}
	for _, file := range saved {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(filepath.Base(file), ".", "/")
		if err := os.WriteFile(filepath.Join("/proc/sys", name), old, 0o644); err != nil {
			return err
		}
	}
	return os.RemoveAll(n.statePath("sysctl"))
}

// unmountBelow unmounts everything mounted below the folders, the deepest first.
func unmountBelow(roots ...string) error {
	content, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var points []string
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		point := strings.ReplaceAll(strings.Fields(line)[1], `\040`, " ")
		for _, root := range roots {
			if strings.HasPrefix(point, root+"/") {
				points = append(points, point)
			}
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(points)))
	for _, point := range points {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}
