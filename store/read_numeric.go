package store

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5/pgtype"

	"repute"
)

// tokenNum carries a token id to and from numeric(78, 0), exactly.
type tokenNum repute.TokenID

// ScanNumeric implements pgtype.NumericScanner.
func (t *tokenNum) ScanNumeric(n pgtype.Numeric) error {
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
func (t tokenNum) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: (*uint256.Int)(&t).ToBig(), Valid: true}, nil
}

// bigNum carries an integer of any size to and from numeric. It is never null.
type bigNum struct{ *big.Int }

// ScanNumeric implements pgtype.NumericScanner.
func (b *bigNum) ScanNumeric(n pgtype.Numeric) (err error) {
	b.Int, err = integerOf(n)
	return err
}

// NumericValue implements pgtype.NumericValuer.
func (b bigNum) NumericValue() (pgtype.Numeric, error) {
	return pgtype.Numeric{Int: b.Int, Valid: true}, nil
}

// integerOf undoes the exponent that the wire form uses for trailing zeros.
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
