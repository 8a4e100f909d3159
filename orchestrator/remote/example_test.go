package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/remote"
)

// The example speaks the protocol.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	ok(t, l.Close())
	cmd := exec.Command(python, "../../examples/python/agent.py", fmt.Sprint(port))
	ok(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	m := opened(t, fmt.Sprintf("http://127.0.0.1:%d", port))
	for input, want := range map[string]bool{`{"url": "https://example.com"}`: true, `{}`: false, `"page"`: false} {
		can, err := m.CanHandle(t.Context(), orchestrator.Task{ID: "t", Goal: "count", Input: json.RawMessage(input)})
		if ok(t, err); can != want {
			t.Errorf("with %s the example says %t", input, can)
		}
	}
	if m.Info().Slug != "word-counter" || m.Info().Manifest.Safety.MaxOnchainWritesPerRun != 0 {
		t.Errorf("the example is %+v", m.Info())
	}
}

// opened waits until an agent listens.
func opened(t *testing.T, url string) orchestrator.Module {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		m, err := remote.Open(ctx, url, remote.Options{Client: http.DefaultClient})
		if err == nil {
			return m
		}
		if !errors.Is(err, repute.ErrUnavailable) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
