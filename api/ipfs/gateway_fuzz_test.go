package ipfs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	mh "github.com/multiformats/go-multihash"

	"repute/internal/httpapi"
)

// hostileBlocks gives the same bytes for every CID, as if they had been kept.
type hostileBlocks []byte

func (h hostileBlocks) Block(context.Context, []byte) ([]byte, error)      { return h, nil }
func (h hostileBlocks) ProofBlock(context.Context, []byte) ([]byte, error) { return h, nil }

// The library walks kept blocks outside of the request's own goroutine, where nobody
// catches a panic: whatever the bytes are, there must be none, and an end.
func FuzzGateway(f *testing.F) {
	hash, err := mh.Sum([]byte("x"), mh.SHA2_256, -1)
	if err != nil {
		f.Fatal(err)
	}
	id := cid.NewCidV1(cid.DagProtobuf, hash)
	shard, err := unixfs.HAMTShardData([]byte{0xff}, 8, mh.MURMUR3X64_64)
	if err != nil {
		f.Fatal(err)
	}
	// Nodes that contain themselves: no hash allows it, but the bytes behind one do not
	// matter here.
	for _, data := range [][]byte{unixfs.FilePBData([]byte("x"), 10), unixfs.FolderPBData(), shard, nil} {
		for _, name := range []string{"", "a", "0", "0a"} {
			nd := merkledag.NodeWithData(data)
			if err := nd.AddRawLink(name, &ipld.Link{Name: name, Size: 1 << 60, Cid: id}); err != nil {
				f.Fatal(err)
			}
			f.Add(nd.RawData(), "a", "all")
			f.Add(nd.RawData(), "", "entity")
			f.Add(nd.RawData(), "a/a", "block")
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, path, scope string) {
		g, err := newIPFSGateway(hostileBlocks(b), 15*time.Second, func(context.Context, error) *httpapi.ErrorBody {
			return httpapi.NewError(http.StatusNotFound, "", "", "")
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		u := &url.URL{Path: gatewayPath + id.String() + "/" + path,
			RawQuery: url.Values{"format": {"car"}, "dag-scope": {scope}}.Encode()}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		r.URL = u
		g.ServeHTTP(httptest.NewRecorder(), r)
		if ctx.Err() != nil {
			t.Errorf("no end within a minute")
		}
	})
}
