package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ipfs/go-cid"
	car "github.com/ipld/go-car/v2"
	mh "github.com/multiformats/go-multihash"
)

const (
	maxBlockBytes = 2 << 20 // what the network itself exchanges
	maxBlocks     = 256     // blocks read for one document
	maxDAGBytes   = 8 << 20 // bytes of all its blocks, directories included

	rawType = "application/vnd.ipld.raw"
	carType = "application/vnd.ipld.car"
)

// blockSet holds verified blocks by multihash, so that a CIDv0 and a CIDv1 of the
// same bytes are one block. It outlives a gateway: what one proved, the next need
// not send again.
type blockSet map[string][]byte

// add keeps a block if its bytes are the CID's.
func (s blockSet) add(id cid.Cid, b []byte) error {
	got, err := id.Prefix().Sum(b)
	if err != nil {
		return final(ReasonBadCID, "hash block %s: %w", id, err)
	}
	if !got.Equals(id) {
		return passing(ReasonCIDMismatch, "block %s has other bytes", id)
	}
	s[string(id.Hash())] = b
	return nil
}

// fetchIPFS asks one gateway after the other, each for at most its part of the time
// that is left. What a block proves (no such path,
// a directory, too large) is final; what a gateway did wrong is not.
func (c *Client) fetchIPFS(ctx context.Context, ref Ref) (Document, error) {
	root, err := parseCID(ref.CID)
	if err != nil {
		return Document{}, final(ReasonBadCID, "%w", err)
	}
	gateways := c.opts.Gateways
	if ref.Gateway != "" && !slices.Contains(gateways, ref.Gateway) {
		gateways = append(slices.Clone(gateways), ref.Gateway)
	}
	if len(gateways) == 0 && root.Prefix().MhType == mh.IDENTITY {
		gateways = []string{""} // the CID is the data: nobody need be asked
	}
	have := blockSet{}
	failures := make([]error, 0, len(gateways))
	end := time.Now().Add(c.opts.Timeout)
	for i, gateway := range gateways {
		part := time.Until(end) / time.Duration(len(gateways)-i)
		b, err := c.fromGateway(ctx, part, gateway, root, ref.Path, have)
		if err == nil {
			return ipfsDocument(root, ref.Path, gateway, b), nil
		}
		named := networkError(ctx, err)
		if !named.Retry && named.Status == 0 && !aboutGateway(named.Reason) || named.Reason == ReasonCanceled {
			return Document{}, named
		}
		failures = append(failures, fmt.Errorf("%s: %w", gateway, named))
	}
	return Document{}, allFailed(failures)
}

func ipfsDocument(root cid.Cid, path, gateway string, b []byte) Document {
	return Document{
		Bytes:    b,
		Source:   SourceIPFS,
		FinalURL: storable("ipfs://"+root.String()+escapePath(path), maxURLText),
		CID:      root.String(),
		Gateway:  gateway,
	}
}

// aboutGateway tells reasons that name a gateway's fault from those the verified
// blocks prove.
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

// fromGateway resolves the document with the blocks of one gateway, in limited time.
func (c *Client) fromGateway(ctx context.Context, limit time.Duration, gateway string, root cid.Cid, path string, have blockSet) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// One CAR carries the whole proof; a lone raw block needs none. A gateway
	// without CAR support still serves the blocks one by one.
	if p := root.Prefix(); p.Codec != cid.Raw && p.MhType != mh.IDENTITY {
		blocks, err := c.loadCAR(ctx, gateway, root, path)
		if isReason(err, ReasonCIDMismatch) {
			return nil, err
		}
		maps.Copy(have, blocks)
	}
	w := &walker{limit: c.opts.MaxBytes, load: func(ctx context.Context, id cid.Cid) ([]byte, error) {
		return c.block(ctx, gateway, id, have)
	}}
	return w.file(ctx, root, path)
}

func isReason(err error, r Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == r
}

// loadCAR reads verified blocks out of the gateway's CAR for the path. It gives
// what it read also when it fails: a CAR that is cut short or floods us with blocks
// nobody asked for is no proof against the document.
func (c *Client) loadCAR(ctx context.Context, gateway string, root cid.Cid, path string) (blockSet, error) {
	target := gateway + "/ipfs/" + root.String() + escapePath(path)
	resp, err := c.get(ctx, target+"?format=car&dag-scope=entity",
		map[string]string{"Accept": carType + ";version=1;order=dfs;dups=n"})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, carType) {
		return nil, passing(ReasonGateway, "not a CAR: %.64q", got)
	}
	return readCAR(io.LimitReader(resp.Body, maxDAGBytes))
}

// readCAR leaves the verifying to blockSet.add, which can say that bytes are wrong.
func readCAR(body io.Reader) (blockSet, error) {
	r, err := car.NewBlockReader(body, car.WithTrustedCAR(true),
		car.MaxAllowedHeaderSize(maxHeaderBytes), car.MaxAllowedSectionSize(maxBlockBytes+1024))
	if err != nil {
		return nil, fmt.Errorf("read CAR: %w", err)
	}
	blocks := blockSet{}
	for len(blocks) < maxBlocks {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return blocks, nil
		}
		if err == nil {
			err = checkStrong(b.Cid())
		}
		if err == nil {
			err = blocks.add(b.Cid(), b.RawData())
		}
		if err != nil {
			return blocks, fmt.Errorf("read CAR: %w", err)
		}
	}
	return blocks, nil
}

// block gives one verified block: from the CID itself, from what is known, or as a
// raw block from the gateway.
func (c *Client) block(ctx context.Context, gateway string, id cid.Cid, have blockSet) ([]byte, error) {
	if err := checkStrong(id); err != nil {
		return nil, final(ReasonBadCID, "%w", err)
	}
	if digest, err := mh.Decode(id.Hash()); err == nil && digest.Code == mh.IDENTITY {
		return digest.Digest, nil
	}
	if b, ok := have[string(id.Hash())]; ok {
		return b, nil
	}
	if gateway == "" {
		return nil, final(ReasonNoGateway, "block %s", id)
	}
	resp, err := c.get(ctx, gateway+"/ipfs/"+id.String()+"?format=raw", map[string]string{"Accept": rawType})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := readBody(resp, maxBlockBytes)
	var refused *Error
	if errors.As(err, &refused) { // it is the gateway's body that is too long, not the document
		return nil, passing(ReasonGateway, "block %s: %v", id, refused)
	}
	if err != nil {
		return nil, fmt.Errorf("block %s: %w", id, err)
	}
	return b, have.add(id, b)
}

func escapePath(path string) string {
	var out strings.Builder
	for _, name := range splitPath(path) {
		out.WriteString("/" + url.PathEscape(name))
	}
	return out.String()
}

func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
