package wallet

import (
	"math/big"
)

// budget is what a transaction may cost, and by what.
type budget struct {
	wei *big.Int
	of  string // what sets it, for errors
}

// budget is the lower of what a transaction is allowed, nil being no limit of its own, and the
// chain's ceiling.
func (c *chain) budget(allowed *big.Int) budget {
	if allowed != nil && allowed.Cmp(c.MaxTransactionFee) <= 0 {
		return budget{allowed, "the limit of the transaction"}
	}
	return budget{c.MaxTransactionFee, c.field + ".max_transaction_fee"}
}
