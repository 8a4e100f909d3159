package synth

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts"
	"repute/contracts/bindings"
	"repute/internal/chainserver"
)

// registryABIs know the registries' functions.
type registryABIs map[common.Address]*abi.ABI

// newABIs parses the ABIs, which takes some milliseconds.
func newABIs() (registryABIs, error) {
	all := registryABIs{}
	for address, parse := range map[common.Address]func() (*abi.ABI, error){
		identityAddress:   bindings.IdentityRegistryMetaData.ParseABI,
		reputationAddress: bindings.ReputationRegistryMetaData.ParseABI,
		validationAddress: bindings.ValidationRegistryMetaData.ParseABI,
	} {
		parsed, err := parse()
		if err != nil {
			return nil, fmt.Errorf("registry's ABI: %w", err)
		}
		all[address] = parsed
	}
	return all, nil
}

// settled refuses questions about the state of blocks before the last event: only the final state is kept.
func (n *node) settled(c *chainserver.Call, i int) *chainserver.Error {
	var ref chainserver.Ref
	if fail := c.Param(i, &ref); fail != nil {
		return fail
	}
	number, ok := n.h.find(ref)
	switch {
	case !ok:
		return chainserver.Errorf(-32000, "header not found")
	case number < n.h.LastEvent():
		return chainserver.Errorf(-32000, "missing trie node: state of block %d is pruned", number)
	}
	return nil
}

// storage answers eth_getStorageAt: the number of agents, and zero for all other places.
func (n *node) storage(c *chainserver.Call) (any, *chainserver.Error) {
	var at common.Address
	var slot string
	if fail := cmp.Or(c.Param(0, &at), c.Param(1, &slot), n.settled(c, 2)); fail != nil {
		return nil, fail
	}
	if at == identityAddress && common.HexToHash(slot) == contracts.AgentCountSlot() {
		return common.BigToHash(big.NewInt(int64(len(n.h.agents)))), nil
	}
	return common.Hash{}, nil
}

// call answers eth_call of the registries' views of single agents and ratings.
func (n *node) call(c *chainserver.Call) (any, *chainserver.Error) {
	var msg struct {
		To    *common.Address `json:"to"`
		Input hexutil.Bytes   `json:"input"`
		Data  hexutil.Bytes   `json:"data"`
	}
	if fail := cmp.Or(c.Param(0, &msg), n.settled(c, 1)); fail != nil {
		return nil, fail
	}
	data := msg.Input
	if len(data) == 0 {
		data = msg.Data
	}
	if msg.To == nil || n.abis[*msg.To] == nil {
		return hexutil.Bytes{}, nil // no code, no answer
	}
	if len(data) < 4 {
		return nil, reverted(nil)
	}
	method, err := n.abis[*msg.To].MethodById(data)
	if err != nil {
		return nil, reverted(nil)
	}
	args, err := method.Inputs.Unpack(data[4:])
	if err != nil {
		return nil, reverted(nil)
	}
	values, fail := n.h.view(method.Name, args)
	if fail != nil {
		return nil, fail
	}
	packed, err := method.Outputs.Pack(values...)
	if err != nil {
		return nil, chainserver.Internal(fmt.Errorf("answer of %s: %w", method.Name, err))
	}
	return hexutil.Bytes(packed), nil
}

// reverted is a node's answer to a call that reverts.
func reverted(data []byte, reason ...string) *chainserver.Error {
	e := &chainserver.Error{Code: 3, Message: "execution reverted", Data: hexutil.Encode(data)}
	if len(reason) > 0 {
		e.Message += ": " + reason[0]
	}
	return e
}

// require is Solidity's revert with a reason.
func require(reason string) *chainserver.Error {
	text := make([]byte, 96) // offset, length and one word of text
	text[31], text[63] = 32, byte(copy(text[64:], reason))
	return reverted(append(crypto.Keccak256([]byte("Error(string)"))[:4], text...), reason)
}

// nonexistent is the custom error by which the registry refuses an agent that does not exist.
func nonexistent(token *big.Int) *chainserver.Error {
	word := common.BigToHash(token)
	return reverted(append(crypto.Keccak256([]byte("ERC721NonexistentToken(uint256)"))[:4], word[:]...))
}

// view computes a view's results from the final state.
func (h *History) view(name string, args []any) ([]any, *chainserver.Error) {
	switch name {
	case "ownerOf", "tokenURI", "getAgentWallet", "getApproved":
		return h.agentView(name, args[0].(*big.Int))
	case "getMetadata":
		return h.metadataView(args[0].(*big.Int), args[1].(string)), nil
	case "isApprovedForAll":
		return []any{h.acts(args[0].(common.Address), args[1].(common.Address))}, nil
	case "getLastIndex":
		return []any{h.lastIndex(args[0].(*big.Int), args[1].(common.Address))}, nil
	case "readFeedback":
		return h.feedbackView(args[0].(*big.Int), args[1].(common.Address), args[2].(uint64))
	case "getResponseCount":
		return []any{h.responseCount(args[0].(*big.Int), args[1].(common.Address), args[2].(uint64),
			args[3].([]common.Address))}, nil
	case "getValidationStatus":
		return h.validationView(args[0].([32]byte))
	}
	return nil, chainserver.Errorf(-32000, "%s is not answered by this node", name)
}

// known reports whether a token exists. Ids are given from 0 on without holes.
func (h *History) known(token *big.Int) bool {
	return token.IsUint64() && token.Uint64() < uint64(len(h.agents))
}

// agentView answers views of an agent. Of an agent that does not exist only the wallet is answered, with zero.
func (h *History) agentView(name string, token *big.Int) ([]any, *chainserver.Error) {
	if !h.known(token) {
		if name == "getAgentWallet" {
			return []any{common.Address{}}, nil
		}
		return nil, nonexistent(token)
	}
	now := h.agents[token.Uint64()].Now
	switch name {
	case "ownerOf":
		return []any{now.Owner.address()}, nil
	case "tokenURI":
		return []any{now.URI.String()}, nil
	case "getApproved":
		return []any{now.Approved.address()}, nil
	}
	return []any{now.Wallet.address()}, nil
}

// metadataView finds a value by bisection, because entries are in the order of tokens. The key of the wallet is no
// metadata of its own: the registry answers it from the agent.
func (h *History) metadataView(token *big.Int, key string) []any {
	if !h.known(token) {
		return []any{[]byte{}}
	}
	id, n := uint32(token.Uint64()), slices.Index(metadataKeys, key)
	if key == "agentWallet" {
		return []any{h.agents[id].Now.Wallet.raw()}
	}
	first := sort.Search(len(h.entries), func(i int) bool { return h.entries[i].Token >= id })
	for _, e := range h.entries[first:] {
		if e.Token != id {
			break
		}
		if int(e.Key) == n && e.To == open {
			return []any{metadataValue(e.Value)}
		}
	}
	return []any{[]byte{}}
}

// acts reports whether an operator acts for all agents of an owner. It looks at every span: it is asked rarely.
func (h *History) acts(owner, operator common.Address) bool {
	return slices.ContainsFunc(h.spans, func(s span) bool {
		return s.To == open && s.Owner.address() == owner && s.Operator.address() == operator
	})
}

// ratingsTo are a client's ratings of an agent and all before them, up to an index.
func (h *History) ratingsTo(token uint32, client common.Address, index uint64) []rating {
	n := sort.Search(len(h.ratings), func(i int) bool {
		r := &h.ratings[i]
		a := r.Client.address()
		return cmp.Or(cmp.Compare(r.Token, token), bytes.Compare(a[:], client[:]),
			cmp.Compare(uint64(r.Index), index)) > 0
	})
	return h.ratings[:n]
}

// lastIndex is 0 for a client that has not rated the agent.
func (h *History) lastIndex(token *big.Int, client common.Address) uint64 {
	if !h.known(token) {
		return 0
	}
	id := uint32(token.Uint64())
	list := h.ratingsTo(id, client, open)
	if len(list) == 0 {
		return 0
	}
	if r := list[len(list)-1]; r.Token == id && r.Client.address() == client {
		return uint64(r.Index)
	}
	return 0
}

// feedbackView answers for a rating, a revoked one too. The refusals are the contract's own.
func (h *History) feedbackView(token *big.Int, client common.Address, index uint64) ([]any, *chainserver.Error) {
	switch {
	case index == 0:
		return nil, require("index must be > 0")
	case index > h.lastIndex(token, client):
		return nil, require("index out of bounds")
	}
	list := h.ratingsTo(uint32(token.Uint64()), client, index)
	r := list[len(list)-1]
	return []any{r.Value.big(), r.Decimals, h.enc.tags[r.Tag1], h.enc.tags[r.Tag2], r.Revoked != point{}}, nil
}

// responseCount counts as the contract does: no client means all, index 0 all ratings of the client,
// no responders all; a responder named twice counts twice.
func (h *History) responseCount(token *big.Int, client common.Address, index uint64,
	responders []common.Address) (n uint64) {
	if !h.known(token) {
		return 0
	}
	id := uint32(token.Uint64())
	first := sort.Search(len(h.responses), func(i int) bool { return h.responses[i].Token >= id })
	for _, r := range h.responses[first:] {
		if r.Token != id {
			break
		}
		if client != (common.Address{}) && (r.Client.address() != client || index != 0 && uint64(r.Index) != index) {
			continue
		}
		if len(responders) == 0 {
			n++
		}
		for _, a := range responders {
			if a == r.Responder.address() {
				n++
			}
		}
	}
	return n
}

// validationView answers for a request what the registry does: one that was not answered looks like one answered
// with 0, and its time is then that of the request.
func (h *History) validationView(hash common.Hash) ([]any, *chainserver.Error) {
	i := slices.IndexFunc(h.requests, func(r request) bool { return r.Hash.hash() == hash })
	if i < 0 {
		return nil, require("unknown")
	}
	q := h.requests[i]
	newest, changed := answer{}, q.At.Block
	for _, a := range h.answers { // the newest answer of a request is the last one
		if a.Request == q.Hash {
			newest, changed = a, a.At.Block
		}
	}
	return []any{q.Validator.address(), new(big.Int).SetUint64(uint64(q.Token)), newest.Response,
		[32]byte(newest.Hash.hash()), h.enc.tags[newest.Tag], new(big.Int).SetUint64(blockTime(uint64(changed)))}, nil
}
