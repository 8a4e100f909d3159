package resolver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	mh "github.com/multiformats/go-multihash"
)

// liar answers every raw block with the same bytes, and has no CARs.
func liar(b []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "raw" {
			http.Error(w, "no", http.StatusNotAcceptable)
			return
		}
		_, _ = w.Write(b)
	})
}

// linked is a UnixFS node with so many links to one CID.
func linked(t *testing.T, data []byte, name string, to cid.Cid, n int) *merkledag.ProtoNode {
	t.Helper()
	nd := merkledag.NodeWithData(data)
	nd.SetLinks(slices.Repeat([]*ipld.Link{{Name: name, Size: 1, Cid: to}}, n))
	return nd
}

// Blocks that refer to each other cannot have the hashes they claim: a host that serves them is caught at the first.
func TestIPFSCycle(t *testing.T) {
	hash, err := mh.Sum([]byte("a"), mh.SHA2_256, -1)
	if err != nil {
		t.Fatal(err)
	}
	id := cid.NewCidV1(cid.DagProtobuf, hash)
	for name, data := range map[string][]byte{"file": unixfs.FilePBData(nil, 1), "directory": unixfs.FolderPBData()} {
		c, gateways := gatewayClient(t, Options{}, liar(linked(t, data, "a", id, 1).RawData()))
		_, err := c.Fetch(t.Context(), "ipfs://"+id.String()+"/a")
		if reasonOf(err) != ReasonCIDMismatch || !strings.Contains(err.Error(), gateways[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A DAG that doubles on every level has 2^n leaves out of n blocks.
func TestIPFSDoublingDAG(t *testing.T) {
	n := newNode(t)
	nd := n.put(merkledag.NodeWithData(unixfs.FilePBData(nil, 0)))
	for range maxDepth - 2 {
		nd = n.put(linked(t, unixfs.FilePBData(nil, 0), "", nd.Cid(), 2))
	}
	c, _ := gatewayClient(t, Options{}, n.handler())
	if _, err := c.Fetch(t.Context(), "ipfs://"+nd.Cid().String()); reasonOf(err) != ReasonTooLarge {
		t.Errorf("got %v", err)
	}
}

// A million links do not fit into a block; as many as fit end at the bound of blocks.
func TestIPFSMillionLinks(t *testing.T) {
	n := newNode(t)
	empty := n.raw(nil).Cid()
	const fit = 45_000 // about 2 MB
	file, dir := n.put(linked(t, unixfs.FilePBData(nil, 0), "", empty, fit)),
		n.put(linked(t, unixfs.FolderPBData(), "a", empty, fit-5000))
	huge := linked(t, unixfs.FilePBData(nil, 0), "", empty, 1_000_000)
	n.put(huge)
	c, _ := gatewayClient(t, Options{}, n.handler())
	for path, want := range map[string]Reason{
		file.Cid().String():        ReasonTooLarge,
		dir.Cid().String() + "/b":  ReasonNotFound,
		dir.Cid().String():         ReasonDirectory,
		huge.Cid().String():        ReasonGateway, // nobody can prove a block that large
		huge.Cid().String() + "/x": ReasonGateway,
	} {
		if _, err := c.Fetch(t.Context(), "ipfs://"+path); reasonOf(err) != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// An identity CID carries its block: it needs no gateway and is bounded by itself.
func TestIPFSIdentity(t *testing.T) {
	of := func(codec uint64, b []byte) string {
		t.Helper()
		id, err := cid.V1Builder{Codec: codec, MhType: mh.IDENTITY}.Sum(b)
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	leaf := cid.MustParse(of(cid.Raw, []byte("in the leaf")))
	away := cid.MustParse(cidRaw)
	c := client(t, Options{})
	for _, want := range []struct {
		id, text string
		reason   Reason
	}{
		{of(cid.Raw, []byte(sample)), sample, ""},
		{of(cid.DagProtobuf, linked(t, unixfs.FilePBData(nil, 11), "", leaf, 1).RawData()), "in the leaf", ""},
		{of(cid.DagProtobuf, linked(t, unixfs.FilePBData(nil, 1), "", away, 1).RawData()), "", ReasonGateway},
		{of(cid.DagProtobuf, []byte("\x12\xff\xff\xff")), "", ReasonBadDAG},
		{of(cid.Raw, bytes.Repeat([]byte("x"), 129)), "", ReasonBadCID},
	} {
		doc, err := c.Fetch(t.Context(), "ipfs://"+want.id)
		if string(doc.Bytes) != want.text || reasonOf(err) != want.reason || doc.Blocks != nil {
			t.Errorf("%.20s…: %q, %v, want %q", want.id, doc.Bytes, err, want.reason)
		}
	}
}

// Blocks that decoders choke on are the document's fault, not the process's.
func TestIPFSMalformedBlocks(t *testing.T) {
	shard, err := unixfs.HAMTShardData([]byte{0xff, 0xff}, 1<<40, mh.MURMUR3X64_64)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	to := n.raw(nil).Cid()
	for name, nd := range map[string]*merkledag.ProtoNode{
		"no unixfs":      linked(t, []byte{0xff}, "a", to, 1),
		"huge fanout":    linked(t, shard, "a", to, 3),
		"nameless shard": linked(t, shard, "", to, 3),
		"unknown type":   linked(t, []byte{0x08, 0x7f}, "a", to, 1),
		"no type":        linked(t, []byte{0x18, 0x05}, "a", to, 1),
		"endless varint": linked(t, bytes.Repeat([]byte{0xff}, 64), "a", to, 1),
		"symlink":        linked(t, []byte{0x08, 0x04, 0x12, 0x01, '/'}, "a", to, 1),
		"metadata":       linked(t, []byte{0x08, 0x03}, "a", to, 1),
		"sizes that lie": linked(t, []byte{0x08, 0x02, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x20,
			0x01},
			"a", to, 1),
		"data that is not": linked(t, []byte{0x08, 0x02, 0x12, 0x7f}, "a", to, 1),
	} {
		id, err := nd.Cid().Prefix().Sum(nd.RawData())
		if err != nil {
			t.Fatal(err)
		}
		c, _ := gatewayClient(t, Options{}, liar(nd.RawData()))
		for _, path := range []string{"", "/a", "/b"} {
			doc, err := c.Fetch(t.Context(), "ipfs://"+id.String()+path)
			if reason := reasonOf(err); err == nil || reason == ReasonNetwork || reason == ReasonTimeout {
				t.Errorf("%s%s: %q, %v", name, path, doc.Bytes, err)
			}
		}
	}
}

// With plain http allowed a redirect still cannot reach the inside.
func TestRedirectsOverHTTP(t *testing.T) {
	var to string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer front.Close()
	c := client(t, Options{GuardOptions: GuardOptions{AllowHTTP: true,
		AllowHosts: []string{strings.TrimPrefix(front.URL, "http://")}}})
	for target, want := range map[string]Reason{
		"http://169.254.169.254/latest/meta-data/": ReasonBlockedAddress,
		"http://[::1]/":                    ReasonBlockedAddress,
		"http://[::ffff:169.254.169.254]/": ReasonBlockedAddress,
		"http://[fd00:ec2::254]/":          ReasonBlockedAddress,
		"http://0.0.0.0/":                  ReasonBlockedAddress,
		"http://2852039166/":               ReasonBlockedHost, // 169.254.169.254 in one number
		"http://0xa9fea9fe/":               ReasonBlockedHost,
		"http://127.1/":                    ReasonBlockedHost,
		"http://metadata.google.internal/": ReasonBlockedHost,
		"http://user@example.com/":         ReasonBlockedHost,
		"gopher://example.com/":            ReasonUnsupportedScheme,
	} {
		to = target
		if _, err := c.Fetch(t.Context(), front.URL); reasonOf(err) != want {
			t.Errorf("%s: got %v, want %s", target, err, want)
		}
	}
}

// A name that is public when asked first and private when dialled leads nowhere, also
// behind a redirect.
func TestRedirectToRebindingName(t *testing.T) {
	var hits atomic.Int64
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer inside.Close()
	port := netip.MustParseAddrPort(inside.Listener.Addr().String()).Port()
	front := httptest.NewTLSServer(http.RedirectHandler(fmt.Sprintf("https://flip.example.com:%d/", port),
		http.StatusFound))
	defer front.Close()
	frontURL, _ := url.Parse(front.URL)
	c := client(t, Options{GuardOptions: GuardOptions{AllowHosts: []string{frontURL.Host}, Ports: []uint16{port},
		RootCAs:  roots(front),
		Resolver: dnsServer(t, "127.0.0.1")}})
	if _, err := c.Fetch(t.Context(), front.URL); reasonOf(err) != ReasonBlockedAddress || hits.Load() != 0 {
		t.Errorf("%v, %d hits", err, hits.Load())
	}
}

// No server gets a client to speak HTTP/2, in which it could send frames without end that
// carry nothing.
func TestFetchSpeaksHTTP1Alone(t *testing.T) {
	var spoken atomic.Value
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		spoken.Store(r.Proto)
		fmt.Fprint(w, sample)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := client(t, Options{GuardOptions: GuardOptions{AllowPrefixes: loopback, RootCAs: roots(srv)}})
	if _, err := c.Fetch(t.Context(), srv.URL); err != nil || spoken.Load() != "HTTP/1.1" {
		t.Errorf("spoke %v: %v", spoken.Load(), err)
	}
}
