// A raw HTTP client: sends the request that stands as JSON on its standard input so many times, so many at once, over
// HTTP/1.1 with kept connections, and prints how long that took. Each "{name}" in the body becomes a name of its own.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type job struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Status  int               `json:"status"`
	// PEM; empty for plain HTTP.
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`

	Requests int    `json:"requests"`
	AtOnce   int    `json:"atOnce"`
	Prefix   string `json:"prefix"`
}

type result struct {
	Seconds float64   `json:"seconds"`
	Millis  []float64 `json:"millis"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var work job
	if err := json.NewDecoder(os.Stdin).Decode(&work); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	client, err := newClient(work)
	if err != nil {
		return err
	}
	measured, err := send(client, work)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(measured)
}

// newClient speaks HTTP/1.1 only: an empty TLSNextProto turns HTTP/2 off.
func newClient(work job) (*http.Client, error) {
	transport := &http.Transport{
		MaxIdleConns:        work.AtOnce,
		MaxIdleConnsPerHost: work.AtOnce,
		MaxConnsPerHost:     work.AtOnce,
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if work.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(work.CA)) {
			return nil, errors.New("the CA is no PEM certificate")
		}
		pair, err := tls.X509KeyPair([]byte(work.Cert), []byte(work.Key))
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	}
	return &http.Client{Transport: transport, Timeout: time.Minute}, nil
}

// send keeps AtOnce requests under way until all are answered; the first failure is the result.
func send(client *http.Client, work job) (result, error) {
	millis := make([]float64, work.Requests)
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var group sync.WaitGroup
	started := time.Now()
	for range work.AtOnce {
		group.Go(func() {
			for failure.Load() == nil {
				index := int(next.Add(1)) - 1
				if index >= work.Requests {
					return
				}
				begun := time.Now()
				if err := sendOne(client, work, index); err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				millis[index] = float64(time.Since(begun).Microseconds()) / 1000
			}
		})
	}
	group.Wait()
	seconds := time.Since(started).Seconds()
	if err := failure.Load(); err != nil {
		return result{}, *err
	}
	slices.Sort(millis)
	return result{Seconds: seconds, Millis: millis}, nil
}

func sendOne(client *http.Client, work job, index int) error {
	body := bytes.ReplaceAll([]byte(work.Body), []byte("{name}"), []byte(work.Prefix+strconv.Itoa(index)))
	request, err := http.NewRequest(work.Method, work.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range work.Headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != work.Status {
		return fmt.Errorf("answered %d instead of %d", response.StatusCode, work.Status)
	}
	return nil
}
