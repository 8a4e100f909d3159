package registry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/x402"
)

// target is whom a transaction calls, in the answer of a node.
var target = regexp.MustCompile(`"to":"0x[0-9a-fA-F]{40}"`)

// liar is a node that calls its newest block final, hides logs, and names another target of each transaction.
func liar(t *testing.T, url string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), "eth_getLogs") {
			_, id, _ := strings.Cut(string(body), `"id":`)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id[:strings.IndexAny(id, ",}")]+`,"result":[]}`)
			return
		}
		body = bytes.ReplaceAll(body, []byte(`"finalized"`), []byte(`"latest"`))
		res, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		_, _ = w.Write(target.ReplaceAll(answer, []byte(`"to":"0x00000000000000000000000000000000000000aa"`)))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestPastByMajority: one of three nodes decides neither what is final nor what happened.
func TestPastByMajority(t *testing.T) {
	t.Parallel()
	w := paytest.New(t, devnet.Options{})
	b := w.Batch()
	b.Register(w.Account(paytest.OwnerAccount), "https://a.example/0")
	_, err := b.Mine(t.Context())
	ok(t, err)
	for range 80 {
		_, err := w.Mine(t.Context())
		ok(t, err)
	}
	id, lies := w.Chain().ID, liar(t, w.RPCURL())
	truth, when, err := open(t, w, 0, w.RPCURL()).Finalized(t.Context(), id)
	ok(t, err)
	head, err := w.Client().BlockNumber(t.Context())
	ok(t, err)
	alone, _, err := open(t, w, 0, lies).Finalized(t.Context(), id)
	ok(t, err)
	newest, err := w.Client().BlockNumber(t.Context()) // blocks are mined meanwhile
	ok(t, err)
	if alone < head || alone > newest || truth >= head {
		t.Fatalf("%d final of %d to %d, the liar says %d", truth, head, newest, alone)
	}
	three := open(t, w, 0, lies, w.RPCURL(), w.RPCURL())
	number, seconds, err := three.Finalized(t.Context(), id)
	ok(t, err)
	later, laterWhen, err := open(t, w, 0, w.RPCURL()).Finalized(t.Context(), id) // finality may move meanwhile
	ok(t, err)
	if number < truth || number > later || seconds < when || seconds > laterWhen {
		t.Errorf("%d at %d, want %d at %d to %d at %d", number, seconds, truth, when, later, laterWhen)
	}
	q := ethereum.FilterQuery{Addresses: []common.Address{w.Chain().Identity}}
	logs, _, err := three.Logs(t.Context(), id, q, x402.Window{})
	if err != nil || len(logs) == 0 {
		t.Fatalf("%v, %v", logs, err)
	}
	to, data, err := three.Transaction(t.Context(), id, logs[len(logs)-1].TxHash)
	if err != nil || to != w.Chain().Identity || len(data) == 0 {
		t.Errorf("the transaction called %s with %x: %v", to, data, err)
	}
	if _, _, err := open(t, w, 0, lies, w.RPCURL()).Logs(t.Context(), id, q, x402.Window{}); !errors.Is(err,
		repute.ErrUnavailable) {
		t.Errorf("two nodes that disagree: %v", err)
	}
}
