package ipfs

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"

	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	format "github.com/ipfs/go-ipld-format"
	mh "github.com/multiformats/go-multihash"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

// blockSource reads stored blocks and documents.
type blockSource interface {
	Block(ctx context.Context, multihash []byte) ([]byte, error)
	ProofBlock(ctx context.Context, multihash []byte) ([]byte, error)
}

// storedBlocks reads the blocks of the database.
type storedBlocks struct{ db *store.DB }

// Block returns a stored block of a document.
func (s storedBlocks) Block(ctx context.Context, multihash []byte) ([]byte, error) {
	return docdb.ReadBlock(ctx, s.db, multihash)
}

// ProofBlock returns a stored block that proves a part of a document.
func (s storedBlocks) ProofBlock(ctx context.Context, multihash []byte) ([]byte, error) {
	return docdb.ProofBlock(ctx, s.db, multihash)
}

// keptBlocks is a read-only boxo blockstore over the stored blocks and documents.
type keptBlocks struct {
	from blockSource
}

// errReadOnly is the answer to what a block store can do besides reading; the library never asks for it here.
var errReadOnly = errors.New("the gateway only reads")

// served reports whether a CID may be read. Raw blocks are served unchanged. The gateway decodes
// dag-pb; only blocks that the resolver decoded are stored. Other codecs are refused, because
// untrusted bytes would reach their decoders.
func served(id cid.Cid) bool {
	p := id.Prefix()
	return p.Codec == cid.Raw || p.Codec == cid.DagProtobuf && p.MhType != mh.IDENTITY
}

// Get returns a block; format.IsNotFound recognizes the error of one that is not stored.
func (k *keptBlocks) Get(ctx context.Context, id cid.Cid) (blocks.Block, error) {
	if !served(id) {
		return nil, format.ErrNotFound{Cid: id}
	}
	b, err := k.read(ctx, id)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, format.ErrNotFound{Cid: id}
	}
	left, ok := ctx.Value(allowanceKey{}).(*allowance)
	if !ok {
		return nil, errors.New("a block is read outside of a request")
	}
	links := 0
	if id.Prefix().Codec == cid.DagProtobuf {
		links = countLinks(b)
	}
	if err := left.spend(len(b), links, err); err != nil {
		return nil, err
	}
	return blocks.NewBlockWithCid(b, id)
}

// countLinks counts the links of a dag-pb node without decoding them: its fields are a tag, a
// length and that many bytes. It stops at the first malformed field.
func countLinks(node []byte) (n int) {
	const data, link = 0x0a, 0x12
	for {
		tag, wide := binary.Uvarint(node) // may be written longer than it need be
		if wide <= 0 || tag != data && tag != link {
			return n
		}
		size, width := binary.Uvarint(node[wide:])
		if width <= 0 || size > uint64(len(node)-wide-width) {
			return n
		}
		if tag == link {
			n++
		}
		node = node[wide+width+int(size):]
	}
}

// read returns a stored block. The bytes of an identity CID are in the CID.
func (k *keptBlocks) read(ctx context.Context, id cid.Cid) ([]byte, error) {
	if id.Prefix().MhType == mh.IDENTITY {
		digest, err := mh.Decode(id.Hash())
		if err != nil {
			return nil, err
		}
		return digest.Digest, nil
	}
	if id.Prefix().Codec == cid.Raw {
		return k.from.Block(ctx, id.Hash())
	}
	return k.from.ProofBlock(ctx, id.Hash())
}

// Has reports whether a block is stored.
func (k *keptBlocks) Has(ctx context.Context, id cid.Cid) (bool, error) {
	_, err := k.Get(ctx, id)
	if format.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// GetSize returns the length of a block.
func (k *keptBlocks) GetSize(ctx context.Context, id cid.Cid) (int, error) {
	b, err := k.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	return len(b.RawData()), nil
}

// Put is refused, like every other change.
func (*keptBlocks) Put(context.Context, blocks.Block) error { return errReadOnly }

// PutMany is refused.
func (*keptBlocks) PutMany(context.Context, []blocks.Block) error { return errReadOnly }

// DeleteBlock is refused.
func (*keptBlocks) DeleteBlock(context.Context, cid.Cid) error { return errReadOnly }

// AllKeysChan is refused: the gateway does not list stored blocks.
func (*keptBlocks) AllKeysChan(context.Context) (<-chan cid.Cid, error) { return nil, errReadOnly }

// allowance is the rest of what one answer may read, and the first error.
type allowance struct {
	blocks, bytes, links atomic.Int64

	failed atomic.Pointer[error]
}

// allowanceKey is the context key of the allowance: blocks are read by goroutines of the library, which pass nothing
// else on.
type allowanceKey struct{}

// newAllowance returns the limits of one answer.
func newAllowance() *allowance {
	a := &allowance{}
	a.blocks.Store(maxGatewayBlocks)
	a.bytes.Store(maxGatewayBytes)
	a.links.Store(maxGatewayLinks)
	return a
}

// spend subtracts one block with its bytes and links, or records the error of reading it. The first
// error is kept.
func (a *allowance) spend(size, links int, err error) error {
	if err == nil && (a.blocks.Add(-1) < 0 || a.bytes.Add(-int64(size)) < 0 || a.links.Add(-int64(links)) < 0) {
		err = repute.Invalid("path", "leads to more than this gateway gives at once", "ask for its parts")
	}
	if err != nil {
		a.failed.CompareAndSwap(nil, &err)
	}
	return err
}

// failure returns why a block could not be read; the gateway's library hides it behind its own
// error.
func (a *allowance) failure() error {
	if err := a.failed.Load(); err != nil {
		return *err
	}
	return nil
}
