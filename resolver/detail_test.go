package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What is published of a failure names nothing of the network it happened in.
func TestDetailHidesTheNetwork(t *testing.T) {
	inside := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 51234}
	server := "10.9.9.9:53"
	for name, err := range map[string]error{
		"dns": &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "agent.example",
			Server: server, IsNotFound: true}},
		"refused": &net.OpError{Op: "dial", Net: "tcp", Addr: inside,
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"reset": &net.OpError{Op: "read", Net: "tcp", Source: inside, Addr: inside,
			Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"tls":  &net.OpError{Op: "remote error", Source: inside, Err: errors.New("tls: handshake failure")},
		"slow": fmt.Errorf("dial %s: %w", inside, context.DeadlineExceeded),
		"gateways": &Error{Reason: ReasonGateway, Retry: true,
			Err: fmt.Errorf("https://ipfs.internal.example: %w",
				passing(ReasonNetwork, "dial tcp %s: refused", inside))},
	} {
		e := networkError(context.Background(), &url.Error{Op: "Get", URL: "https://agent.example/card.json", Err: err})
		got := e.Detail()
		if !strings.HasPrefix(got, string(e.Reason)+": ") || len(got) < len(e.Reason)+10 {
			t.Errorf("%s: says only %q", name, got)
		}
		for _, secret := range []string{"10.", "53", "internal.example"} {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q shows %q", name, got, secret)
			}
		}
	}
	e := final(ReasonTooLarge, "%d bytes announced, limit %d", 9, 8)
	if got := e.Detail(); got != e.Error() {
		t.Errorf("what is of the document: %q, want %q", got, e.Error())
	}
}
