package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/exchange/offline"
	"github.com/ipfs/boxo/gateway"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/boxo/ipld/unixfs/hamt"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	ipld "github.com/ipfs/go-ipld-format"
	car "github.com/ipld/go-car/v2"
	mh "github.com/multiformats/go-multihash"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/api"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/resolver"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
)

// ipfsNode holds content that the test publishes.
type ipfsNode struct {
	t   *testing.T
	dag ipld.DAGService
	srv *httptest.Server
}

func newIPFSNode(t *testing.T) *ipfsNode {
	t.Helper()
	bs := blockstore.NewBlockstore(dssync.MutexWrap(datastore.NewMapDatastore()))
	svc := blockservice.New(bs, offline.Exchange(bs))
	backend, err := gateway.NewBlocksBackend(svc)
	must(t, err)
	srv := httptest.NewServer(gateway.NewHandler(gateway.Config{MetricsRegistry: prometheus.NewRegistry()}, backend))
	t.Cleanup(srv.Close)
	return &ipfsNode{t: t, dag: merkledag.NewDAGService(svc), srv: srv}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (n *ipfsNode) put(nd ipld.Node) ipld.Node {
	n.t.Helper()
	must(n.t, n.dag.Add(n.t.Context(), nd))
	return nd
}

// file is a UnixFS file of the leaves.
func (n *ipfsNode) file(leaves ...[]byte) ipld.Node {
	n.t.Helper()
	fs, nd := unixfs.NewFSNode(unixfs.TFile), &merkledag.ProtoNode{}
	for _, leaf := range leaves {
		fs.AddBlockSize(uint64(len(leaf)))
		must(n.t, nd.AddNodeLink("", n.put(merkledag.NewRawNode(leaf))))
	}
	b, err := fs.GetBytes()
	must(n.t, err)
	nd.SetData(b)
	return n.put(nd)
}

func (n *ipfsNode) dir(name string, child ipld.Node) ipld.Node {
	n.t.Helper()
	d := unixfs.EmptyDirNode()
	must(n.t, d.AddNodeLink(name, child))
	return n.put(d)
}

// shard is a directory that is spread over several blocks.
func (n *ipfsNode) shard(name string, child ipld.Node) ipld.Node {
	n.t.Helper()
	s, err := hamt.NewShard(n.dag, 16)
	must(n.t, err)
	for i := range 100 {
		must(n.t, s.Set(n.t.Context(), fmt.Sprintf("other-%d", i), child))
	}
	must(n.t, s.Set(n.t.Context(), name, child))
	nd, err := s.Node()
	must(n.t, err)
	return n.put(nd)
}

// reader resolves through one gateway.
func reader(t *testing.T, base string) *resolver.Client {
	t.Helper()
	c, err := resolver.New(resolver.Options{Gateways: []string{base},
		GuardOptions: resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// keep makes an agent of each URI and stores its document as the indexer would.
func keep(t *testing.T, db *store.DB, fetch func(context.Context, string) (resolver.Document, error),
	uris ...string) map[string][]byte {
	t.Helper()
	l := newLedger(t, db, 8453)
	for i, uri := range uris {
		l.add(mint(uint64(i), addr(1), uri)...)
	}
	kept := map[string][]byte{}
	for _, c := range mustValue(docdb.ClaimHosts(t.Context(), db, []docdb.Rank{docdb.RankNew}, 100))(t) {
		for _, u := range mustValue(docdb.DueURIs(t.Context(), db, c.Host, 100))(t) {
			doc, err := fetch(t.Context(), u.URI)
			must(t, err)
			r := docdb.FetchResult{URIID: u.ID, Body: doc.Bytes, Source: string(doc.Source), FetchedAt: time.Now(),
				ParserVersion: 1,
				Registration:  &repute.Registration{}}
			for _, b := range doc.Blocks {
				r.Blocks = append(r.Blocks, docdb.Block{Multihash: b.Multihash, Data: b.Data, Node: b.Node})
			}
			must(t, docdb.SaveDocuments(t.Context(), db, r))
			kept[u.URI] = doc.Bytes
		}
	}
	if len(kept) != len(uris) {
		t.Fatalf("%d of %d documents kept", len(kept), len(uris))
	}
	return kept
}

func rawCID(b []byte) string {
	sum := sha256.Sum256(b)
	hash, _ := mh.Encode(sum[:], mh.SHA2_256)
	return cid.NewCidV1(cid.Raw, hash).String()
}

// What was read over ipfs is served again, proof and all, when its host is gone.
func TestGatewayOutlivesTheHost(t *testing.T) {
	t.Parallel()
	n := newIPFSNode(t)
	text := []byte(`{"name":"` + strings.Repeat("long ", 2000) + `"}`)
	file := n.file(text[:4000], text[4000:8000], text[8000:])
	whole := n.put(merkledag.NewRawNode([]byte(`{"name":"one block"}`)))
	dir := n.dir("docs", n.dir("agent.json", file))
	uris := []string{
		"ipfs://" + file.Cid().String(),
		"ipfs://" + whole.Cid().String(),
		"ipfs://" + dir.Cid().String() + "/docs/agent.json",
		"ipfs://" + n.shard("x.json", file).Cid().String() + "/x.json",
		"data:application/json,%7B%7D",
	}
	db := open(t, pgtest.New(t))
	kept := keep(t, db, reader(t, n.srv.URL).Fetch, uris...)
	n.srv.Close()
	s := serve(t, api.Options{DB: db})
	again := reader(t, s.URL)
	for uri, want := range kept {
		doc, err := again.Fetch(t.Context(), uri)
		if err != nil || !bytes.Equal(doc.Bytes, want) {
			t.Errorf("%s: %d bytes, %v", uri, len(doc.Bytes), err)
		}
		// Any document is a raw block as well, whatever form it came in.
		doc, err = again.Fetch(t.Context(), "ipfs://"+rawCID(want))
		if err != nil || !bytes.Equal(doc.Bytes, want) {
			t.Errorf("%s as a raw block: %d bytes, %v", uri, len(doc.Bytes), err)
		}
	}
	for uri, why := range map[string]resolver.Reason{
		"ipfs://" + dir.Cid().String() + "/docs/other.json": resolver.ReasonNotFound, // the directory proves it
		"ipfs://" + rawCID([]byte("never seen")):            resolver.ReasonGateway,
	} {
		_, err := again.Fetch(t.Context(), uri)
		if e := (*resolver.Error)(nil); !errors.As(err, &e) || e.Reason != why {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestGatewayAnswers(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	page := []byte("<html><script>alert(1)</script></html>")
	keep(t, db, func(context.Context, string) (resolver.Document, error) {
		return resolver.Document{Bytes: page, Source: resolver.SourceHTTPS}, nil
	}, "https://site.example/")
	s := serve(t, api.Options{DB: db})
	id := rawCID(page)
	cbor := mustValue(cid.V1Builder{Codec: cid.DagCBOR, MhType: mh.SHA2_256}.Sum([]byte{0xa0}))(t).String()

	r := get(t, s, "/ipfs/"+id, "Accept", "application/vnd.ipld.raw")
	if r.status != 200 || !bytes.Equal(r.body, page) || r.header.Get("Content-Type") != "application/vnd.ipld.raw" ||
		r.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(r.header.Get("Content-Disposition"),
		"attachment") ||
		r.header.Get("Cache-Control") != "public, max-age=86400, immutable" ||
		r.header.Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	if again := get(t, s, "/ipfs/"+id+"?format=raw", "If-None-Match", r.header.Get("Etag")); again.status != 304 ||
		len(again.body) > 0 {
		t.Errorf("with its tag: %d %s", again.status, again.body)
	}
	if head := do(t, s, http.MethodHead, "/ipfs/"+id+"?format=raw", nil); head.status != 200 ||
		head.header.Get("Content-Length") != fmt.Sprint(len(page)) {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	for path, want := range map[string]int{
		"/ipfs/" + id:                                 406,
		"/ipfs/" + id + "?format=json":                406,
		"/ipfs/" + id + "?format=tar":                 406,
		"/ipfs/" + id + "/a?format=raw":               406,
		"/ipfs/" + cbor + "?format=raw":               404,
		"/ipfs/" + cbor + "?format=car":               404,
		"/ipfs/?format=raw":                           400,
		"/ipfs/words?format=raw":                      400,
		"/ipfs/?uri=ipfs://" + id:                     400,
		"/ipns/site.example?format=raw":               404,
		"/ipfs/" + id + "?format=car&dag-scope=words": 400,
		"/ipfs/" + strings.Repeat("b", 3000):          400,
	} {
		r := get(t, s, path)
		if p := problemOf(t, r); r.status != want || p.RequestID == "" {
			t.Errorf("%s: %d, want %d: %s", path, r.status, want, r.body)
		}
		if r.header.Get("Content-Disposition") != "" || strings.Contains(r.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: a refusal with headers of an answer: %v", path, r.header)
		}
	}
	if r := do(t, s, http.MethodPost, "/ipfs/"+id, strings.NewReader("x")); r.status != 405 {
		t.Errorf("POST: %d", r.status)
	}
}

// A file of very many parts, or one whose parts repeat, is cut.
func TestGatewayAnswersAreBounded(t *testing.T) {
	t.Parallel()
	n := newIPFSNode(t)
	leaves := make([][]byte, 1200)
	for i := range leaves {
		leaves[i] = fmt.Appendf(nil, "leaf %d", i)
	}
	wide, repeated := n.file(leaves...), n.file(slices.Repeat([][]byte{[]byte("same")}, 5000)...)
	db := open(t, pgtest.New(t))
	keep(t, db, func(ctx context.Context, _ string) (resolver.Document, error) {
		doc := resolver.Document{Bytes: []byte("x"), Source: resolver.SourceIPFS}
		for _, nd := range []ipld.Node{wide, repeated} {
			doc.Blocks = append(doc.Blocks, resolver.Block{Multihash: nd.Cid().Hash(), Data: nd.RawData(), Node: true})
			for _, l := range nd.Links() {
				leaf, err := n.dag.Get(ctx, l.Cid)
				must(t, err)
				doc.Blocks = append(doc.Blocks, resolver.Block{Multihash: l.Cid.Hash(), Data: leaf.RawData()})
			}
		}
		slices.SortFunc(doc.Blocks, func(a, b resolver.Block) int { return bytes.Compare(a.Multihash, b.Multihash) })
		doc.Blocks = slices.CompactFunc(doc.Blocks,
			func(a, b resolver.Block) bool { return bytes.Equal(a.Multihash, b.Multihash) })
		return doc, nil
	}, "ipfs://"+wide.Cid().String())
	s := serve(t, api.Options{DB: db}, httpapi.ServerOptions{Limits: httpapi.Limits{Timeout: time.Minute}})
	for _, nd := range []ipld.Node{wide, repeated} {
		r := get(t, s, "/ipfs/"+nd.Cid().String()+"?format=car&dag-scope=all&car-dups=y")
		got := 0
		for blocks := mustValue(car.NewBlockReader(bytes.NewReader(r.body)))(t); ; got++ {
			if _, err := blocks.Next(); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
		}
		if r.status != 200 || got < 500 || got > 1000 {
			t.Errorf("status %d, %d blocks", r.status, got)
		}
	}
	if h := get(t, s, "/healthz"); h.status != 200 {
		t.Errorf("afterwards: %d", h.status)
	}
}

// However its nodes are linked, what one answer decodes has an end; a single one of the
// largest is given.
func TestGatewayLinksAreBounded(t *testing.T) {
	t.Parallel()
	n := newIPFSNode(t)
	leaf := n.put(merkledag.NewRawNode([]byte("leaf")))
	top := &merkledag.ProtoNode{}
	nodes := []ipld.Node{leaf}
	for i := range 8 {
		wide := merkledag.NodeWithData(unixfs.FilePBData([]byte{byte(i)}, 1))
		must(t, wide.SetLinks(slices.Repeat([]*ipld.Link{{Size: 1, Cid: leaf.Cid()}}, 40_000)))
		must(t, top.AddNodeLink("", wide))
		nodes = append(nodes, wide)
	}
	top.SetData(unixfs.FilePBData(nil, 8))
	nodes = append(nodes, top)
	db := open(t, pgtest.New(t))
	keep(t, db, func(context.Context, string) (resolver.Document, error) {
		doc := resolver.Document{Bytes: []byte("x"), Source: resolver.SourceIPFS}
		for _, nd := range nodes {
			doc.Blocks = append(doc.Blocks, resolver.Block{Multihash: nd.Cid().Hash(), Data: nd.RawData(),
				Node: nd != leaf})
		}
		return doc, nil
	}, "ipfs://"+top.Cid().String())
	s := serve(t, api.Options{DB: db}, httpapi.ServerOptions{Limits: httpapi.Limits{Timeout: time.Minute}})
	count := func(nd ipld.Node) (got int) {
		t.Helper()
		r := get(t, s, "/ipfs/"+nd.Cid().String()+"?format=car&dag-scope=all")
		if r.status != 200 {
			t.Fatalf("status %d: %.200s", r.status, r.body)
		}
		for blocks := mustValue(car.NewBlockReader(bytes.NewReader(r.body)))(t); ; got++ {
			if _, err := blocks.Next(); err != nil {
				return got
			}
		}
	}
	if got := count(nodes[1]); got != 2 {
		t.Errorf("of one wide file %d blocks, want it and its leaf", got)
	}
	if got := count(top); got < 2 || got >= len(nodes) {
		t.Errorf("of eight wide files %d blocks of %d", got, len(nodes))
	}
}

// What the operator denies is not served, nor is what was dropped.
func TestGatewayDenied(t *testing.T) {
	t.Parallel()
	n := newIPFSNode(t)
	file := n.file([]byte("one "), []byte("two"))
	bad := n.file([]byte("bad "), []byte("worse"))
	shared := unixfs.EmptyDirNode()
	must(t, shared.AddNodeLink("good.json", file))
	must(t, shared.AddNodeLink("bad.json", bad))
	n.put(shared)
	root := "ipfs://" + shared.Cid().String()
	db := open(t, pgtest.New(t))
	kept := keep(t, db, reader(t, n.srv.URL).Fetch, root+"/good.json", root+"/bad.json")
	s := serve(t, api.Options{DB: db})
	status := func(path string) int {
		t.Helper()
		r := get(t, s, "/ipfs/"+path)
		if r.status != 200 && problemOf(t, r).Detail == "" {
			t.Errorf("%s: no detail: %s", path, r.body)
		}
		return r.status
	}
	badBytes := rawCID(kept[root+"/bad.json"])
	leaf := rawCID([]byte("worse"))
	for _, path := range []string{shared.Cid().String(), bad.Cid().String(), badBytes, leaf} {
		if got := status(path + "?format=raw"); got != 200 {
			t.Fatalf("%s before: %d", path, got)
		}
	}
	sum := sha256.Sum256(kept[root+"/bad.json"])
	must(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sum),
		Reason: "stolen"}, false))
	for path, want := range map[string]int{
		badBytes: 410, bad.Cid().String(): 410, leaf: 410, // its parts go with it
		shared.Cid().String(): 200, file.Cid().String(): 200, rawCID([]byte("two")): 200,
	} {
		if got := status(path + "?format=raw"); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if r := get(t, s, "/ipfs/"+badBytes+"?format=raw"); !strings.Contains(string(r.body), "stolen") {
		t.Errorf("no reason in %s", r.body)
	}
	if got := status(bad.Cid().String() + "?format=car"); got != 410 {
		t.Errorf("as a CAR: %d", got)
	}
	must(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenyCID, Value: file.Cid().String(),
		Reason: "withdrawn"}, false))
	if got := status(file.Cid().String() + "?format=raw"); got != 410 {
		t.Errorf("denied by its CID: %d", got)
	}
	must(t, denydb.Undeny(t.Context(), db, repute.DenyCID, file.Cid().String()))
	must(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sum),
		Reason: "stolen"}, true))
	for path, want := range map[string]int{bad.Cid().String(): 404, leaf: 404, shared.Cid().String(): 200,
		file.Cid().String(): 200} {
		if got := status(path + "?format=raw"); got != want {
			t.Errorf("%s, dropped: %d, want %d", path, got, want)
		}
	}
}
