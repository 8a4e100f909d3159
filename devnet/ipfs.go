package devnet

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	chunk "github.com/ipfs/boxo/chunker"
	"github.com/ipfs/boxo/ipld/merkledag"
	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/boxo/ipld/unixfs/importer/balanced"
	"github.com/ipfs/boxo/ipld/unixfs/importer/helpers"
	"github.com/ipfs/go-cid"
	format "github.com/ipfs/go-ipld-format"
)

// PinOptions say how a file becomes IPFS blocks.
type PinOptions struct {
	ChunkSize int64 // bytes per block; 0 means 256 KiB
	V0        bool  // a version 0 CID, Qm…
	Lost      bool  // compute the CID but keep nothing, as a file nobody provides
	Tampered  bool  // let the gateway answer with other bytes than the CID's
}

// defaultChunk is what IPFS nodes use.
const defaultChunk = 256 << 10

// Pin stores a file and returns its CID.
func (d *Documents) Pin(body []byte, o PinOptions) (string, error) {
	dag := d.dag
	if o.Lost {
		dag = forgetful{dag}
	}
	node, err := importFile(dag, body, o)
	if err != nil {
		return "", fmt.Errorf("pin file: %w", err)
	}
	id := node.Cid().String()
	if o.Tampered {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tampered[id] = true
	}
	return id, nil
}

// importFile stores a file in chunks, as the usual programs do, and returns its root. The CID follows from the bytes,
// the chunk size and the version.
func importFile(dag format.DAGService, body []byte, o PinOptions) (format.Node, error) {
	params := helpers.DagBuilderParams{
		Maxlinks:   helpers.DefaultLinksPerBlock,
		RawLeaves:  !o.V0,
		CidBuilder: cid.V1Builder{Codec: cid.DagProtobuf, MhType: 0x12}, // sha2-256
		Dagserv:    dag,
	}
	if o.V0 {
		params.CidBuilder = merkledag.V0CidPrefix()
	}
	if o.ChunkSize == 0 {
		o.ChunkSize = defaultChunk
	}
	builder, err := params.New(chunk.NewSizeSplitter(bytes.NewReader(body), o.ChunkSize))
	if err != nil {
		return nil, err
	}
	return balanced.Layout(builder)
}

// PinDir stores files by name in one directory and returns the directory's CID.
func (d *Documents) PinDir(files map[string][]byte) (string, error) {
	dir := merkledag.NodeWithData(unixfs.FolderPBData())
	if err := dir.SetCidBuilder(merkledag.V1CidPrefix()); err != nil {
		return "", fmt.Errorf("pin directory: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		node, err := importFile(d.dag, files[name], PinOptions{})
		if err != nil {
			return "", fmt.Errorf("pin %s: %w", name, err)
		}
		if err := dir.AddNodeLink(name, node); err != nil {
			return "", fmt.Errorf("link %s: %w", name, err)
		}
	}
	if err := d.dag.Add(context.Background(), dir); err != nil {
		return "", fmt.Errorf("pin directory: %w", err)
	}
	return dir.Cid().String(), nil
}

// forgetful builds a DAG without storing its blocks.
type forgetful struct{ format.DAGService }

// Add drops the node.
func (forgetful) Add(context.Context, format.Node) error { return nil }

// AddMany drops the nodes.
func (forgetful) AddMany(context.Context, []format.Node) error { return nil }

// serveIPFS asks the gateway, and lets it lie about a tampered file.
func (d *Documents) serveIPFS(w http.ResponseWriter, r *http.Request) {
	root, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/ipfs/"), "/")
	d.mu.RLock()
	tampered := d.tampered[root]
	d.mu.RUnlock()
	if tampered {
		w = liar{w}
	}
	d.gateway.ServeHTTP(w, r)
}

// liar changes one bit of everything that is written.
type liar struct{ http.ResponseWriter }

// Write passes on a changed copy.
func (l liar) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if len(b) > 0 {
		b[len(b)-1] ^= 1
	}
	return l.ResponseWriter.Write(b)
}
