package devnet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	format "github.com/ipfs/go-ipld-format"
	"github.com/prometheus/client_golang/prometheus"
)

// Documents is an HTTPS server with two sides: pages under their paths, and a
// trustless IPFS gateway under /ipfs/ for the files that were pinned to it.
type Documents struct {
	url     string
	roots   *x509.CertPool
	server  *http.Server
	served  chan error // the result of Serve
	dag     format.DAGService
	gateway http.Handler
	closed  sync.Once
	// certificate is the server's own, DER.
	certificate []byte

	mu       sync.RWMutex // guards what follows
	pages    map[string]page
	tampered map[string]bool // by CID: the gateway lies about these
}

// page is what a path of the server answers.
type page struct {
	contentType string
	body        []byte
}

// StartDocuments listens on addr, host:port; "" takes a free port of 127.0.0.1.
func StartDocuments(addr string) (*Documents, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	d := &Documents{served: make(chan error, 1), pages: map[string]page{}, tampered: map[string]bool{}}
	if err := d.openGateway(); err != nil {
		return nil, fmt.Errorf("open gateway: %w", err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	identity, err := selfSigned(listener.Addr())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make certificate: %w", err), listener.Close())
	}
	d.roots = x509.NewCertPool()
	d.roots.AddCert(identity.Leaf)
	d.certificate = identity.Leaf.Raw
	d.url = "https://" + listener.Addr().String()
	d.server = &http.Server{Handler: d.routes(), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS12}}
	go func() { d.served <- d.server.ServeTLS(listener, "", "") }()
	return d, nil
}

// openGateway serves blocks only: a reader has to verify them against the CID.
func (d *Documents) openGateway() error {
	store := blockstore.NewBlockstore(dssync.MutexWrap(datastore.NewMapDatastore()))
	blocks := blockservice.New(store, offline.Exchange(store))
	d.dag = merkledag.NewDAGService(blocks)
	backend, err := gateway.NewBlocksBackend(blocks)
	if err != nil {
		return err
	}
	d.gateway = gateway.NewHandler(gateway.Config{
		NoDNSLink:         true,
		DisableHTMLErrors: true,
		RetrievalTimeout:  10 * time.Second,
		MetricsRegistry:   prometheus.NewRegistry(), // the process's own registry is not ours to fill
	}, backend)
	return nil
}

// URL is the server's base, without a trailing slash. It is also the base of the
// gateway.
func (d *Documents) URL() string { return d.url }

// Host is the server's host and port.
func (d *Documents) Host() string { return strings.TrimPrefix(d.url, "https://") }

// Roots holds the certificate by which a client knows the server. Nobody else
// signed it.
func (d *Documents) Roots() *x509.CertPool { return d.roots.Clone() }

// Certificate is what Roots holds, as PEM, for other processes.
func (d *Documents) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.certificate})
}

// selfSigned makes a certificate for the address, good for a year.
func selfSigned(a net.Addr) (tls.Certificate, error) {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "repute devnet documents"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, IPAddresses: []net.IP{net.ParseIP(host)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// Close stops the server. It may be called twice.
func (d *Documents) Close() (err error) {
	d.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err = d.server.Shutdown(ctx)
		if served := <-d.served; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	})
	return err
}

// Serve publishes a page under a path that begins with a slash, replacing what
// was there, and returns its URL.
func (d *Documents) Serve(path, contentType string, body []byte) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages[path] = page{contentType, body}
	return d.url + path
}

// routes serves pages and, below /ipfs/, the gateway.
func (d *Documents) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", d.servePage)
	mux.HandleFunc("/ipfs/", d.serveIPFS)
	return mux
}

// servePage answers with a page, whatever the method is.
func (d *Documents) servePage(w http.ResponseWriter, r *http.Request) {
	d.mu.RLock()
	p, ok := d.pages[r.URL.Path]
	d.mu.RUnlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", p.contentType)
	_, _ = w.Write(p.body) // the reader went away: its loss
}
