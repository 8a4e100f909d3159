package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"repute/internal/bench/harness"
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

// specOf is the history of a shape and size. The seed is that of all benchmarks, so that a history is made once.
func specOf(shape synth.Shape, events int) synth.Spec {
	return synth.Spec{Shape: shape, Seed: harness.Seed, Events: events}
}

// NodeOptions say which history a node serves and how it misbehaves. Several faults may be set; the zero value of each
// is none.
type NodeOptions struct {
	Dir     string // of the generated histories; the node makes the history where it is missing
	Shape   string // base or busy
	Events  int
	Range   uint64        // most blocks of an answer with logs, 0 for any
	Rate    int           // HTTP requests per second, 0 for any
	Latency time.Duration // of every HTTP request
	Lossy   bool          // see synth.History.LoseLogs
}

// ServeHistory is the node's side of a benchmark, a process of its own: it serves a history until ctx ends, as
// harness.Announce does.
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
	return harness.Announce(ctx, out, mux)
}

// misbehave injects the faults of a mode into a server of the history. The code and text of the limited range are those
// of public nodes, because the product reads from them how large a range may be.
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

// node is a process that serves a history at url. Its processor time is not that of the benchmark's process, and not
// that of the product.
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
	r, url, err := p.StartServing(args...)
	return &node{r, url}, err
}

// stats asks what the node has answered so far. The question itself is not counted.
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
