package main

import "testing"

func TestRemovalScriptLeavesOtherRulesAlone(t *testing.T) {
	saved := `*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:CNI-0123 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A PREROUTING -j DOCKER
-A POSTROUTING -s 10.244.0.3/32 -m comment --comment "name: \"boxwright\" id: \"a\"" -j CNI-0123
-A KUBE-SERVICES -m comment --comment "last" -j KUBE-NODEPORTS
-A DOCKER -i docker0 -j RETURN
COMMIT
`
	want := `*nat
-D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-D POSTROUTING -s 10.244.0.3/32 -m comment --comment "name: \"boxwright\" id: \"a\"" -j CNI-0123
-F KUBE-SERVICES
-F CNI-0123
-X KUBE-SERVICES
-X CNI-0123
COMMIT
`
	if got := removalScript("nat", saved); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRemovalScriptIsEmptyWithoutOurChains(t *testing.T) {
	if got := removalScript("filter", "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n"); got != "" {
		t.Errorf("got %q", got)
	}
}
