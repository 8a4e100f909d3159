package wallet

import (
	"math/big"
)

// budget is the largest cost of a transaction, with the name of the limit.
type budget struct {
	wei *big.Int
	of  string // name of the limit, for errors
}

// budget returns the lower of the transaction's own limit, nil for none, and the chain's ceiling.
func (c *chain) budget(allowed *big.Int) budget {
	if allowed != nil && allowed.Cmp(c.MaxTransactionFee) <= 0 {
		return budget{allowed, "the limit of the transaction"}
	}
	return budget{c.MaxTransactionFee, c.field + ".max_transaction_fee"}
}
