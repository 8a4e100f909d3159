package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/devnet"
	"repute/internal/paytest"
)

// lagging is a node that answers from the state of an older block, 0 for the newest.
type lagging struct {
	*httptest.Server
	at  atomic.Uint64
	lie atomic.Uint64 // what it says its newest block is, 0 for the truth
}

func newLagging(t *testing.T, url string) *lagging {
	t.Helper()
	n := &lagging{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if at := n.at.Load(); at > 0 {
			body = bytes.ReplaceAll(body, []byte(`"latest"`), []byte(fmt.Sprintf(`"%#x"`, at)))
			if head := max(at, n.lie.Load()); strings.Contains(string(body), "eth_blockNumber") {
				_, id, _ := strings.Cut(string(body), `"id":`)
				id = id[:strings.IndexAny(id, ",}")]
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"%#x"}`, id, head)
				return
			}
		}
		res, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, res.Body)
	}))
	t.Cleanup(n.Close)
	return n
}

// TestLaggingNode: the owner is what most nodes say; one that lags or lies decides nothing, and is told
// apart from a chain that went back.
func TestLaggingNode(t *testing.T) {
	t.Parallel()
	w := paytest.New(t, devnet.Options{})
	owner, other := w.Account(paytest.OwnerAccount), w.Account(paytest.StrangerAccount)
	b := w.Batch()
	b.Register(owner, "https://a.example/0")
	_, err := b.Mine(t.Context())
	ok(t, err)
	slow, honest := newLagging(t, w.RPCURL()), newLagging(t, w.RPCURL())
	three := open(t, w, 0, slow.URL, honest.URL, w.RPCURL())
	two := open(t, w, 0, slow.URL, honest.URL)
	one := open(t, w, 0, slow.URL)
	asked, err := three.Agent(t.Context())
	ok(t, err)
	before := uint64(1) // nothing is registered there
	for range 70 {
		_, err := w.Batch().Mine(t.Context())
		ok(t, err)
	}
	if a, err := one.Agent(t.Context()); err != nil || a != asked {
		t.Fatalf("%+v %v", a, err)
	}
	slow.at.Store(before)
	if a, err := three.Agent(t.Context()); err != nil || a.Owner != owner.Address {
		t.Errorf("one of three nodes lags: %+v %v", a, err)
	}
	if _, err := two.Agent(t.Context()); !errors.Is(err, repute.ErrUnavailable) ||
		!strings.Contains(err.Error(), "disagree") {
		t.Errorf("one of two nodes lags: %v", err)
	}
	if _, err := one.Agent(t.Context()); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("the only node went back by more than %d blocks: %v", 64, err)
	}
	if _, err := open(t, w, 0, slow.URL).Agent(t.Context()); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("the only node, asked for the first time: %v", err)
	}
	slow.lie.Store(1 << 40)
	if a, err := three.Agent(t.Context()); err != nil || a.Owner != owner.Address {
		t.Errorf("one of three nodes lies about its blocks: %+v %v", a, err)
	}
	b = w.Batch()
	b.Transfer(owner, 0, other.Address)
	_, err = b.Mine(t.Context())
	ok(t, err)
	if a, err := three.Agent(t.Context()); err != nil || a.Owner != other.Address {
		t.Errorf("after a transfer: %+v %v", a, err)
	}
}
