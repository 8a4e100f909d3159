package killtest

import (
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Relay listens for a process and passes its messages on to a database. It returns the database's URL through it. pass
// is called with each message before the database has it, and with nil after that. It is called concurrently, once per
// connection.
func Relay(t testing.TB, database string, pass func(message []byte)) string {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for client, err := l.Accept(); err == nil; client, err = l.Accept() {
			go relay(client, network, address, pass)
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// relay passes the messages of one connection on.
func relay(client net.Conn, network, address string, pass func(message []byte)) {
	defer client.Close()
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		pass(buffer[:n])
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		pass(nil)
	}
}
