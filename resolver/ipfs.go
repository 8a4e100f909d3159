package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	car "github.com/ipld/go-car/v2"
	mh "github.com/multiformats/go-multihash"
)

const (
	maxBlockBytes = 2 << 20 // limit of the network's own exchange
	maxBlocks     = 256     // blocks read for one document
	maxDAGBytes   = 8 << 20 // bytes of all its blocks, directories included

	rawType = "application/vnd.ipld.raw"
	carType = "application/vnd.ipld.car"
)

// blockSet has verified blocks by multihash, so that a CIDv0 and a CIDv1 of the same bytes are one
// block.
type blockSet struct {
	mu     sync.Mutex
	byHash map[string][]byte
}

// add adds a block if its bytes match the CID.
func (s *blockSet) add(id cid.Cid, b []byte) error {
	got, err := id.Prefix().Sum(b)
	if err != nil {
		return final(ReasonBadCID, "hash block %s: %w", id, err)
	}
	if !got.Equals(id) {
		return passing(ReasonCIDMismatch, "block %s has other bytes", id)
	}
	s.put(id, b)
	return nil
}

// put adds a block that was verified before.
func (s *blockSet) put(id cid.Cid, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byHash == nil {
		s.byHash = map[string][]byte{}
	}
	s.byHash[string(id.Hash())] = b
}

// get returns a block by the hash of its CID.
func (s *blockSet) get(id cid.Cid) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.byHash[string(id.Hash())]
	return b, ok
}

// size returns the number of blocks.
func (s *blockSet) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byHash)
}

// fetchIPFS asks the gateways one after the other, the next one also when the one
// before takes long; they share the time of one fetch. What a block proves (no such
// path, a directory, too large) is final; what a gateway did wrong is not.
func (c *Client) fetchIPFS(ctx context.Context, ref Ref) (Document, error) {
	root, err := parseCID(ref.CID)
	if err != nil {
		return Document{}, final(ReasonBadCID, "%w", err)
	}
	asked := c.peers.order(time.Now(), ref.Gateway)
	if len(asked) == 0 && root.Prefix().MhType == mh.IDENTITY {
		asked = []*peer{{}} // the CID contains the bytes: no gateway is needed
	}
	if len(asked) == 0 {
		return Document{}, allFailed(nil)
	}
	r := &race{client: c, root: root, path: ref.Path, asked: asked, answers: make(chan answer, len(asked))}
	return r.run(ctx)
}

// aboutGateway reports whether a reason is a failure of a gateway, as opposed to a fact that
// verified blocks prove.
func aboutGateway(r Reason) bool {
	switch r {
	case ReasonTooLarge, ReasonNotFound, ReasonDirectory, ReasonBadDAG, ReasonBadCID:
		return false
	}
	return true
}

// allFailed sums up: wrong bytes are worth more attention than silence.
func allFailed(failures []error) *Error {
	if len(failures) == 0 {
		return final(ReasonNoGateway, "no ipfs gateway is configured")
	}
	e := &Error{Reason: ReasonGateway, Retry: true, Err: errors.Join(failures...)}
	timeouts := 0
	for _, f := range failures {
		var one *Error
		if !errors.As(f, &one) {
			continue
		}
		e.RetryAfter = max(e.RetryAfter, one.RetryAfter)
		switch one.Reason {
		case ReasonCIDMismatch:
			e.Reason = ReasonCIDMismatch
		case ReasonTimeout:
			timeouts++
		}
	}
	if timeouts == len(failures) {
		e.Reason = ReasonTimeout
	}
	return e
}

// fromGateway resolves the document with the blocks of one gateway and those that
// others proved.
//
// The walk is ours, over the decoders that boxo builds on (go-unixfsnode, go-car,
// go-codec-dagpb): boxo's own remote backends give the bytes but not the blocks that
// prove them, try another gateway without saying which one lied, and bound neither
// the number of blocks nor the depth. Its allow-list of hashes is used (strongHashes).
func (c *Client) fromGateway(ctx context.Context, g *peer, root cid.Cid, path string, proven *blockSet) (doc Document,
	err error) {
	defer survive(&err)
	sent := &blockSet{}
	// One CAR contains the whole proof; a single raw block needs none. A gateway without CAR
	// support serves the blocks one by one.
	if p := root.Prefix(); g.base != "" && p.Codec != cid.Raw && p.MhType != mh.IDENTITY {
		if err := c.loadCAR(ctx, g, root, path, sent); isReason(err, ReasonCIDMismatch) {
			return Document{}, err
		}
	}
	w := &walker{limit: c.opts.MaxBytes, load: func(ctx context.Context, id cid.Cid) ([]byte, error) {
		return c.block(ctx, g, id, proven, sent)
	}}
	b, err := w.file(ctx, root, path)
	if err != nil {
		return Document{}, err
	}
	return Document{
		Bytes:    b,
		Root:     w.root,
		Blocks:   w.proof,
		Source:   SourceIPFS,
		FinalURL: storable("ipfs://"+root.String()+escapePath(path), maxURLText),
		CID:      root.String(),
		Gateway:  g.name,
	}, nil
}

// isReason reports whether an error has a reason.
func isReason(err error, r Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == r
}

// loadCAR reads verified blocks from the gateway's CAR for the path. It keeps them also if it
// fails, because a truncated CAR, or one with unrequested blocks, proves nothing against the
// document.
func (c *Client) loadCAR(ctx context.Context, g *peer, root cid.Cid, path string, into *blockSet) error {
	resp, err := c.ask(ctx, g, root.String()+escapePath(path)+"?format=car&dag-scope=entity",
		carType+";version=1;order=dfs;dups=n")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, carType) {
		return passing(ReasonGateway, "not a CAR: %.64q", got)
	}
	return readCAR(io.LimitReader(resp.Body, maxDAGBytes), into)
}

// ask sends a request to a gateway. Its error does not contain the URL, in which an operator's
// gateway may have a key.
func (c *Client) ask(ctx context.Context, g *peer, what, accept string) (*http.Response, error) {
	// A gateway may begin a CAR and then search the network for its first block. The next gateway
	// limits its time, not the pace of its body.
	resp, err := c.get(ctx, request{guard: g.guard, pace: c.opts.Timeout, target: g.base + "/ipfs/" + what,
		header: map[string]string{"Accept": accept}})
	var named *url.Error
	if errors.As(err, &named) {
		err = named.Err
	}
	if err != nil && isLongHeader(err) {
		return nil, passing(ReasonGateway, "%w", err) // the error says nothing about the document
	}
	return resp, err
}

// readCAR reads blocks without verifying them; blockSet.add verifies, and can report wrong bytes.
func readCAR(body io.Reader, into *blockSet) (err error) {
	defer surviveGateway(&err)
	r, err := car.NewBlockReader(body, car.WithTrustedCAR(true),
		car.MaxAllowedHeaderSize(maxHeaderBytes), car.MaxAllowedSectionSize(maxBlockBytes+1024))
	if err != nil {
		return fmt.Errorf("read CAR: %w", err)
	}
	for into.size() < maxBlocks {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = checkStrong(b.Cid())
		}
		if err == nil {
			err = into.add(b.Cid(), b.RawData())
		}
		if err != nil {
			return fmt.Errorf("read CAR: %w", err)
		}
	}
	return nil
}

// block returns one verified block: from the CID itself, from proven or sent blocks, or as a raw
// block from the gateway. The block counts as proven for the next gateway.
func (c *Client) block(ctx context.Context, g *peer, id cid.Cid, proven, sent *blockSet) ([]byte, error) {
	if err := checkStrong(id); err != nil {
		return nil, final(ReasonBadCID, "%w", err)
	}
	if digest, err := mh.Decode(id.Hash()); err == nil && digest.Code == mh.IDENTITY {
		return digest.Digest, nil
	}
	if b, ok := proven.get(id); ok {
		return b, nil
	}
	if b, ok := sent.get(id); ok {
		proven.put(id, b)
		return b, nil
	}
	if g.base == "" {
		return nil, final(ReasonNoGateway, "block %s", id)
	}
	b, err := c.rawBlock(ctx, g, id)
	if err != nil {
		return nil, err
	}
	return b, proven.add(id, b)
}

// rawBlock requests one block from a gateway. The caller compares it with its CID.
func (c *Client) rawBlock(ctx context.Context, g *peer, id cid.Cid) ([]byte, error) {
	resp, err := c.ask(ctx, g, id.String()+"?format=raw", rawType)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := readBody(resp, maxBlockBytes)
	if isReason(err, ReasonTooLarge) || isReason(err, ReasonRatio) || isReason(err, ReasonUnsupportedEncoding) ||
		isReason(err, ReasonBadGzip) {
		// The body of the gateway cannot be read, which says nothing about the document.
		return nil, passing(ReasonGateway, "block %s: %v", id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("block %s: %w", id, err)
	}
	return b, nil
}

// escapePath writes a path below a CID as part of a URL.
func escapePath(path string) string {
	var out strings.Builder
	for _, name := range splitPath(path) {
		out.WriteString("/" + url.PathEscape(name))
	}
	return out.String()
}

// splitPath divides a path into its names.
func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
