package devnet

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// Account is a funded key. It is derived from a public seed: never use it on
// another chain.
type Account struct {
	Address common.Address
	Key     *ecdsa.PrivateKey
}

// PrivateKey is the key as wallets import it, 0x and 64 hex digits.
func (a Account) PrivateKey() string { return hexutil.Encode(crypto.FromECDSA(a.Key)) }

// The first keys are not handed out by Account.
const (
	faucetAccount = iota
	deployerAccount
	reservedAccounts
)

// initialEther is what each account has in the first block, in whole coins: more than any test spends.
const initialEther = 1_000_000

// Faucet is the account shown to people. Nothing in this package spends from it.
func (d *Devnet) Faucet() Account { return d.keys[faucetAccount] }

// Account is the i-th funded account, 0 ≤ i < Options.Accounts. An index beyond
// wraps around.
func (d *Devnet) Account(i int) Account {
	return d.keys[reservedAccounts+i%(len(d.keys)-reservedAccounts)]
}

// deriveAccounts makes n keys by hashing the seed with their number.
func deriveAccounts(seed string, n int) ([]Account, error) {
	keys := make([]Account, n)
	for i := range keys {
		secret := crypto.Keccak256([]byte("repute devnet account"), []byte(seed), binaryUint(uint64(i)))
		key, err := crypto.ToECDSA(secret)
		if err != nil {
			return nil, fmt.Errorf("account %d of seed %q: %w", i, seed, err)
		}
		keys[i] = Account{crypto.PubkeyToAddress(key.PublicKey), key}
	}
	return keys, nil
}

// binaryUint is a number in 32 bytes, so that what is hashed has one length for every number.
func binaryUint(n uint64) []byte { return common.BigToHash(new(big.Int).SetUint64(n)).Bytes() }

// allocation funds the accounts in the genesis block.
func allocation(keys []Account) types.GenesisAlloc {
	alloc := types.GenesisAlloc{}
	for _, a := range keys {
		alloc[a.Address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(initialEther), big.NewInt(params.Ether))}
	}
	return alloc
}
