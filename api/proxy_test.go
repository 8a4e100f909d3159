package api_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between the index and Postgres: it counts statements and can
// pretend that the database went away.
type proxy struct {
	url        string
	statements atomic.Int64

	backend  string
	listener net.Listener
	mu       sync.Mutex
	away     bool
	open     map[net.Conn]bool
}

func newProxy(t testing.TB, dbURL string) *proxy {
	t.Helper()
	u, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{backend: u.Host, listener: l, open: map[net.Conn]bool{}}
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	p.url = u.String()
	t.Cleanup(func() { l.Close(); p.cut(true) })
	go p.accept()
	return p
}

// cut drops every connection; while away, new ones are dropped too.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for c := range p.open {
		c.Close()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil || !p.hold(client, server) {
			client.Close()
			continue
		}
		go p.pipe(client, server)
	}
}

func (p *proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.away {
			c.Close()
		} else {
			p.open[c] = true
		}
	}
	return !p.away
}

func (p *proxy) release(c net.Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
}

func (p *proxy) pipe(client, server net.Conn) {
	defer p.release(client)
	defer p.release(server)
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
		server.Close()
	}()
	p.forward(client, server)
}

// forward copies the client's messages and counts those that run a statement:
// Execute of the extended protocol and Query of the simple one.
func (p *proxy) forward(client io.Reader, server io.Writer) {
	for first := true; ; first = false {
		header := make([]byte, 5)
		if first { // the startup message has no type
			header = header[:4]
		}
		if _, err := io.ReadFull(client, header); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(header[len(header)-4:])
		body := make([]byte, size-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if !first && (header[0] == 'E' || header[0] == 'Q') {
			p.statements.Add(1)
		}
		if _, err := server.Write(append(header, body...)); err != nil {
			return
		}
	}
}
