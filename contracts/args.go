package contracts

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

const wordSize = 32

// emptyHash and walletKeyHash are keccak256 of "" and of "agentWallet": the two
// strings whose hash is asked for so often that it is worth knowing.
var (
	emptyHash     = crypto.Keccak256Hash(nil)
	walletKeyHash = crypto.Keccak256Hash([]byte(walletKey))
)

// walletKey is the metadata key of an agent's wallet, which the identity registry sets and clears itself.
const walletKey = "agentWallet"

// args reads a log's arguments in the order of the event's declaration,
// indexed ones from the topics and the others from the data. The first argument
// that does not decode is kept as err; what is read after it is worthless.
//
// Nothing is allocated by a length the log merely claims: a string is copied
// only once it is known to lie inside the data. Bytes after the last argument,
// padding of any value and tails in any place behind the head are tolerated, as
// Solidity's own decoder does.
type args struct {
	topics []common.Hash // not yet read
	head   []byte        // static part, not yet read
	data   []byte
	static int // size of the whole head in bytes: tails begin there at the earliest
	err    error
}

// newArgs checks the counts that every event fixes, so that reading a word
// cannot run out of input.
func newArgs(s *shape, l *types.Log) (args, error) {
	if len(l.Topics) != s.topics {
		return args{}, malformed("%d topics instead of %d", len(l.Topics), s.topics)
	}
	static := s.words * wordSize
	if len(l.Data) < static {
		return args{}, malformed("%d bytes of data, fewer than %d", len(l.Data), static)
	}
	return args{topics: l.Topics[1:], head: l.Data[:static], data: l.Data, static: static}, nil
}

// fail keeps the first error: what follows from it says less.
func (a *args) fail(format string, v ...any) {
	if a.err == nil {
		a.err = malformed(format, v...)
	}
}

// topic and word take the next argument. newArgs has checked that there are as many as the event has.
func (a *args) topic() common.Hash {
	t := a.topics[0]
	a.topics = a.topics[1:]
	return t
}

func (a *args) word() common.Hash {
	w := common.Hash(a.head[:wordSize])
	a.head = a.head[wordSize:]
	return w
}

// Readers of words refuse what no encoder writes: a value that is wider than its type.
func (a *args) address(w common.Hash) common.Address {
	if !zero(w[:12]) {
		a.fail("address wider than 20 bytes: %s", w)
	}
	return common.Address(w[12:])
}

// token takes any word: ids have 256 bits.
func (a *args) token(w common.Hash) (id repute.TokenID) {
	id.SetBytes32(w[:])
	return id
}

func (a *args) uint64(w common.Hash) uint64 {
	if !zero(w[:24]) {
		a.fail("number wider than 64 bits: %s", w)
	}
	return binary.BigEndian.Uint64(w[24:])
}

func (a *args) uint8(w common.Hash) uint8 {
	if !zero(w[:31]) {
		a.fail("number wider than 8 bits: %s", w)
	}
	return w[31]
}

func (a *args) bool(w common.Hash) bool {
	if !zero(w[:31]) || w[31] > 1 {
		a.fail("neither true nor false: %s", w)
	}
	return w[31] == 1
}

// int128 wants the word sign-extended: all of the upper half equal to the sign.
func (a *args) int128(w common.Hash) *big.Int {
	hi := int64(binary.BigEndian.Uint64(w[16:]))
	lo := binary.BigEndian.Uint64(w[24:])
	sign := uint64(hi >> 63)
	if binary.BigEndian.Uint64(w[:]) != sign || binary.BigEndian.Uint64(w[8:]) != sign {
		a.fail("number wider than 128 bits: %s", w)
		return new(big.Int)
	}
	if hi == int64(lo)>>63 { // all of the upper half is sign: an int64
		return big.NewInt(int64(lo))
	}
	v := big.NewInt(hi)
	return v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(lo))
}

// tail resolves the offset of a dynamic argument to its bytes, which still
// belong to the log.
func (a *args) tail() []byte {
	at, ok := a.below(a.word(), len(a.data)-wordSize)
	if !ok || at < a.static {
		a.fail("offset outside the data")
		return nil
	}
	rest := a.data[at+wordSize:]
	n, ok := a.below(common.Hash(a.data[at:at+wordSize]), len(rest))
	if !ok {
		a.fail("length outside the data")
		return nil
	}
	return rest[:n]
}

// below reads a word as an int in 0..limit.
func (a *args) below(w common.Hash, limit int) (int, bool) {
	n := binary.BigEndian.Uint64(w[24:])
	if !zero(w[:24]) || limit < 0 || n > uint64(limit) {
		return 0, false
	}
	return int(n), true
}

// string copies, as bytes does. The bytes need not be UTF-8: who shows them decides what to do about that.
func (a *args) string() string { return string(a.tail()) }

// bytes copies, because the log's buffer belongs to the caller. It never
// returns nil.
func (a *args) bytes() []byte { return append([]byte{}, a.tail()...) }

// hashed checks an indexed string, of which the topic holds only the hash,
// against the same string in the data.
func (a *args) hashed(topic common.Hash, s string) {
	if a.err == nil && topic != hashOf(s) {
		a.fail("indexed hash is not that of the string in the data")
	}
}

// hashOf is the hash by which a topic stands for an indexed string.
func hashOf(s string) common.Hash {
	switch s {
	case "":
		return emptyHash
	case walletKey:
		return walletKeyHash
	}
	return crypto.Keccak256Hash([]byte(s))
}

// zero reports whether all bytes are 0.
func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// malformed wraps ErrMalformed. The text says what the registries cannot have written.
func malformed(format string, v ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, v...))
}
