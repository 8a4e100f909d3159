package documents

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"repute"
	"repute/internal/sitetest"
	"repute/resolver"
)

// hostileSite answers as nobody should. zeros are many of them, compressed.
func hostileSite(zeros []byte, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/bomb":
		w.Header().Set("Content-Encoding", "gzip")
		for {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	case "/huge":
		w.Header().Set("Content-Length", fmt.Sprint(10<<30))
		for chunk := make([]byte, 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	case "/loris":
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond) // as slowly as it likes
		}
	case "/again":
		http.Redirect(w, r, "/again", http.StatusFound)
	case "/metadata":
		http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusFound)
	case "/self":
		http.Redirect(w, r, "https://[::1]/", http.StatusFound)
	case "/name":
		fmt.Fprint(w, `{"name":"`, strings.Repeat("n", 10<<20), `"}`)
	default:
		fmt.Fprint(w, `<!DOCTYPE html><script>alert(1)</script>`)
	}
}

// links is a file of so many parts, all the same.
func links(t *testing.T, n int) *merkledag.ProtoNode {
	t.Helper()
	node := merkledag.NodeWithData(unixfs.FilePBData(nil, 0))
	empty := merkledag.NewRawNode(nil).Cid()
	if err := node.SetLinks(slices.Repeat([]*ipld.Link{{Size: 1, Cid: empty}}, n)); err != nil {
		t.Fatal(err)
	}
	return node
}

// blockServer is a gateway that gives these bytes, and empty ones for all other CIDs.
func blockServer(t *testing.T, blocks map[cid.Cid][]byte) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") != "raw" {
			http.Error(w, "no", http.StatusNotAcceptable)
			return
		}
		id, _ := cid.Decode(strings.TrimPrefix(r.URL.Path, "/ipfs/"))
		_, _ = w.Write(blocks[id])
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Each way to do harm with a document ends as a recorded reason, or as a problem of the
// document, and none keeps the next agent from being read.
func TestHostileDocumentsAreRecorded(t *testing.T) {
	t.Parallel()
	var zeros bytes.Buffer
	zw := gzip.NewWriter(&zeros)
	if _, err := zw.Write(make([]byte, 1<<20)); err != nil || zw.Close() != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		hostileSite(zeros.Bytes(), w, r)
	}))
	t.Cleanup(s.Close)
	many, more := links(t, 45_000), links(t, 200_000)
	cyclic := links(t, 1) // served for the CID of another, which it could name
	id := merkledag.NodeWithData([]byte("a")).Cid()
	nothing := merkledag.NodeWithData(unixfs.FilePBData(nil, 0))
	gateway := blockServer(t, map[cid.Cid][]byte{nothing.Cid(): nothing.RawData(), many.Cid(): many.RawData(),
		more.Cid(): more.RawData(), id: cyclic.RawData()})
	const data = "data:application/json,"
	const rest = `,"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","description":"d","services":[]}`
	const script = `<script>alert(1)</script>`
	cases := []struct {
		uri    string
		reason resolver.Reason // why it was not read
		code   string          // what is wrong with what was read
	}{
		{s.URL + "/bomb", resolver.ReasonRatio, ""},
		{s.URL + "/huge", resolver.ReasonTooLarge, ""},
		{s.URL + "/name", resolver.ReasonTooLarge, ""},
		{s.URL + "/loris", resolver.ReasonTooSlow, ""},
		{s.URL + "/again", resolver.ReasonRedirects, ""},
		{s.URL + "/metadata", resolver.ReasonBlockedAddress, ""},
		{s.URL + "/self", resolver.ReasonBlockedAddress, ""},
		{"https://flips.example.com/", resolver.ReasonBlockedAddress, ""}, // to 127.0.80.4
		{"ipfs://" + id.String(), resolver.ReasonCIDMismatch, ""},
		{"ipfs://" + many.Cid().String(), resolver.ReasonTooLarge, ""},
		{"ipfs://" + more.Cid().String(), resolver.ReasonGateway, ""},
		{"ipfs://" + nothing.Cid().String(), "", "EA001"},
		{"ipfs://" + merkledag.NewRawNode(nil).Cid().String(), "", "EA001"},
		{"data:application/json;enc=gzip;base64,H4sIAAAA", resolver.ReasonBadGzip, ""},
		{s.URL + "/", "", "EA501"},
		{data + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), "", "EA502"},
		{data + `{"name":"a","name":"b"` + rest, "", "WA510"},
		{data + `{"name":"a","x":NaN` + rest, "", "EA500"},
		{data + `{"name":"\ud800"` + rest, "", "WA511"},
		{data + `{"name":"\u0000"` + rest, "", "WA512"},
		{data + `{"name":"` + script + `","image":"data:image/svg+xml,<svg onload=alert(1)>"` + rest, "", ""},
		{data + goodFile, "", ""},
	}
	var uris []string
	for _, c := range cases {
		uris = append(uris, c.uri)
	}
	host, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := resolver.New(resolver.Options{Timeout: 30 * time.Second, Gateways: []string{gateway},
		GuardOptions: resolver.GuardOptions{
			AllowHosts: []string{host.Host}, AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
			Resolver: sitetest.Names(t, proofAddress)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	db := openStore(t)
	c := register(t, db, uris...)
	defer running(t, New(db, client, Options{Sweep: 20 * time.Millisecond, Upkeep: 20 * time.Millisecond}))()
	for i, want := range cases {
		var d repute.Document
		eventually(t, fmt.Sprintf("%.60s is read", want.uri), func() bool {
			d = document(t, db, c, uint64(i))
			return d.Status != repute.DocumentPending
		})
		if d.Reason != string(want.reason) {
			t.Errorf("%.60s: %q (%s), want %q", want.uri, d.Reason, d.Detail, want.reason)
		}
		if want.code != "" && !slices.ContainsFunc(d.Problems,
			func(p repute.Problem) bool { return p.Code == want.code }) {
			t.Errorf("%.60s: %v, want %s", want.uri, d.Problems, want.code)
		}
		if read := d.Registration != nil; read != (want.reason == "" && !strings.HasPrefix(want.code, "E")) {
			t.Errorf("%.60s: registration %+.100v", want.uri, d.Registration)
		}
	}
	if d := document(t, db, c, uint64(len(cases)-2)); d.Registration == nil || d.Registration.Name != script {
		t.Errorf("text is data, and came out as %+v", d.Registration)
	}
}
