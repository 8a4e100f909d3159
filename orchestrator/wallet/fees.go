package wallet

import (
	"context"
	"fmt"
	"math/big"

	"repute"
)

// fees are what a transaction offers, wei per gas.
type fees struct{ limit, tip *big.Int }

// usual are fees that survive a doubling of the base fee.
func usual(base, tip *big.Int) fees {
	limit := new(big.Int).Lsh(base, 1)
	return fees{limit.Add(limit, tip), tip}
}

func (e *endpoint) fees(ctx context.Context) (f fees, base *big.Int, err error) {
	h, err := e.block(ctx, "latest")
	if err != nil {
		return f, nil, err
	}
	tip, err := e.tip(ctx)
	if err != nil {
		return f, nil, err
	}
	return usual(h.base(), tip), h.base(), nil
}

// raised is v by an eighth more, rounded up: the least that nodes take for a replacement.
func raised(v *big.Int) *big.Int {
	more := new(big.Int).Add(v, big.NewInt(7))
	more.Rsh(more, 3)
	if more.Sign() == 0 {
		more.SetInt64(1)
	}
	return more.Add(more, v)
}

// bumped are the fees of a replacement: both raised, or the present ones where those are
// higher.
func (f fees) bumped(now fees) fees {
	return fees{larger(raised(f.limit), now.limit), larger(raised(f.tip), now.tip)}
}

func larger(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// within lowers fees so that gas costs no more than most in all; nil is no limit.
func (f fees) within(gas uint64, most *big.Int) fees {
	if most == nil || gas == 0 {
		return f
	}
	limit := new(big.Int).Div(most, new(big.Int).SetUint64(gas))
	if f.limit.Cmp(limit) > 0 {
		f.limit = limit
	}
	if f.tip.Cmp(f.limit) > 0 {
		f.tip = f.limit
	}
	return f
}

// first are the fees of an intent's first form. repute.ErrLimited where no block would
// take what the limit allows.
func (e *endpoint) first(ctx context.Context, gas uint64, most *big.Int) (fees, error) {
	f, base, err := e.fees(ctx)
	if err != nil {
		return f, err
	}
	if f = f.within(gas, most); f.limit.Cmp(base) < 0 {
		return f, fmt.Errorf("gas for at most %s wei is %s wei each, and the block's base fee is %s: %w", most, f.limit, base, repute.ErrLimited)
	}
	return f, nil
}

// cost is what gas costs at most at a price.
func cost(gas uint64, price *big.Int) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(gas), price)
}

// withHeadroom is v by some percent more.
func withHeadroom(v *big.Int, percent int64) *big.Int {
	out := new(big.Int).Mul(v, big.NewInt(100+percent))
	return out.Div(out, big.NewInt(100))
}
