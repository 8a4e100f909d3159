// Package freeport finds ports for programs that tests, benchmarks and the demo start, and that cannot tell which port
// they got themselves. Product code MUST NOT import it: it listens, and says where.
package freeport

import "net"

// Of returns an address with a free port in place of port 0. Another process may take the port before the program does,
// which then fails to start.
func Of(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Test is a test.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// Address returns an address of this machine for a test, which it ends where there is none.
func Address(t Test) string {
	t.Helper()
	address, err := Of("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// Port returns the port of an Address.
func Port(t Test) string {
	t.Helper()
	_, port, err := net.SplitHostPort(Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
