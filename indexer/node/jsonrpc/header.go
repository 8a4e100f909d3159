package jsonrpc

import (
	"bytes"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"
)

// Header is a block header as a node returns it. Hash is the node's statement; it differs from the
// recomputed hash on chains with other header fields.
type Header struct {
	Number    *uint64
	Hash      *common.Hash
	Parent    *common.Hash
	Timestamp *uint64
	Bloom     *types.Bloom
	Root      *common.Hash // of the receipts
	Txs       []common.Hash
	Own       common.Hash // hash of all fields, as Ethereum encodes a header
	Unknown   bool        // there is a member that no header of Ethereum has
}

// UnmarshalJSON implements json.Unmarshaler, for connections whose answers are not
// read token by token.
func (h *Header) UnmarshalJSON(raw []byte) error {
	r := objectReader{dec: jsontext.NewDecoder(bytes.NewReader(raw), lenient()...)}
	read, err := r.header()
	if err == nil && read != nil {
		*h = *read
	}
	return err
}

// header reads a block's header, nil for null.
func (r *objectReader) header() (*Header, error) {
	if r.dec.PeekKind() == 'n' {
		_, err := r.dec.ReadToken()
		return nil, err
	}
	h := &headerFields{whole: types.Header{Difficulty: new(big.Int), Number: new(big.Int)}}
	err := r.object(func(name []byte) error { return r.headerMember(h, name) })
	return h.header(), err
}

// headerFields is a header while it is read.
type headerFields struct {
	whole        types.Header
	number, time *uint64
	hash         common.Hash
	txs          []common.Hash
	has          int
	unknown      bool
}

// Flags for the members that a header has.
const (
	hasHash = 1 << iota
	hasParent
	hasBloom
	hasRoot
)

// headerMember reads one member. Only the members that the index stores must be readable, because a
// chain may encode the others in its own way.
func (r *objectReader) headerMember(h *headerFields, name []byte) (err error) {
	switch string(name) {
	case `"number"`:
		h.number, err = r.maybeQuantity()
	case `"timestamp"`:
		h.time, err = r.maybeQuantity()
	case `"hash"`:
		err = r.fixed(h.hash[:], hasHash, &h.has)
	case `"parentHash"`:
		err = r.fixed(h.whole.ParentHash[:], hasParent, &h.has)
	case `"logsBloom"`:
		err = r.fixed(h.whole.Bloom[:], hasBloom, &h.has)
	case `"transactions"`:
		h.txs, err = r.hashList()
	default:
		err = r.otherMember(h, string(name)) // the bytes of the name are gone with the next read
	}
	return err
}

// otherMember reads a member that is not needed. If it might be part of the header, the hash cannot
// be recomputed.
func (r *objectReader) otherMember(h *headerFields, name string) error {
	raw, err := r.dec.ReadValue()
	switch {
	case err != nil:
		return err
	case raw[0] == '"':
		h.field(name, raw)
	case raw[0] != 'n' && !isOutsideHeader(name):
		h.unknown = true
	}
	return nil
}

// hashList reads a list of hashes and skips whole transactions.
func (r *objectReader) hashList() ([]common.Hash, error) {
	if r.dec.PeekKind() != '[' {
		return nil, r.dec.SkipValue()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	var found []common.Hash
	for k := r.dec.PeekKind(); k != ']' && k != 0; k = r.dec.PeekKind() {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		var hash common.Hash
		if readFixed(hash[:], raw) == nil {
			found = append(found, hash)
		}
	}
	_, err := r.dec.ReadToken()
	return found, err
}

// field reads a member that matters only for the hash. An unreadable member produces a wrong hash.
func (h *headerFields) field(name string, quoted []byte) {
	w := &h.whole
	switch name {
	case `"sha3Uncles"`:
		_ = readFixed(w.UncleHash[:], quoted)
	case `"miner"`:
		_ = readFixed(w.Coinbase[:], quoted)
	case `"stateRoot"`:
		_ = readFixed(w.Root[:], quoted)
	case `"transactionsRoot"`:
		_ = readFixed(w.TxHash[:], quoted)
	case `"receiptsRoot"`:
		if readFixed(w.ReceiptHash[:], quoted) == nil {
			h.has |= hasRoot
		}
	case `"difficulty"`:
		w.Difficulty = readBig(quoted)
	case `"gasLimit"`:
		w.GasLimit, _ = readQuantity(quoted)
	case `"gasUsed"`:
		w.GasUsed, _ = readQuantity(quoted)
	case `"extraData"`:
		w.Extra, _ = hexutil.Decode(string(bytes.Trim(quoted, `"`)))
	case `"mixHash"`:
		_ = readFixed(w.MixDigest[:], quoted)
	case `"nonce"`:
		_ = readFixed(w.Nonce[:], quoted)
	default:
		h.laterField(name, quoted)
	}
}

// laterField reads a member that an upgrade added to the header.
func (h *headerFields) laterField(name string, quoted []byte) {
	w := &h.whole
	switch name {
	case `"baseFeePerGas"`:
		w.BaseFee = readBig(quoted)
	case `"withdrawalsRoot"`:
		w.WithdrawalsHash = maybeHash(quoted)
	case `"blobGasUsed"`:
		w.BlobGasUsed = maybeNumber(quoted)
	case `"excessBlobGas"`:
		w.ExcessBlobGas = maybeNumber(quoted)
	case `"parentBeaconBlockRoot"`:
		w.ParentBeaconRoot = maybeHash(quoted)
	case `"requestsHash"`:
		w.RequestsHash = maybeHash(quoted)
	case `"blockAccessListHash"`:
		w.BlockAccessListHash = maybeHash(quoted)
	case `"slotNumber"`:
		w.SlotNumber = maybeNumber(quoted)
	default:
		h.unknown = h.unknown || !isOutsideHeader(name)
	}
}

// isOutsideHeader reports whether a member of a block is known not to be part of its header, for
// Ethereum and chains with the same form of header.
func isOutsideHeader(name string) bool {
	switch name {
	case `"size"`, `"totalDifficulty"`, `"uncles"`, `"withdrawals"`, `"author"`, `"milliTimestamp"`,
		`"l1BlockNumber"`, `"sendCount"`, `"sendRoot"`:
		return true
	}
	return false
}

// readBig returns a quantity of any size; 0 when it cannot be read, which the recomputed hash then
// shows.
func readBig(quoted []byte) *big.Int {
	n, err := hexutil.DecodeBig(string(bytes.Trim(quoted, `"`)))
	if err != nil {
		return new(big.Int)
	}
	return n
}

// maybeHash returns nil for a text that is no hash.
func maybeHash(quoted []byte) *common.Hash {
	var hash common.Hash
	if readFixed(hash[:], quoted) != nil {
		return nil
	}
	return &hash
}

// maybeNumber returns nil for a text that is no quantity.
func maybeNumber(quoted []byte) *uint64 {
	n, err := readQuantity(quoted)
	if err != nil {
		return nil
	}
	return &n
}

// header returns the header with the hash of all its fields.
func (h *headerFields) header() *Header {
	out := &Header{Number: h.number, Timestamp: h.time, Txs: h.txs, Unknown: h.unknown}
	if h.has&hasHash != 0 {
		out.Hash = &h.hash
	}
	if h.has&hasParent != 0 {
		out.Parent = &h.whole.ParentHash
	}
	if h.has&hasBloom != 0 {
		out.Bloom = &h.whole.Bloom
	}
	if h.has&hasRoot != 0 {
		out.Root = &h.whole.ReceiptHash
	}
	if h.number != nil && h.time != nil {
		h.whole.Number.SetUint64(*h.number)
		h.whole.Time = *h.time
		out.Own = h.whole.Hash()
	}
	return out
}
