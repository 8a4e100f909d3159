package rules

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Ceilings are the largest costs of a chain's transactions, whatever fees endpoints suggest. They
// apply to every signed transaction: of agents and operators, first forms and replacements. The
// transferred value is limited by the policy and the treasury.
type Ceilings struct {
	MaxFeePerGas *big.Int // wei, base fee and tip; the chain's default when nil
	MaxTip       *big.Int // wei per gas for the builder of the block; the chain's default when nil
	// MaxTransactionFee is the largest total cost of a transaction including the fee for its data,
	// in wei; the chain's default when nil.
	MaxTransactionFee *big.Int
}

// DefaultCeilings returns the ceilings of a chain. Those of an unknown chain suffice for usual
// transactions on most.
func DefaultCeilings(chainID uint64) Ceilings {
	switch chainID {
	case 1: // Ethereum
		return ceilings(200, 10, 50)
	case 10, 8453, 42161, 59144, 534352: // OP Mainnet, Base, Arbitrum One, Linea, Scroll
		return ceilings(10, 1, 5)
	case 56: // BNB Smart Chain
		return ceilings(20, 5, 10)
	case 100: // Gnosis
		return ceilings(200, 10, 500)
	case 137: // Polygon
		return ceilings(2000, 500, 5000)
	case 42220: // Celo
		return ceilings(500, 50, 2000)
	case 43114: // Avalanche C-Chain
		return ceilings(300, 20, 500)
	}
	return ceilings(100, 5, 20)
}

// ceilings converts gwei per gas and thousandths of a coin.
func ceilings(feePerGas, tip, fee int64) Ceilings {
	gwei, milli := big.NewInt(1e9), big.NewInt(1e15)
	return Ceilings{new(big.Int).Mul(big.NewInt(feePerGas), gwei), new(big.Int).Mul(big.NewInt(tip), gwei),
		new(big.Int).Mul(big.NewInt(fee), milli)}
}

// Or replaces missing values by those of d.
func (c Ceilings) Or(d Ceilings) Ceilings {
	for _, f := range []struct{ into, from **big.Int }{{&c.MaxFeePerGas, &d.MaxFeePerGas}, {&c.MaxTip, &d.MaxTip},
		{&c.MaxTransactionFee, &d.MaxTransactionFee}} {
		if *f.into == nil {
			*f.into = *f.from
		}
	}
	return c
}

// Check refuses ceilings that no transaction could pass.
func (c Ceilings) Check(field string) error {
	for name, v := range map[string]*big.Int{"max_fee_per_gas": c.MaxFeePerGas,
		"max_transaction_fee": c.MaxTransactionFee} {
		if v != nil && v.Sign() <= 0 {
			return repute.Invalid(field+"."+name, fmt.Sprintf("is %s", v),
				"an amount over 0, or leave it out for the chain's default")
		}
	}
	if c.MaxTip != nil && c.MaxTip.Sign() < 0 {
		return repute.Invalid(field+".max_tip", fmt.Sprintf("is %s", c.MaxTip),
			"0 or more, or leave it out for the chain's default")
	}
	return nil
}

// permit checks the fees of a transaction directly before it is signed.
func (c Ceilings) allowSignature(tx *types.Transaction) error {
	for _, f := range []struct {
		what, name string
		is, most   *big.Int
	}{{"offers", "max_fee_per_gas", tx.GasFeeCap(), c.MaxFeePerGas},
		{"gives a tip of", "max_tip", tx.GasTipCap(), c.MaxTip},
		{"may cost", "max_transaction_fee", Cost(tx.Gas(), tx.GasFeeCap()), c.MaxTransactionFee}} {
		if f.is.Cmp(f.most) > 0 {
			return fmt.Errorf("the transaction %s %s wei, over orchestrator.wallets[].%s of %s: it is not signed: %w",
				f.what,
				f.is, f.name, f.most, repute.ErrLimited)
		}
	}
	return nil
}

// Cost returns what an amount of gas costs at a price in wei per gas.
func Cost(gas uint64, price *big.Int) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(gas), price)
}
