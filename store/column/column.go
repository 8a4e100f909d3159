// Package column converts values between Go and columns: ids and integers of any size, addresses and hashes, times, and
// texts from outside, which Postgres may refuse or which are too long for an answer.
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
