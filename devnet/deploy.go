package devnet

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
)

// deploy puts the registries behind proxies the way the public ones were: the
// proxy first points at a minimal implementation that gives it an owner, and the
// owner then upgrades it. All in one block.
func (d *Devnet) deploy(ctx context.Context) error {
	dep := deployment{batch: d.Batch(), from: d.keys[deployerAccount]}
	minimal := dep.create(&bindings.MinimalUUPSMetaData, nil)
	proxy := func() common.Address {
		own := bindings.NewMinimalUUPS().PackInitialize(dep.from.Address)
		return dep.create(&bindings.ERC1967ProxyMetaData, bindings.NewERC1967Proxy().PackConstructor(minimal, own))
	}
	identity, reputation, validation := proxy(), proxy(), proxy()
	dep.upgrade(identity, &bindings.IdentityRegistryMetaData, bindings.NewIdentityRegistry().PackInitialize())
	dep.upgrade(reputation, &bindings.ReputationRegistryMetaData,
		bindings.NewReputationRegistry().PackInitialize(identity))
	dep.upgrade(validation, &bindings.ValidationRegistryMetaData,
		bindings.NewValidationRegistry().PackInitialize(identity))
	mined, err := dep.batch.Mine(ctx)
	if err != nil {
		return err
	}
	d.chain = repute.Chain{
		ID:          d.opt.ChainID,
		Name:        "devnet",
		Identity:    identity,
		Reputation:  reputation,
		Validations: []common.Address{validation},
		StartBlock:  mined.Number,
	}
	return dep.check(mined)
}

// deployment counts the nonces of a fresh account, which fix the addresses
// before anything is mined.
type deployment struct {
	batch   *Batch
	from    Account
	created []common.Address // by nonce, zero for calls
}

// create adds the creation of a contract and returns the address that it will have.
func (dep *deployment) create(meta *bind.MetaData, constructor []byte) common.Address {
	at := crypto.CreateAddress(dep.from.Address, uint64(len(dep.created)))
	dep.batch.Send(dep.from, nil, append(common.FromHex(meta.Bin), constructor...))
	dep.created = append(dep.created, at)
	return at
}

// upgrade adds the creation of an implementation, and the call by which a proxy changes to it.
func (dep *deployment) upgrade(proxy common.Address, meta *bind.MetaData, initialize []byte) {
	implementation := dep.create(meta, nil)
	dep.batch.Send(dep.from, &proxy, bindings.NewMinimalUUPS().PackUpgradeToAndCall(implementation, initialize))
	dep.created = append(dep.created, common.Address{})
}

// check compares the addresses that the node says with those that were counted: the index is configured with the
// latter.
func (dep *deployment) check(m Mined) error {
	for i, r := range m.Receipts {
		if r.ContractAddress != dep.created[i] {
			return fmt.Errorf("transaction %d created %s instead of %s", i, r.ContractAddress, dep.created[i])
		}
	}
	return nil
}
