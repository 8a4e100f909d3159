// Package column converts values between Go and columns: ids and integers of any size, addresses and hashes, times, and
// texts from outside, which Postgres may refuse or which are too long for an answer.
//
// TokenNum, BigNum, Address, Hash and Time are types of this package for the same memory as the type of the domain, by
// which pgx reads a column straight into a field: row.Scan((*column.Address)(&agent.Owner)). Numbers are exact. The
// zero address and the zero hash are stored as no bytes (AddressBytes, HashBytes), the zero time as null (MaybeTime),
// and null reads as zero; a column in which null has a meaning of its own is read into a pointer. Arrays of parameters
// are made by TokenArray, AddressColumn and KeyColumns.
//
// Texts of the chain and of documents are chosen by strangers: they may be no UTF-8, hold NUL, or be megabytes long.
// Those of the chain are stored as bytes, found by their hash (Keccak for tags, SHA256 for URIs), and shown by their
// head (HeadOf in SQL, Head in Go). Others are cleaned by PlainText and CleanText before they are stored.
package column

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"repute"
)

// AgentKey identifies an agent without its registry, which follows from the chain.
type AgentKey struct {
	Chain uint64
	Token repute.TokenID
}

// KeyOf returns the key of an agent.
func KeyOf(id repute.AgentID) AgentKey { return AgentKey{id.ChainID, id.TokenID} }

// KeyColumns splits distinct keys into two array parameters for unnest.
func KeyColumns(ids []repute.AgentID) (chains []uint64, tokens []TokenNum) {
	seen := make(map[AgentKey]bool, len(ids))
	for _, id := range ids {
		if k := KeyOf(id); !seen[k] {
			seen[k] = true
			chains, tokens = append(chains, k.Chain), append(tokens, TokenNum(k.Token))
		}
	}
	return chains, tokens
}

// CollectTokens reads a column of token ids and closes rows.
func CollectTokens(rows pgx.Rows) (map[repute.TokenID]bool, error) {
	out := map[repute.TokenID]bool{}
	var token TokenNum
	_, err := pgx.ForEachRow(rows, []any{&token}, func() error {
		out[repute.TokenID(token)] = true
		return nil
	})
	return out, err
}

// MaybeTime returns nil, which is stored as null, for the zero time.
func MaybeTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// TimeOf returns the zero time for null.
func TimeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// AddressColumn returns addresses as a bytea[] parameter.
func AddressColumn(addresses []common.Address) [][]byte {
	out := make([][]byte, len(addresses))
	for i, a := range addresses {
		out[i] = a.Bytes()
	}
	return out
}

// Address reads an address from bytea. No bytes and null are the zero address.
type Address common.Address

// ScanBytes implements pgtype.BytesScanner.
func (a *Address) ScanBytes(b []byte) error {
	*a = Address(common.BytesToAddress(b))
	return nil
}

// Hash reads a hash from bytea. No bytes and null are the zero hash.
type Hash common.Hash

// ScanBytes implements pgtype.BytesScanner.
func (h *Hash) ScanBytes(b []byte) error {
	*h = Hash(common.BytesToHash(b))
	return nil
}

// Time reads a time from timestamptz, in UTC. Null is the zero time.
type Time time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *Time) ScanTimestamptz(v pgtype.Timestamptz) error {
	if v.InfinityModifier != pgtype.Finite {
		return errors.New("a time was expected, not infinity")
	}
	*t = Time(v.Time.UTC())
	return nil
}

// ScanAddress reads a row of one address.
func ScanAddress(row pgx.CollectableRow) (a common.Address, err error) {
	err = row.Scan((*Address)(&a))
	return a, err
}

// ScanToken reads a row of one token id.
func ScanToken(row pgx.CollectableRow) (id repute.TokenID, err error) {
	err = row.Scan((*TokenNum)(&id))
	return id, err
}

// OrNull returns the JSON, or a JSON null where there is none.
func OrNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// OrEmpty returns an empty key for nil, which sorts before every other key.
func OrEmpty(place []byte) []byte {
	if place == nil {
		return []byte{}
	}
	return place
}

// TokenNum carries a token id to and from numeric(78, 0), exactly.
type TokenNum repute.TokenID

// ScanNumeric implements pgtype.NumericScanner.
func (t *TokenNum) ScanNumeric(n pgtype.Numeric) error {
	v, err := integerOf(n)
	if err != nil {
		return err
	}
	if v.Sign() < 0 || (*uint256.Int)(t).SetFromBig(v) {
		return fmt.Errorf("%s is no token id", v)
	}
	return nil
}

// NumericValue implements pgtype.NumericValuer.
func (t TokenNum) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: (*uint256.Int)(&t).ToBig(), Valid: true}, nil
}

// BigNum carries an integer of any size to and from numeric. It is never null.
type BigNum struct{ *big.Int }

// ScanNumeric implements pgtype.NumericScanner.
func (b *BigNum) ScanNumeric(n pgtype.Numeric) (err error) {
	b.Int, err = integerOf(n)
	return err
}

// NumericValue implements pgtype.NumericValuer.
func (b BigNum) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: b.Int, Valid: true}, nil
}

// integerOf returns the integer of a numeric, whose wire form may use an exponent for trailing
// zeros.
func integerOf(n pgtype.Numeric) (*big.Int, error) {
	if !n.Valid || n.NaN || n.InfinityModifier != pgtype.Finite {
		return nil, errors.New("a number was expected, not null, NaN or infinity")
	}
	v := new(big.Int).Set(n.Int)
	ten := big.NewInt(10)
	if n.Exp >= 0 {
		return v.Mul(v, new(big.Int).Exp(ten, big.NewInt(int64(n.Exp)), nil)), nil
	}
	rest := new(big.Int)
	v.QuoRem(v, new(big.Int).Exp(ten, big.NewInt(-int64(n.Exp)), nil), rest)
	if rest.Sign() != 0 {
		return nil, fmt.Errorf("%s*10^%d is no integer", n.Int, n.Exp)
	}
	return v, nil
}
