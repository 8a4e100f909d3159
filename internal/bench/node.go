package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"repute/internal/bench/harness"
	"strconv"
	"strings"
	"time"

	"repute/internal/chainserver"
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

func specOf(shape synth.Shape, events int) synth.Spec {
	return synth.Spec{Shape: shape, Seed: harness.Seed, Events: events}
}

// NodeOptions say which history a node serves and how it misbehaves.
type NodeOptions struct {
	Dir     string
	Shape   string
	Events  int
	Range   uint64        // most blocks of an answer with logs, 0 for any
	Rate    int           // HTTP requests per second, 0 for any
	Latency time.Duration // of every HTTP request
	Lossy   bool          // see synth.History.LoseLogs
}

// ServeHistory is the node's side of a benchmark, a process of its own: it serves a history on a free
// port of this machine, prints the URL as its first line and ends with ctx.
func ServeHistory(ctx context.Context, out io.Writer, o NodeOptions) error {
	h, err := synth.Open(ctx, o.Dir, specOf(synth.Shape(o.Shape), o.Events))
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := synth.NewServer(h)
	if err != nil {
		return err
	}
	if err := o.misbehave(s, h); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.Stats()) // the client may have gone
	})
	url, stop, err := Serve(mux)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, url); err != nil {
		return errors.Join(err, stop())
	}
	<-ctx.Done()
	return stop()
}

func (o NodeOptions) misbehave(s *chainserver.Server, h *synth.History) error {
	if o.Range > 0 {
		s.Inject(chainserver.LimitRange(o.Range, chainserver.Error{Code: -32614,
			Message: fmt.Sprintf("eth_getLogs is limited to a %d range", o.Range)}))
	}
	if o.Latency > 0 {
		s.Latency(o.Latency)
	}
	if o.Rate > 0 {
		s.RateLimit(o.Rate)
	}
	if o.Lossy {
		return h.LoseLogs(s)
	}
	return nil
}

// Serve answers on a free port of this machine until stop is called.
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

// node is a process that serves a history.
type node struct {
	*harness.Process
	url string
}

// startNode starts a node; mode is a flag of it, or "clean".
func startNode(p harness.Program, dir string, h *synth.History, mode string) (*node, error) {
	spec := h.Spec()
	args := []string{"node", "--dir", dir, "--shape", string(spec.Shape), "--events", strconv.Itoa(spec.Events)}
	if mode != clean {
		args = append(args, "--"+mode)
	}
	r, err := p.Start(args...)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(r.Out).ReadString('\n')
	if err != nil {
		_ = r.Stop()
		return nil, fmt.Errorf("the node did not start: %s", r.Stderr)
	}
	return &node{r, strings.TrimSpace(line)}, nil
}

// stats asks what the node has answered so far.
func (n *node) stats(ctx context.Context) (s chainserver.Stats, err error) {
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
