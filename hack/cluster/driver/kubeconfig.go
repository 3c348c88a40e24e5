package main

import (
	"encoding/base64"
	"fmt"
	"os"
)

const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[4]s
users:
- name: %[4]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
`

// writeKubeconfig writes a kubeconfig for the holder of the certificate called name.
func (p *pki) writeKubeconfig(file, server, name string) error {
	var encoded [3]string
	for i, source := range []string{p.cert("ca"), p.cert(name), p.key(name)} {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		encoded[i] = base64.StdEncoding.EncodeToString(content)
	}
	text := fmt.Sprintf(kubeconfigTemplate, clusterName, server, encoded[0], name, encoded[1], encoded[2])
	return writeFile(file, []byte(text), 0o600)
}
