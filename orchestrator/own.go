package orchestrator

import (
	"bytes"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// Registries are the ERC-8004 contracts of a chain.
type Registries struct {
	ChainID              uint64
	Identity, Reputation common.Address
	Validations          []common.Address
}

// ownArgument says in which argument of a registry's function the agent's id stands; -1
// means that the function concerns whatever its caller owns.
var ownArgument = map[string]int{
	"setAgentURI(uint256,string)":                                            0,
	"setMetadata(uint256,string,bytes)":                                      0,
	"setAgentWallet(uint256,address,uint256,bytes)":                          0,
	"unsetAgentWallet(uint256)":                                              0,
	"approve(address,uint256)":                                               1,
	"transferFrom(address,address,uint256)":                                  2,
	"safeTransferFrom(address,address,uint256)":                              2,
	"safeTransferFrom(address,address,uint256,bytes)":                        2,
	"setApprovalForAll(address,bool)":                                        -1,
	"giveFeedback(uint256,int128,uint8,string,string,string,string,bytes32)": 0,
	"revokeFeedback(uint256,uint64)":                                         0,
	"appendResponse(uint256,address,uint64,string,bytes32)":                  0,
	"validationRequest(address,uint256,string,bytes32)":                      1,
	"validationResponse(bytes32,uint8,string,bytes32,string)":                -2,
}

// mayTouch refuses what would change the manifest, identity or trust records of the agent
// that runs (OpenFi agent standard, safety rule 5).
func (w *work) mayTouch(tx *Tx) error {
	for _, r := range w.e.o.Registries {
		if r.ChainID != tx.ChainID || !r.has(tx.Target) || w.module.Agent == nil || w.module.Agent.ChainID != r.ChainID {
			continue
		}
		for signature, argument := range ownArgument {
			if !bytes.HasPrefix(tx.Data, crypto.Keccak256([]byte(signature))[:4]) {
				continue
			}
			if argument == -1 || argument >= 0 && concerns(tx.Data[4:], argument, w.module.Agent.TokenID) {
				return refuse("self", "an agent does not change its own identity or trust records (%s)", signature)
			}
		}
	}
	return nil
}

func (r *Registries) has(a common.Address) bool {
	for _, v := range r.Validations {
		if v == a {
			return true
		}
	}
	return a == r.Identity || a == r.Reputation
}

// concerns tells whether an argument is the token. Arguments that are cut off concern it.
func concerns(args []byte, n int, token repute.TokenID) bool {
	if len(args) < 32*(n+1) {
		return true
	}
	id := new(big.Int).SetBytes(args[32*n : 32*(n+1)])
	return id.String() == token.String()
}
