package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/boxo/ipld/unixfs/hamt"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	ipld "github.com/ipfs/go-ipld-format"
	mh "github.com/multiformats/go-multihash"
)

// node is an ipfs node's content, served by the reference gateway implementation
// in its trustless form.
type node struct {
	t      *testing.T
	blocks blockservice.BlockService
	dag    ipld.DAGService
}

func newNode(t *testing.T) *node {
	bs := blockstore.NewBlockstore(dssync.MutexWrap(datastore.NewMapDatastore()))
	svc := blockservice.New(bs, offline.Exchange(bs))
	return &node{t: t, blocks: svc, dag: merkledag.NewDAGService(svc)}
}

func (n *node) put(nd ipld.Node) ipld.Node {
	n.t.Helper()
	if err := n.dag.Add(n.t.Context(), nd); err != nil {
		n.t.Fatal(err)
	}
	return nd
}

func (n *node) raw(b []byte) ipld.Node { return n.put(merkledag.NewRawNode(b)) }

// file is a UnixFS file of the given leaves.
func (n *node) file(leaves ...[]byte) ipld.Node {
	n.t.Helper()
	fs := unixfs.NewFSNode(unixfs.TFile)
	nd := &merkledag.ProtoNode{}
	for _, leaf := range leaves {
		fs.AddBlockSize(uint64(len(leaf)))
		n.link(nd, "", n.raw(leaf))
	}
	b, err := fs.GetBytes()
	if err != nil {
		n.t.Fatal(err)
	}
	nd.SetData(b)
	return n.put(nd)
}

func (n *node) link(from *merkledag.ProtoNode, name string, to ipld.Node) {
	n.t.Helper()
	if err := from.AddNodeLink(name, to); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) dir(name string, child ipld.Node) ipld.Node {
	d := unixfs.EmptyDirNode()
	n.link(d, name, child)
	return n.put(d)
}

// shard is a directory of so many names that it is spread over several blocks.
func (n *node) shard(name string, child ipld.Node) ipld.Node {
	n.t.Helper()
	s, err := hamt.NewShard(n.dag, 16)
	for i := 0; err == nil && i < 200; i++ {
		err = s.Set(n.t.Context(), fmt.Sprintf("other-%d", i), child)
	}
	if err == nil {
		err = s.Set(n.t.Context(), name, child)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	nd, err := s.Node()
	if err != nil {
		n.t.Fatal(err)
	}
	return n.put(nd)
}

func (n *node) handler() http.Handler {
	n.t.Helper()
	backend, err := gateway.NewBlocksBackend(n.blocks)
	if err != nil {
		n.t.Fatal(err)
	}
	return gateway.NewHandler(gateway.Config{DeserializedResponses: false}, backend)
}

// gatewayClient serves each handler as one gateway; its client asks them in order.
func gatewayClient(t *testing.T, o Options, handlers ...http.Handler) (*Client, []string) {
	t.Helper()
	o.AllowPrefixes = loopback
	for _, h := range handlers {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		o.Gateways = append(o.Gateways, srv.URL)
	}
	return client(t, o), o.Gateways
}

// reject answers CAR requests with an error, like gateways without CAR support.
func reject(format string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == format {
			http.Error(w, "unsupported", http.StatusNotAcceptable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tamper turns one bit of every answer that contains the marker.
func tamper(marker string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		body := rec.Body.Bytes()
		if i := bytes.Index(body, []byte(marker)); i >= 0 {
			body[i] ^= 1
		}
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body)
	})
}

var leaves = [][]byte{[]byte(`{"name":"`), []byte(strings.Repeat("long ", 1000)), []byte(`"}`)}

func TestIPFSForms(t *testing.T) {
	n := newNode(t)
	whole := string(slices.Concat(leaves...))
	file, raw := n.file(leaves...), n.raw([]byte(sample))
	nested := n.dir("a b", n.dir("agent.json", file))
	asV1 := cid.NewCidV1(cid.DagProtobuf, file.Cid().Hash())
	identity, err := cid.V1Builder{Codec: cid.Raw, MhType: mh.IDENTITY}.Sum([]byte("tiny"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, h := range map[string]http.Handler{
		"car and raw": n.handler(), "raw only": reject("car", n.handler()), "car only": reject("raw", n.handler()),
	} {
		c, gateways := gatewayClient(t, Options{}, h)
		for uri, want := range map[string]string{
			"ipfs://" + file.Cid().String():                                whole,
			"ipfs://" + asV1.String():                                      whole,
			file.Cid().String():                                            whole,
			"https://ipfs.io/ipfs/" + file.Cid().String():                  whole,
			"ipfs://" + nested.Cid().String() + "/a%20b/agent.json":        whole,
			"ipfs://" + n.shard("x.json", file).Cid().String() + "/x.json": whole,
			"ipfs://" + identity.String():                                  "tiny",
			"ipfs://" + raw.Cid().String():                                 sample,
		} {
			if mode == "car only" && uri == "ipfs://"+raw.Cid().String() {
				continue // a raw block is asked for as one
			}
			doc, err := c.Fetch(t.Context(), uri)
			if err != nil || string(doc.Bytes) != want || doc.Source != SourceIPFS || doc.Gateway != gateways[0] {
				t.Errorf("%s: %s: %.40q from %q, %v", mode, uri, doc.Bytes, doc.Gateway, err)
			}
		}
	}
}

func TestIPFSDocumentNamesItsCID(t *testing.T) {
	n := newNode(t)
	dir := n.dir("agent.json", n.raw([]byte(sample))).Cid().String()
	c, _ := gatewayClient(t, Options{}, n.handler())
	doc, err := c.Fetch(t.Context(), "ipfs://"+dir+"/agent.json")
	if err != nil || doc.CID != dir || doc.FinalURL != "ipfs://"+dir+"/agent.json" {
		t.Errorf("%+v, %v", doc, err)
	}
}

// What the blocks prove is final, and no further gateway is bothered.
func TestIPFSProvenFailures(t *testing.T) {
	n := newNode(t)
	file := n.file(leaves...)
	dir := n.dir("agent.json", file)
	foreign := n.put(merkledag.NodeWithData([]byte("no UnixFS")))
	symlink, err := unixfs.SymlinkData("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	link := n.put(merkledag.NodeWithData(symlink))
	sha1, err := cid.V1Builder{Codec: cid.Raw, MhType: mh.SHA1}.Sum([]byte("weak"))
	if err != nil {
		t.Fatal(err)
	}
	cbor, err := cid.V1Builder{Codec: cid.DagCBOR, MhType: mh.SHA2_256}.Sum([]byte{0xa0})
	if err != nil {
		t.Fatal(err)
	}
	var second atomic.Int64
	c, _ := gatewayClient(t, Options{MaxBytes: 100}, n.handler(),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { second.Add(1) }))
	for path, want := range map[string]Reason{
		dir.Cid().String():                             ReasonDirectory,
		dir.Cid().String() + "/other.json":             ReasonNotFound,
		dir.Cid().String() + "/agent.json/deeper":      ReasonNotFound,
		dir.Cid().String() + "/agent.json":             ReasonTooLarge,
		n.shard("x", file).Cid().String():              ReasonDirectory,
		n.shard("x", file).Cid().String() + "/missing": ReasonNotFound,
		foreign.Cid().String():                         ReasonBadDAG,
		link.Cid().String():                            ReasonBadDAG,
		sha1.String():                                  ReasonBadCID,
		cbor.String():                                  ReasonBadCID,
	} {
		_, err := c.Fetch(t.Context(), "ipfs://"+path)
		if reasonOf(err) != want || strings.Contains(fmt.Sprint(err), "127.0.0.1") {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	if second.Load() != 0 {
		t.Errorf("the second gateway was asked %d times", second.Load())
	}
}

func TestIPFSWrongBytesNameTheGateway(t *testing.T) {
	n := newNode(t)
	uri := "ipfs://" + n.dir("agent.json", n.file(leaves...)).Cid().String() + "/agent.json"
	for marker, format := range map[string]string{`{"name"`: "", "long ": "car", "agent.json": ""} {
		liar := tamper(marker, n.handler())
		if format != "" {
			liar = reject(format, liar)
		}
		c, gateways := gatewayClient(t, Options{}, liar)
		_, err := c.Fetch(t.Context(), uri)
		if reasonOf(err) != ReasonCIDMismatch || !strings.Contains(err.Error(), gateways[0]) {
			t.Errorf("%q: got %v", marker, err)
		}
		c, gateways = gatewayClient(t, Options{}, liar, n.handler())
		doc, err := c.Fetch(t.Context(), uri)
		if err != nil || doc.Gateway != gateways[1] || !bytes.Equal(doc.Bytes, slices.Concat(leaves...)) {
			t.Errorf("%q: honest gateway: %+v, %v", marker, doc.Gateway, err)
		}
	}
}

func TestIPFSGatewayFailures(t *testing.T) {
	n := newNode(t)
	uri := "ipfs://" + n.raw([]byte(sample)).Cid().String()
	done := make(chan struct{})
	defer close(done)
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(code)
		})
	}
	silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done })
	huge := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { flood(w, 10<<30) })
	for name, c := range map[string]struct {
		broken http.Handler
		want   Reason
	}{
		"404": {status(404), ReasonGateway}, "410": {status(410), ReasonGateway}, "429": {status(429), ReasonGateway},
		"silent": {silent, ReasonTimeout}, "huge": {huge, ReasonGateway},
	} {
		o := Options{Timeout: 300 * time.Millisecond}
		if name == "huge" {
			o.Timeout = 10 * time.Second
		}
		alone, _ := gatewayClient(t, o, c.broken)
		_, err := alone.Fetch(t.Context(), uri)
		e, ok := err.(*Error)
		if !ok || e.Reason != c.want || !e.Retry || name == "429" && e.RetryAfter != time.Minute {
			t.Errorf("%s alone: %v", name, err)
		}
		o.Timeout = 20 * time.Second // for the good one on a busy machine: it is asked before the silent one ends
		both, _ := gatewayClient(t, o, c.broken, n.handler())
		if doc, err := both.Fetch(t.Context(), uri); err != nil || string(doc.Bytes) != sample {
			t.Errorf("%s then a good one: %v", name, err)
		}
	}
}

// A gateway that sends a flood of valid blocks nobody asked for neither fills
// memory nor condemns the document.
func TestIPFSFloodOfBlocks(t *testing.T) {
	n := newNode(t)
	file := n.file(leaves...)
	junk := make([][]byte, 40)
	for i := range junk {
		junk[i] = bytes.Repeat([]byte{byte(i)}, 512<<10)
	}
	other := n.file(junk...)
	h := n.handler()
	swap := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "car" {
			r.URL.Path = "/ipfs/" + other.Cid().String()
		}
		h.ServeHTTP(w, r)
	})
	c, _ := gatewayClient(t, Options{}, swap)
	if doc, err := c.Fetch(t.Context(), "ipfs://"+file.Cid().String()); err != nil ||
		!bytes.Equal(doc.Bytes, slices.Concat(leaves...)) {
		t.Errorf("%v", err)
	}
}

// Files whose blocks repeat can claim any size out of a few bytes.
func TestIPFSBlockBudget(t *testing.T) {
	n := newNode(t)
	for _, leaf := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("y"), 64<<10)} {
		many := slices.Repeat([][]byte{leaf}, maxBlocks+1)
		c, _ := gatewayClient(t, Options{MaxBytes: 64 << 20}, n.handler())
		if _, err := c.Fetch(t.Context(), "ipfs://"+n.file(many...).Cid().String()); reasonOf(err) != ReasonTooLarge {
			t.Errorf("leaves of %d bytes: %v", len(leaf), err)
		}
	}
	nd := n.file(leaves...)
	for range maxDepth + 1 {
		outer := &merkledag.ProtoNode{}
		outer.SetData(unixfs.FilePBData(nil, 0))
		n.link(outer, "", nd)
		nd = n.put(outer)
	}
	c, _ := gatewayClient(t, Options{}, n.handler())
	if _, err := c.Fetch(t.Context(), "ipfs://"+nd.Cid().String()); reasonOf(err) != ReasonBadDAG {
		t.Errorf("deep file: %v", err)
	}
}

func TestIPFSGatewaysAreGuarded(t *testing.T) {
	n := newNode(t)
	srv := httptest.NewServer(n.handler())
	defer srv.Close()
	c := client(t, Options{Gateways: []string{srv.URL}})
	if _, err := c.Fetch(t.Context(), "ipfs://"+n.raw([]byte("x")).Cid().String()); reasonOf(err) != ReasonGateway {
		t.Errorf("got %v", err)
	}
}

// The blocks are hashed by their authors, so the decoders see anything.
func FuzzUnixFS(f *testing.F) {
	f.Add([]byte{}, "a")
	f.Add(unixfs.FilePBData([]byte("x"), 1), "")
	f.Add(unixfs.FolderPBData(), "a/b")
	f.Fuzz(func(t *testing.T, b []byte, path string) {
		blk := blocks.NewBlock(b)
		for _, data := range [][]byte{b, merkledag.NodeWithData(b).RawData()} {
			w := &walker{limit: 1 << 10, load: func(context.Context, cid.Cid) ([]byte, error) { return data, nil }}
			out, err := w.file(t.Context(), blk.Cid(), path)
			if err == nil && len(out) > 1<<10 || err != nil && reasonOf(err) == "" {
				t.Errorf("%d bytes, %v", len(out), err)
			}
		}
	})
}

func FuzzReadCAR(f *testing.F) {
	f.Add([]byte("\x3aa2eroots\x81\xd8\x2aX\x25\x00\x01U\x12\x20gversion\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got blockSet
		_ = readCAR(io.LimitReader(bytes.NewReader(b), 1<<20), &got)
		for hash, block := range got.byHash {
			sum, err := mh.Sum(block, mustCode(t, hash), -1)
			if err == nil && string(sum) != hash {
				t.Errorf("unverified block %x", hash)
			}
		}
	})
}

func mustCode(t *testing.T, hash string) uint64 {
	d, err := mh.Decode([]byte(hash))
	if err != nil {
		t.Fatal(err)
	}
	return d.Code
}

// Every hash that is called strong must also be computable, or its CIDs would fail
// at the first block.
func TestStrongHashesAreComputed(t *testing.T) {
	for code := range mh.Codes {
		b := cid.V1Builder{Codec: cid.Raw, MhType: code, MhLength: -1}
		id, err := b.Sum([]byte(sample))
		if err != nil {
			if strongHashes.IsAllowed(code) {
				t.Errorf("%s: %v", mh.Codes[code], err)
			}
			continue
		}
		if got := checkStrong(id) == nil; got != strongHashes.IsAllowed(code) {
			t.Errorf("%s: strong %t", mh.Codes[code], got)
		}
		if err := (&blockSet{}).add(id, []byte(sample)); err != nil {
			t.Errorf("%s: %v", mh.Codes[code], err)
		}
	}
}

// However many gateways are silent, they share the time of one fetch, and what one
// leaves is for the last.
func TestIPFSGatewaysShareTheTime(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file := n.file(leaves...)
	done := make(chan struct{})
	silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-done })
	c, _ := gatewayClient(t, Options{Timeout: 3 * time.Second}, silent, silent, n.handler())
	t.Cleanup(func() { close(done) }) // before the servers close
	if doc, err := c.Fetch(t.Context(), "ipfs://"+file.Cid().String()); err != nil ||
		!bytes.Equal(doc.Bytes, slices.Concat(leaves...)) {
		t.Errorf("%v", err)
	}
}

// poison is what a decoder does not survive.
type poison struct{}

func (poison) Read([]byte) (int, error) { panic("poison") }

// What a gateway sent tells nothing of the document before it is verified: a panic
// over it must not be final.
func TestReadCARBlamesTheGateway(t *testing.T) {
	err := readCAR(poison{}, &blockSet{})
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonGateway || !e.Retry {
		t.Errorf("%v", err)
	}
}
