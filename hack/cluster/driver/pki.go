package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// pki is a folder of keys and certificates, all signed by its one certificate authority.
type pki struct {
	folder string
	caCert *x509.Certificate
	caKey  *ecdsa.PrivateKey
}

// subject is what a certificate says about its holder.
type subject struct {
	commonName   string
	organization []string
	hosts        []string // DNS names and IP addresses; only servers have any
}

const certificateLife = 10 * 365 * 24 * time.Hour

// openPKI loads the certificate authority of a folder, or makes one. The key pair that signs
// service account tokens is made along with it.
func openPKI(folder string) (*pki, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	p := &pki{folder: folder}
	if _, err := os.Stat(p.cert("ca")); errors.Is(err, os.ErrNotExist) {
		if err := p.makeAuthority(); err != nil {
			return nil, err
		}
	}
	pair, err := tls.LoadX509KeyPair(p.cert("ca"), p.key("ca"))
	if err != nil {
		return nil, err
	}
	p.caCert = pair.Leaf
	p.caKey = pair.PrivateKey.(*ecdsa.PrivateKey)
	return p, nil
}

func (p *pki) cert(name string) string { return filepath.Join(p.folder, name+".crt") }
func (p *pki) key(name string) string  { return filepath.Join(p.folder, name+".key") }

// serviceAccountPublicKey is the file with which service account tokens are verified.
func (p *pki) serviceAccountPublicKey() string { return filepath.Join(p.folder, "service-account.pub") }

// makeAuthority writes the certificate of the authority last, because it marks the folder complete.
func (p *pki) makeAuthority() error {
	signer, err := newKey(p.key("service-account"))
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		return err
	}
	if err := writePEM(p.serviceAccountPublicKey(), "PUBLIC KEY", public); err != nil {
		return err
	}
	key, err := newKey(p.key("ca"))
	if err != nil {
		return err
	}
	template, err := newTemplate(subject{commonName: clusterName + "-ca"})
	if err != nil {
		return err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	return writePEM(p.cert("ca"), "CERTIFICATE", der)
}

// issue makes the key and certificate called name, unless a good one for the same subject is there.
func (p *pki) issue(name string, holder subject) error {
	if p.isGood(name, holder) {
		return nil
	}
	key, err := newKey(p.key(name))
	if err != nil {
		return err
	}
	template, err := newTemplate(holder)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(holder.hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, p.caCert, key.Public(), p.caKey)
	if err != nil {
		return err
	}
	return writePEM(p.cert(name), "CERTIFICATE", der)
}

// isGood says whether the certificate called name is ours, for this subject, and far from its end.
func (p *pki) isGood(name string, holder subject) bool {
	pair, err := tls.LoadX509KeyPair(p.cert(name), p.key(name))
	if err != nil {
		return false
	}
	wanted, err := newTemplate(holder)
	if err != nil {
		return false
	}
	have := pair.Leaf
	return have.CheckSignatureFrom(p.caCert) == nil &&
		time.Until(have.NotAfter) > 30*24*time.Hour &&
		have.Subject.CommonName == wanted.Subject.CommonName &&
		slices.Equal(have.Subject.Organization, wanted.Subject.Organization) &&
		slices.Equal(have.DNSNames, wanted.DNSNames) &&
		slices.EqualFunc(have.IPAddresses, wanted.IPAddresses, net.IP.Equal)
}

func newTemplate(holder subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: holder.commonName, Organization: holder.organization},
		NotBefore:    time.Now().Add(-time.Hour), // other clocks may be behind
		NotAfter:     time.Now().Add(certificateLife),
	}
	for _, host := range holder.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template, nil
}

func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "EC PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// writeFile replaces a file in one step and leaves it alone when the content is already there.
func writeFile(name string, content []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", content, mode); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(name+".new", name)
}
