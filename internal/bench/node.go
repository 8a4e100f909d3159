package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"repute/internal/synth"
)

// HistoryDir is where generated histories are kept between benchmarks.
func HistoryDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "repute", "bench")
}

// seed of every history: figures of different days speak of the same one.
const seed = 8004

func specOf(shape synth.Shape, events int) synth.Spec {
	return synth.Spec{Shape: shape, Seed: seed, Events: events}
}

// ServeHistory is the node's side of a benchmark, a process of its own: it serves
// a history on a free port of this machine, prints the URL as its first line and
// goes on until ctx ends.
func ServeHistory(ctx context.Context, out io.Writer, dir, shape, mode string, events int) error {
	m, err := synth.ParseMode(mode)
	if err != nil {
		return err
	}
	h, err := synth.Open(ctx, dir, specOf(synth.Shape(shape), events))
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve history: %w", err)
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return fmt.Errorf("serve history: %w", err)
	}
	return synth.Serve(ctx, l, h, m)
}

// node is a process that serves a history.
type node struct {
	*process
	url string
}

func startNode(p Program, dir string, h *synth.History, mode string) (*node, error) {
	spec := h.Spec()
	r, err := p.start("node", "--dir", dir, "--shape", string(spec.Shape), "--events", strconv.Itoa(spec.Events),
		"--mode", mode)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(r.out).ReadString('\n')
	if err != nil {
		_ = r.stop()
		return nil, fmt.Errorf("the node did not start: %s", r.said)
	}
	return &node{r, strings.TrimSpace(line)}, nil
}

// stats asks what the node has answered so far.
func (n *node) stats(ctx context.Context) (s synth.Stats, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/stats", nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, fmt.Errorf("stats: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("stats: %w", err)
	}
	return s, nil
}
