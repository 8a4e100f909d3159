package trustbench

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/trust/source"
)

// namesOf reports whether a source reads primary names.
func namesOf(s *source.Source) bool { return s.Read.Person == "name.label" }

// namehash returns the node of a name, by ENSIP-1: labels are hashed from the right.
func namehash(name string) (node common.Hash) {
	labels := strings.Split(name, ".")
	slices.Reverse(labels)
	for _, label := range labels {
		node = crypto.Keccak256Hash(node[:], crypto.Keccak256([]byte(label)))
	}
	return node
}

// register gives each rater a name of its own as its primary name, which it has owned since the chain's block. Base has
// the reverse names of its own coin type, 0x80000000 or'ed with the chain's id (ENSIP-11, ENSIP-19).
func (e *yesChain) register(home *source.Home, raters []common.Address) {
	parent, space := "eth", "addr.reverse"
	if home.Chain != 1 {
		parent, space = "base.eth", fmt.Sprintf("%x.reverse", 1<<31|home.Chain)
	}
	resolver := common.LeftPadBytes(home.Contracts["resolver1"].Address.Bytes(), 32)
	answer := func(function string, argument common.Hash, data []byte) {
		e.answers[string(append(crypto.Keccak256([]byte(function))[:4], argument[:]...))] = data
	}
	owned := func(a common.Address, token common.Hash) {
		e.logs = append(e.logs, types.Log{Address: home.Contracts["registrar"].Address,
			BlockNumber: e.header.Number.Uint64(),
			BlockHash:   e.header.Hash(), Index: uint(len(e.logs)), Topics: []common.Hash{
				crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")), {}, common.BytesToHash(a[:]),
				token}})
	}
	owned(common.Address{}, common.Hash{}) // else 10,000 logs would look as if a node had cut them off
	for i, a := range raters {
		label := fmt.Sprintf("rater%d", i)
		name := label + "." + parent
		node, token := namehash(name), crypto.Keccak256Hash([]byte(label))
		reverse, word := namehash(hex.EncodeToString(a[:])+"."+space), common.LeftPadBytes(a[:], 32)
		answer("resolver(bytes32)", reverse, resolver)
		answer("name(bytes32)", reverse, slices.Concat(common.LeftPadBytes([]byte{32}, 32),
			common.LeftPadBytes([]byte{byte(len(name))}, 32), common.RightPadBytes([]byte(name), 32)))
		answer("nameExpires(uint256)", token, common.BigToHash(big.NewInt(1<<40)).Bytes())
		answer("ownerOf(uint256)", token, word)
		answer("resolver(bytes32)", node, resolver)
		answer("addr(bytes32)", node, word)
		owned(a, token)
	}
}
