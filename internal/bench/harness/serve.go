package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Serve answers on a free port of this machine until stop is called. stop cuts requests off and MUST be called once.
func Serve(h http.Handler) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := server.Close()
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

// Announce is Serve in a process of its own: it prints the URL as the first line, which StartServing reads, and ends
// with ctx.
func Announce(ctx context.Context, out io.Writer, h http.Handler) error {
	url, stop, err := Serve(h)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, url); err != nil {
		return errors.Join(err, stop())
	}
	<-ctx.Done()
	return stop()
}

// StartServing starts a program that calls Announce, and returns the URL at which it answers. It waits for the line
// without a limit of its own; a program that ends first is an error.
func (p Program) StartServing(args ...string) (r *Process, url string, err error) {
	if r, err = p.Start(args...); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(r.out).ReadString('\n')
	if err != nil {
		_ = r.Stop()
		return nil, "", fmt.Errorf("%s did not start: %s", args[0], r.stderr)
	}
	return r, strings.TrimSpace(line), nil
}

// Mute accepts connections and never answers, until the listener is closed.
func Mute(l net.Listener) {
	var held []net.Conn
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		held = append(held, c)
	}
	for _, c := range held {
		_ = c.Close() // nothing was sent on it
	}
}
