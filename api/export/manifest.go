package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/url"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/exportdb"
)

// SetManifest lists the parts of a set as of one block. The files of the parts, one after the other, are the whole set.
type SetManifest struct {
	Set       string     `json:"set"`
	Format    string     `json:"format"`
	ChainID   uint64     `json:"chainId"`
	Block     uint64     `json:"block" doc:"the final block after which the state is shown"`
	BlockHash *string    `json:"blockHash" doc:"null where its header is not stored"`
	BlockTime *time.Time `json:"blockTime"`
	Run       *uint64    `json:"run" doc:"the run that scores are of; null without a closed one"`
	Rows      int64      `json:"rows"`
	Bytes     int64      `json:"bytes"`
	Parts     []SetPart  `json:"parts"`
}

// SetPart is one file of a set: the rows with keys after After, up to To.
type SetPart struct {
	After  string `json:"after" doc:"empty in the first part"`
	To     string `json:"to"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256" doc:"of the file, in hex"`
	URL    string `json:"url" doc:"path and query of the file; it supports byte ranges"`
}

// subject identifies an export.
type subject struct {
	set, format       string
	chain, block, run uint64
}

// url returns the path and query of a part's file.
func (s subject) url(p SetPart) string {
	q := url.Values{"chainId": {strconv.FormatUint(s.chain, 10)}, "block": {strconv.FormatUint(s.block, 10)},
		"format": {s.format}, "to": {p.To}, "sha256": {p.SHA256}}
	if p.After != "" {
		q.Set("after", p.After)
	}
	if s.run != 0 {
		q.Set("run", strconv.FormatUint(s.run, 10))
	}
	return Prefix + s.set + "?" + q.Encode()
}

// manifestOf makes each part once, for its hash and size.
func manifestOf(ctx context.Context, d dataset, from source) (*SetManifest, error) {
	s := from.snapshot
	of := subject{d.Name(), from.format, s.ChainID, s.Block, s.Run}
	m := &SetManifest{Set: of.set, Format: of.format, ChainID: of.chain, Block: of.block, Parts: []SetPart{}}
	if s.Hash != (common.Hash{}) {
		m.BlockHash = new(s.Hash.Hex())
	}
	if !s.Time.IsZero() {
		m.BlockTime = &s.Time
	}
	if s.Run != 0 {
		m.Run = &s.Run
	}
	for after, more := "", true; more; {
		sum := counted{hash: sha256.New()}
		p, err := d.write(ctx, from, exportdb.Range{After: after}, false, &sum)
		if err != nil {
			return nil, err
		}
		if p.rows > 0 {
			part := SetPart{After: after, To: p.last, Rows: p.rows, Bytes: sum.bytes,
				SHA256: hex.EncodeToString(sum.hash.Sum(nil))}
			part.URL = of.url(part)
			m.Parts = append(m.Parts, part)
			m.Rows, m.Bytes = m.Rows+part.Rows, m.Bytes+part.Bytes
		}
		after, more = p.last, p.more
	}
	return m, nil
}

// counted counts and hashes what is written.
type counted struct {
	hash  hash.Hash
	bytes int64
}

// Write never fails.
func (c *counted) Write(b []byte) (int, error) {
	c.bytes += int64(len(b))
	return c.hash.Write(b)
}

// errChanged is returned for a part whose bytes are no longer those of its manifest.
var errChanged = errors.New("what is stored of this block has changed since the manifest was made")

// partOf makes the file of a part again. It returns errChanged when its sha256 is another one.
func partOf(ctx context.Context, d dataset, from source, r exportdb.Range, sum [sha256.Size]byte) ([]byte, error) {
	var out bytes.Buffer
	p, err := d.write(ctx, from, r, false, &out)
	if err != nil {
		return nil, err
	}
	if p.last != r.To || sha256.Sum256(out.Bytes()) != sum {
		return nil, errChanged
	}
	return out.Bytes(), nil
}

// hashOf parses the parameter sha256.
func hashOf(text string) (sum [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		return sum, repute.Invalid("sha256", "is no sha256", "64 hexadecimal digits, as in the manifest")
	}
	return [sha256.Size]byte(b), nil
}
