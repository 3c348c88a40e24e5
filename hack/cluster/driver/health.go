package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"
)

// probe asks a program once whether it is ready for work.
type probe func() error

// waitFor repeats a probe until it succeeds. It gives up after the timeout, or at once when the
// program has exited.
func waitFor(ready probe, timeout time.Duration, exited <-chan struct{}) error {
	deadline := time.After(timeout)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("it exited")
		case <-deadline:
			return fmt.Errorf("not ready after %s: %w", timeout, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// httpProbe expects status 200.
func httpProbe(url string) probe {
	return probeWith(url, nil)
}

// tlsProbe expects status 200 and shows the certificate called name.
func tlsProbe(url string, p *pki, name string) probe {
	return func() error {
		pair, err := tls.LoadX509KeyPair(p.cert(name), p.key(name))
		if err != nil {
			return err
		}
		authorities := x509.NewCertPool()
		authorities.AddCert(p.caCert)
		return probeWith(url, &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{pair}})()
	}
}

// selfSignedProbe expects status 200 from a program that made its own certificate in memory. Only
// the health of a loopback port is asked, so there is nothing that a forger could gain.
func selfSignedProbe(url string) probe {
	return probeWith(url, &tls.Config{InsecureSkipVerify: true})
}

func probeWith(url string, config *tls.Config) probe {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		// No proxy from the environment, and no connection kept for a program that may be replaced.
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", url, response.Status)
		}
		return nil
	}
}

// dialProbe expects a listener.
func dialProbe(network, address string) probe {
	return func() error {
		connection, err := net.DialTimeout(network, address, time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}
