package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/store/query"
)

// While a request keeps the first Ctrl-C waiting, the second one ends the process.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	address := freeport.Address(t)
	cmd, out := child(t, "serve", "--roles", "api", "--database-url", pgtest.New(t), "--listen", address)
	eventually(t, "http://"+address+"/healthz", 200, "", out)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// A request whose body never comes.
	fmt.Fprintf(conn,
		"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	interrupt := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond) // the server must have begun to read
	interrupt()
	select {
	case err := <-ended:
		t.Fatalf("ended with a request under way: %v, says %s", err, out)
	case <-time.After(time.Second):
	}
	interrupt()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("still there after the second signal")
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("ended with %v", cmd.ProcessState)
	}
}

func TestMigrateDownAsks(t *testing.T) {
	database := pgtest.New(t)
	try := func(terminal bool, answer string, args ...string) error {
		var out bytes.Buffer
		p := &cli.Program{Stdin: strings.NewReader(answer), Stdout: &out, Stderr: &out, Terminal: terminal}
		root := root(p)
		root.SetArgs(append([]string{"migrate", "down", "--database-url", database}, args...))
		return root.ExecuteContext(t.Context())
	}
	for answer, terminal := range map[string]bool{"": true, "no\n": true, "y\n": true, "yes\n": false} {
		if err := try(terminal, answer); !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "--yes") {
			t.Errorf("terminal %v, answer %q: got %v", terminal, answer, err)
		}
	}
	if _, err := query.Chains(t.Context(), openTest(t, database)); err != nil {
		t.Fatalf("the schema is gone: %v", err)
	}
	if err := try(true, "yes\n"); err != nil {
		t.Errorf("a yes: %v", err)
	}
	if _, err := query.Chains(t.Context(), openTest(t, database)); err == nil {
		t.Error("the schema is still there")
	}
	if err := try(false, "", "--yes"); err != nil {
		t.Errorf("--yes: %v", err)
	}
}
