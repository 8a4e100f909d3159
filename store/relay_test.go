package store_test

import (
	"encoding/binary"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// relay passes connections on to a database. Frozen, it lets nothing through and keeps
// the connections open, as a stopped process does. As a pooler it gives its clients
// process ids of its own.
type relay struct {
	network, address string
	pooler           bool

	mu    sync.Mutex
	moves chan struct{} // closed while traffic passes
}

func newRelay(t *testing.T, database string, pooler bool) (r *relay, through string) {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	ok(t, err)
	r = &relay{pooler: pooler, moves: make(chan struct{})}
	close(r.moves)
	r.network, r.address = pgconn.NetworkAddress(config.Host, config.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			go r.serve(client)
		}
	}()
	u, err := url.Parse(database)
	ok(t, err)
	u.Host = l.Addr().String()
	return r, u.String()
}

func (r *relay) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves = make(chan struct{})
}

func (r *relay) thaw() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.moves)
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(r.network, r.address)
	if err != nil {
		return
	}
	defer server.Close()
	go r.pass(server, client, func([]byte) {})
	r.pass(client, server, r.rename)
}

func (r *relay) pass(to, from net.Conn, change func([]byte)) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		moves := r.moves
		r.mu.Unlock()
		<-moves
		change(buffer[:n])
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// rename changes the process id in BackendKeyData, which comes in one piece with the
// rest of the answer to a login.
func (r *relay) rename(sent []byte) {
	for i := 0; r.pooler && i+9 <= len(sent); {
		length := 1 + int(binary.BigEndian.Uint32(sent[i+1:]))
		if sent[i] == 'K' {
			sent[i+5] ^= 0x40
			return
		}
		i += length
	}
}
