package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-unixfsnode/data"
	"github.com/ipfs/go-unixfsnode/hamt"
	dagpb "github.com/ipld/go-codec-dagpb"
	"github.com/ipld/go-ipld-prime"
	cidlink "github.com/ipld/go-ipld-prime/linking/cid"
	"github.com/ipld/go-ipld-prime/schema"
	mh "github.com/multiformats/go-multihash"
)

const maxDepth = 32

// codecJSON and the like are blocks that are documents as they stand.
const (
	codecJSON    = 0x0200
	codecDagJSON = 0x0129
)

// walker reads a UnixFS file from verified blocks. It keeps only the document in memory and reads
// at most maxBlocks blocks, including repetitions.
type walker struct {
	load  func(context.Context, cid.Cid) ([]byte, error)
	limit int64
	loads int
	bytes int
	root  []byte         // multihash of the file, once its path is walked
	proof []Block        // loaded blocks, each once
	seen  map[string]int // where in proof a multihash is
}

// pbNode is one decoded dag-pb block. kind is -1 when it is no UnixFS node.
type pbNode struct {
	pb   dagpb.PBNode
	fs   data.UnixFSData
	kind int64
}

// survive turns a panic into bad_dag: a panic of a library's decoder on untrusted blocks is a fault of the document and
// must not end the process.
func survive(err *error) {
	if r := recover(); r != nil {
		*err = final(ReasonBadDAG, "decoder gave up: %v", r)
	}
}

// surviveGateway is survive for unverified bytes, which say nothing about the document.
func surviveGateway(err *error) {
	if r := recover(); r != nil {
		*err = passing(ReasonGateway, "decoder gave up: %v", r)
	}
}

// file resolves the path below root and reads the file there.
func (w *walker) file(ctx context.Context, root cid.Cid, path string) ([]byte, error) {
	id := root
	for _, name := range splitPath(path) {
		var err error
		if id, err = w.child(ctx, id, name); err != nil {
			return nil, err
		}
	}
	w.root = id.Hash()
	return w.read(ctx, id, nil, 0)
}

// block loads a block and counts it against the limits of one document.
func (w *walker) block(ctx context.Context, id cid.Cid) ([]byte, error) {
	b, err := w.load(ctx, id)
	if err != nil {
		return nil, err
	}
	w.loads, w.bytes = w.loads+1, w.bytes+len(b)
	if w.loads > maxBlocks || w.bytes > maxDAGBytes {
		return nil, final(ReasonTooLarge, "more than %d blocks or %d bytes", maxBlocks, maxDAGBytes)
	}
	w.keep(id, b)
	return b, nil
}

// keep adds a block to the proof.
func (w *walker) keep(id cid.Cid, b []byte) {
	hash, node := string(id.Hash()), id.Prefix().Codec == cid.DagProtobuf
	if id.Prefix().MhType == mh.IDENTITY {
		return
	}
	if at, again := w.seen[hash]; again {
		w.proof[at].Node = w.proof[at].Node || node
		return
	}
	if w.seen == nil {
		w.seen = map[string]int{}
	}
	w.seen[hash] = len(w.proof)
	w.proof = append(w.proof, Block{CID: id.String(), Multihash: id.Hash(), Data: b, Node: node})
}

// node loads and decodes a block.
func (w *walker) node(ctx context.Context, id cid.Cid) (pbNode, error) {
	b, err := w.block(ctx, id)
	if err != nil {
		return pbNode{}, err
	}
	return decodeNode(id, b)
}

// decodeNode decodes a dag-pb block of UnixFS. A panic of the decoder is an error.
func decodeNode(id cid.Cid, b []byte) (n pbNode, err error) {
	defer survive(&err)
	builder := dagpb.Type.PBNode.NewBuilder()
	if err := dagpb.DecodeBytes(builder, b); err != nil {
		return pbNode{}, final(ReasonBadDAG, "block %s: %w", id, err)
	}
	pb, ok := builder.Build().(dagpb.PBNode)
	if !ok || !pb.FieldData().Exists() {
		return pbNode{}, final(ReasonBadDAG, "block %s is no UnixFS node", id)
	}
	fs, err := data.DecodeUnixFSData(pb.FieldData().Must().Bytes())
	if err != nil {
		return pbNode{}, final(ReasonBadDAG, "block %s: %w", id, err)
	}
	return pbNode{pb: pb, fs: fs, kind: fs.FieldDataType().Int()}, nil
}

// child finds a name in a directory, plain or sharded.
func (w *walker) child(ctx context.Context, dir cid.Cid, name string) (cid.Cid, error) {
	if dir.Prefix().Codec != cid.DagProtobuf {
		return cid.Undef, final(ReasonNotFound, "%q below a file", name)
	}
	n, err := w.node(ctx, dir)
	if err != nil {
		return cid.Undef, err
	}
	switch n.kind {
	case data.Data_HAMTShard:
		return w.shardChild(ctx, n, name)
	case data.Data_Directory:
		for it := n.pb.FieldLinks().Iterator(); !it.Done(); {
			_, link := it.Next()
			if link.FieldName().Exists() && link.FieldName().Must().String() == name {
				return linkCID(link)
			}
		}
	}
	return cid.Undef, final(ReasonNotFound, "no %q in %s", name, dir)
}

// shardChild finds a child in a sharded directory with the library; its blocks are loaded and
// counted like all others.
func (w *walker) shardChild(ctx context.Context, n pbNode, name string) (id cid.Cid, err error) {
	defer survive(&err)
	var failed error
	lsys := cidlink.DefaultLinkSystem()
	lsys.TrustedStorage = true // blocks are verified when they are loaded
	lsys.StorageReadOpener = func(lc ipld.LinkContext, l ipld.Link) (io.Reader, error) {
		link, ok := l.(cidlink.Link)
		if !ok {
			return nil, fmt.Errorf("link %s", l)
		}
		b, err := w.block(lc.Ctx, link.Cid)
		if err != nil {
			failed = err
		}
		return bytes.NewReader(b), err
	}
	shard, err := hamt.NewUnixFSHAMTShard(ctx, n.pb, n.fs, &lsys)
	if err != nil {
		return cid.Undef, final(ReasonBadDAG, "sharded directory: %w", err)
	}
	found, err := shard.LookupByString(name)
	var missing schema.ErrNoSuchField
	switch {
	case failed != nil:
		return cid.Undef, failed
	case errors.As(err, &missing):
		return cid.Undef, final(ReasonNotFound, "no %q in the sharded directory", name)
	case err != nil:
		return cid.Undef, final(ReasonBadDAG, "sharded directory: %w", err)
	}
	l, err := found.AsLink()
	if err != nil {
		return cid.Undef, final(ReasonBadDAG, "sharded directory: %w", err)
	}
	return toCID(l)
}

// linkCID returns the CID of a link.
func linkCID(l dagpb.PBLink) (cid.Cid, error) { return toCID(l.FieldHash().Link()) }

// toCID returns the CID of a link of the data model.
func toCID(l ipld.Link) (cid.Cid, error) {
	link, ok := l.(cidlink.Link)
	if !ok {
		return cid.Undef, final(ReasonBadDAG, "link %s", l)
	}
	return link.Cid, nil
}

// read appends the file's own bytes and then its children's, in order.
func (w *walker) read(ctx context.Context, id cid.Cid, out []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, final(ReasonBadDAG, "deeper than %d levels", maxDepth)
	}
	switch codec := id.Prefix().Codec; codec {
	case cid.DagProtobuf:
	case cid.Raw, codecJSON, codecDagJSON:
		b, err := w.block(ctx, id)
		if err != nil {
			return nil, err
		}
		return bounded(append(out, b...), w.limit)
	default:
		return nil, final(ReasonBadCID, "codec 0x%x is no file", codec)
	}
	n, err := w.node(ctx, id)
	if err != nil {
		return nil, err
	}
	switch n.kind {
	case data.Data_File, data.Data_Raw:
	case data.Data_Directory, data.Data_HAMTShard:
		return nil, final(ReasonDirectory, "%s is a directory", id)
	default:
		return nil, final(ReasonBadDAG, "UnixFS type %d is no file", n.kind)
	}
	return w.readFile(ctx, n, out, depth)
}

// readFile appends the bytes of a file and of the blocks below it to out, up to the limit.
func (w *walker) readFile(ctx context.Context, n pbNode, out []byte, depth int) ([]byte, error) {
	if n.fs.FieldData().Exists() {
		out = append(out, n.fs.FieldData().Must().Bytes()...)
	}
	out, err := bounded(out, w.limit)
	for it := n.pb.FieldLinks().Iterator(); err == nil && !it.Done(); {
		_, link := it.Next()
		var next cid.Cid
		if next, err = linkCID(link); err == nil {
			out, err = w.read(ctx, next, out, depth+1)
		}
	}
	return out, err
}
