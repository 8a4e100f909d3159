package resolver

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
)

// counted counts the requests that reach next.
func counted(n *atomic.Int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		next.ServeHTTP(w, r)
	})
}

func names(list []*peer) (out []string) {
	for _, p := range list {
		out = append(out, p.base)
	}
	return out
}

func TestPeersOrder(t *testing.T) {
	c := client(t, Options{Node: "http://node:8080", Gateways: []string{"https://a.example/", "https://b.example"}})
	p, now := c.peers, time.Now()
	want := func(what, named string, bases ...string) {
		t.Helper()
		if got := names(p.order(now, named)); !slices.Equal(got, bases) {
			t.Errorf("%s: %v", what, got)
		}
	}
	node, a, b := p.all[0], p.all[1], p.all[2]
	want("at first", "", node.base, a.base, b.base)
	want("with the URI's own", "https://c.example", node.base, a.base, b.base, "https://c.example")
	want("with a known one", "https://a.example", node.base, a.base, b.base)
	p.failed(node, passing(ReasonNotFound, "no"), now)
	want("a document that is not there", "", node.base, a.base, b.base)
	p.failed(node, passing(ReasonTimeout, "slow"), now)
	want("one failed", "", a.base, b.base, node.base)
	p.failed(a, passing(ReasonCIDMismatch, "lies"), now)
	want("another lied", "", b.base, node.base, a.base)
	p.failed(b, &Error{Reason: ReasonHTTPStatus, RetryAfter: 2 * time.Minute}, now)
	want("all rest: the soonest back first", "", node.base, b.base, a.base)
	now = now.Add(minRest)
	want("the first is back", "", node.base, b.base, a.base)
	p.failed(node, passing(ReasonNetwork, "gone"), now)
	if rest := node.rests.Sub(now); rest != 2*minRest {
		t.Errorf("after two failures it rests %s", rest)
	}
	for range 100 {
		p.failed(node, passing(ReasonNetwork, "gone"), now)
	}
	if rest := node.rests.Sub(now); rest != maxRest {
		t.Errorf("after many failures it rests %s", rest)
	}
	p.worked(node)
	want("it worked", "", node.base, b.base, a.base)
	now = now.Add(time.Hour)
	want("an hour later", "", node.base, a.base, b.base)
}

// A gateway that says nothing costs one wait, not the whole time, and is asked last
// from then on.
func TestIPFSHedge(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	one, two := n.raw([]byte("one")).Cid().String(), n.raw([]byte("two")).Cid().String()
	done := make(chan struct{})
	var asked atomic.Int64
	silent := counted(&asked, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done }))
	c, gateways := gatewayClient(t, Options{Timeout: time.Minute}, silent, n.handler())
	t.Cleanup(func() { close(done) }) // before the servers close
	for _, id := range []string{one, two} {
		start := time.Now()
		doc, err := c.Fetch(t.Context(), "ipfs://"+id)
		if err != nil || doc.Gateway != gateways[1] {
			t.Errorf("%+v, %v", doc, err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the silent gateway was asked %d times", asked.Load())
	}
}

func TestIPFSFailingGatewayIsAskedLast(t *testing.T) {
	n := newNode(t)
	var bad, good atomic.Int64
	broken := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	c, _ := gatewayClient(t, Options{}, counted(&bad, broken), counted(&good, n.handler()))
	for i := range 5 {
		if _, err := c.Fetch(t.Context(), "ipfs://"+n.raw(fmt.Appendf(nil, "%d", i)).Cid().String()); err != nil {
			t.Error(err)
		}
	}
	if bad.Load() != 1 || good.Load() != 5 {
		t.Errorf("asked the broken one %d times, the good one %d times", bad.Load(), good.Load())
	}
	// What no gateway has says nothing about gateways.
	missing := "ipfs://" + strings.Replace(cidRaw, "bafkreigh", "bafkreigi", 1)
	if _, err := c.Fetch(t.Context(), missing); reasonOf(err) != ReasonGateway {
		t.Errorf("%v", err)
	}
	if first := c.peers.order(time.Now(), "")[0]; !strings.Contains(first.base, "127.0.0.1") || first.failures != 0 {
		t.Errorf("first is %+v", first)
	}
}

// The operator's node is asked first and may be private; that opens nothing else.
func TestIPFSNode(t *testing.T) {
	n := newNode(t)
	var asked atomic.Int64
	srv := httptest.NewServer(counted(&asked, n.handler()))
	defer srv.Close()
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		t.Error("the private server was reached")
	}))
	defer secret.Close()
	away := httptest.NewServer(http.RedirectHandler(secret.URL, http.StatusFound))
	defer away.Close()
	uri := "ipfs://" + n.dir("a.json", n.file(leaves...)).Cid().String() + "/a.json"

	c := client(t, Options{Node: srv.URL + "/", Gateways: []string{"https://gateway.example"}})
	doc, err := c.Fetch(t.Context(), uri)
	if err != nil || doc.Gateway != srv.URL || asked.Load() != 1 {
		t.Errorf("%+v, %v, asked %d times", doc.Gateway, err, asked.Load())
	}
	if _, err := c.Fetch(t.Context(),
		"https"+strings.TrimPrefix(srv.URL, "http")+"/x"); reasonOf(err) != ReasonBlockedAddress {
		t.Errorf("a document at the node's address: %v", err)
	}
	c = client(t, Options{Node: away.URL})
	if _, err := c.Fetch(t.Context(), uri); reasonOf(err) != ReasonGateway {
		t.Errorf("a node that leads elsewhere: %v", err)
	}
}

func TestIPFSWrongBytesAreLogged(t *testing.T) {
	n := newNode(t)
	var log bytes.Buffer
	c, gateways := gatewayClient(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, tamper("{", n.handler()),
		n.handler())
	id := n.raw([]byte(sample)).Cid().String()
	if doc, err := c.Fetch(t.Context(), "ipfs://"+id); err != nil || doc.Gateway != gateways[1] {
		t.Errorf("%+v, %v", doc, err)
	}
	if line := log.String(); !strings.Contains(line, gateways[0]) || !strings.Contains(line, id) ||
		strings.Contains(line, gateways[1]) {
		t.Errorf("logged %q", line)
	}
}

// A gateway's URL may have a key in its path. Nothing repeats it.
func TestIPFSGatewayKeyIsSecret(t *testing.T) {
	n := newNode(t)
	const key = "s3cr3tkey"
	uri := "ipfs://" + n.raw([]byte(sample)).Cid().String()
	srv := httptest.NewServer(http.StripPrefix("/"+key, n.handler()))
	var log bytes.Buffer
	o := Options{Gateways: []string{srv.URL + "/" + key}, GuardOptions: GuardOptions{AllowPrefixes: loopback},
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	c := client(t, o)
	if doc, err := c.Fetch(t.Context(), uri); err != nil || strings.Contains(fmt.Sprint(doc), key) {
		t.Errorf("%+v, %v", doc, err)
	}
	srv.Close()
	_, err := c.Fetch(t.Context(), uri)
	if err == nil || strings.Contains(err.Error()+log.String(), key) || !strings.Contains(err.Error(), srv.URL) {
		t.Errorf("%v, logged %s", err, log.String())
	}
	for _, bad := range []string{"https://user:" + key + "@gw.example", "https://gw.example/?token=" + key, key,
		"ftp://" + key, "https://a b/" + key} {
		for _, o := range []Options{{Gateways: []string{bad}}, {Node: bad}} {
			if _, err := New(o); err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
}

// A document comes with the blocks that prove it, each once, and nothing more.
func TestIPFSBlocks(t *testing.T) {
	n := newNode(t)
	file := n.file(append(leaves, leaves[0])...)
	dir := n.dir("docs", n.dir("agent.json", file))
	identity, err := cid.V1Builder{Codec: cid.Raw, MhType: 0}.Sum([]byte("tiny"))
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{"car": n.handler(), "raw": reject("car", n.handler())} {
		c, _ := gatewayClient(t, Options{}, h)
		for uri, want := range map[string]int{
			dir.Cid().String() + "/docs/agent.json":            3 + len(leaves),
			file.Cid().String():                                1 + len(leaves),
			n.raw([]byte(sample)).Cid().String():               1,
			identity.String():                                  0,
			n.shard("x.json", file).Cid().String() + "/x.json": 0, // as many as the trie is deep
		} {
			doc, err := c.Fetch(t.Context(), "ipfs://"+uri)
			if err != nil || want > 0 && len(doc.Blocks) != want || identity.String() == uri && doc.Blocks != nil {
				t.Errorf("%s: %s: %d blocks, want %d, %v", name, uri, len(doc.Blocks), want, err)
			}
			for _, b := range doc.Blocks {
				id, err := cid.Decode(b.CID)
				if err != nil || !bytes.Equal(id.Hash(), b.Multihash) {
					t.Fatalf("block %q of %x: %v", b.CID, b.Multihash, err)
				}
				if err := (&blockSet{}).add(id, b.Data); err != nil {
					t.Errorf("%s: %v", b.CID, err)
				}
			}
			// They suffice: the document can be read from them alone.
			set := &blockSet{}
			for _, b := range doc.Blocks {
				set.put(cid.MustParse(b.CID), b.Data)
			}
			root, path, _ := parseCIDPath(uri)
			again, err := c.fromGateway(t.Context(), &peer{}, root, path, set)
			if err != nil || !bytes.Equal(again.Bytes, doc.Bytes) {
				t.Errorf("%s: %s: from its blocks: %d bytes, %v", name, uri, len(again.Bytes), err)
			}
		}
	}
}

// A gateway that begins its answer and then searches for the blocks has its time.
func TestIPFSGatewayMaySearch(t *testing.T) {
	n := newNode(t)
	h := n.handler()
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
		w.WriteHeader(rec.Code)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(200 * time.Millisecond)
		_, _ = w.Write(rec.Body.Bytes())
	})
	c, _ := gatewayClient(t, Options{}, slow)
	c.pace = 20 * time.Millisecond
	if doc, err := c.Fetch(t.Context(), "ipfs://"+n.file(leaves...).Cid().String()); err != nil || len(doc.Bytes) == 0 {
		t.Errorf("%v", err)
	}
}
