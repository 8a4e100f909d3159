package synth

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings"
)

// agentCountSlot is the first word of the identity registry's storage.
var agentCountSlot = common.HexToHash("0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00")

// registryABIs know the registries' functions.
type registryABIs map[common.Address]*abi.ABI

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

// settled makes sure that the state asked for is the final one: no other is kept.
func (s *Server) settled(c call, i int) error {
	ref := blockRef{}
	if err := c.param(i, &ref); err != nil {
		return err
	}
	number, ok := s.h.resolve(ref)
	switch {
	case !ok:
		return &rpcError{Code: -32000, Message: "header not found"}
	case number < s.h.LastEvent():
		return &rpcError{Code: -32000, Message: fmt.Sprintf("missing trie node: state of block %d is pruned", number)}
	}
	return nil
}

// storage answers eth_getStorageAt: the number of agents, and what the other two
// registries take for the identity registry.
func (s *Server) storage(c call) (any, error) {
	var at common.Address
	var slot string
	if err := c.param(0, &at); err != nil {
		return nil, err
	}
	if err := c.param(1, &slot); err != nil {
		return nil, err
	}
	if err := s.settled(c, 2); err != nil {
		return nil, err
	}
	key := common.HexToHash(slot)
	switch {
	case at == identityAddress && key == agentCountSlot:
		return common.BigToHash(big.NewInt(int64(s.h.agents.rows))), nil
	case (at == reputationAddress || at == validationAddress) && key == (common.Hash{}):
		return common.BytesToHash(identityAddress[:]), nil
	}
	return common.Hash{}, nil
}

// call answers eth_call of the registries' views that tell the state of single
// agents and ratings.
func (s *Server) call(c call) (any, error) {
	var msg struct {
		To    *common.Address `json:"to"`
		Input hexutil.Bytes   `json:"input"`
		Data  hexutil.Bytes   `json:"data"`
	}
	if err := c.param(0, &msg); err != nil {
		return nil, err
	}
	if err := s.settled(c, 1); err != nil {
		return nil, err
	}
	data := slices.Concat(msg.Input)
	if len(data) == 0 {
		data = slices.Concat(msg.Data)
	}
	if msg.To == nil || s.abis[*msg.To] == nil {
		return hexutil.Bytes{}, nil // no code, no answer
	}
	if len(data) < 4 {
		return nil, reverted(nil)
	}
	method, err := s.abis[*msg.To].MethodById(data)
	if err != nil {
		return nil, reverted(nil)
	}
	args, err := method.Inputs.Unpack(data[4:])
	if err != nil {
		return nil, reverted(nil)
	}
	values, err := s.h.view(method.Name, args)
	if err != nil {
		return nil, err
	}
	packed, err := method.Outputs.Pack(values...)
	if err != nil {
		return nil, fmt.Errorf("answer of %s: %w", method.Name, err)
	}
	return hexutil.Bytes(packed), nil
}

// reverted is a node's answer to a call that reverts.
func reverted(data []byte, reason ...string) error {
	e := &rpcError{Code: 3, Message: "execution reverted", Data: hexutil.Encode(data)}
	if len(reason) > 0 {
		e.Message += ": " + reason[0]
	}
	return e
}

// require is Solidity's revert with a reason.
func require(reason string) error {
	return reverted(append(crypto.Keccak256([]byte("Error(string)"))[:4], pack([]any{reason})...), reason)
}

func nonexistent(token *big.Int) error {
	word := common.BigToHash(token)
	return reverted(append(crypto.Keccak256([]byte("ERC721NonexistentToken(uint256)"))[:4], word[:]...))
}

// view computes a view's results from the final state.
func (h *History) view(name string, args []any) ([]any, error) {
	switch name {
	case "ownerOf", "tokenURI", "getAgentWallet", "getApproved":
		return h.agentView(name, args[0].(*big.Int))
	case "getMetadata":
		return h.metadataView(args[0].(*big.Int), args[1].(string))
	case "isApprovedForAll":
		yes, err := h.acts(args[0].(common.Address), args[1].(common.Address))
		return []any{yes}, err
	case "getLastIndex":
		last, err := h.lastIndex(args[0].(*big.Int), args[1].(common.Address))
		return []any{last}, err
	case "readFeedback":
		return h.feedbackView(args[0].(*big.Int), args[1].(common.Address), args[2].(uint64))
	case "getResponseCount":
		n, err := h.responseCount(args[0].(*big.Int), args[1].(common.Address), args[2].(uint64), args[3].([]common.Address))
		return []any{n}, err
	case "getValidationStatus":
		return h.validationView(args[0].([32]byte))
	case "getVersion":
		return []any{"2.0.0"}, nil
	case "getIdentityRegistry":
		return []any{identityAddress}, nil
	}
	return nil, &rpcError{Code: -32000, Message: name + " is not answered by this node"}
}

func (h *History) known(token *big.Int) bool {
	return token.IsUint64() && token.Uint64() < uint64(h.agents.rows)
}

func (h *History) agentView(name string, token *big.Int) ([]any, error) {
	if !h.known(token) {
		if name == "getAgentWallet" {
			return []any{common.Address{}}, nil
		}
		return nil, nonexistent(token)
	}
	a, err := h.agents.at(int(token.Uint64()))
	switch name {
	case "ownerOf":
		return []any{a.Now.Owner.address()}, err
	case "tokenURI":
		return []any{a.Now.URI.String()}, err
	case "getApproved":
		return []any{a.Now.Approved.address()}, err
	}
	return []any{a.Now.Wallet.address()}, err
}

func (h *History) metadataView(token *big.Int, key string) ([]any, error) {
	if key == "agentWallet" {
		return h.walletView(token)
	}
	n := slices.Index(metadataKeys, key)
	if n < 0 || !h.known(token) {
		return []any{[]byte{}}, nil
	}
	id := uint32(token.Uint64())
	i, err := h.entries.find(func(e *entry) bool { return e.Token < id })
	for ; err == nil && i < h.entries.rows; i++ {
		e, err := h.entries.at(i)
		if err != nil || e.Token != id {
			return []any{[]byte{}}, err
		}
		if e.Key == uint32(n) && e.To == open {
			return []any{metadataValue(e.Value)}, nil
		}
	}
	return []any{[]byte{}}, err
}

// walletView gives the wallet as metadata: 20 bytes, or none.
func (h *History) walletView(token *big.Int) ([]any, error) {
	if !h.known(token) {
		return []any{[]byte{}}, nil
	}
	a, err := h.agents.at(int(token.Uint64()))
	return []any{a.Now.Wallet.raw()}, err
}

func (h *History) acts(owner, operator common.Address) (bool, error) {
	for s, err := range h.spans.all() {
		if err != nil {
			return false, err
		}
		if s.To == open && s.Owner.address() == owner && s.Operator.address() == operator {
			return true, nil
		}
	}
	return false, nil
}

// firstAfter finds the first rating behind one of a client.
func (h *History) firstAfter(token uint32, client common.Address, index uint64) (int, error) {
	return h.ratings.find(func(r *rating) bool {
		a := r.Client.address()
		return cmp.Or(cmp.Compare(r.Token, token), bytes.Compare(a[:], client[:]), cmp.Compare(uint64(r.Index), index)) <= 0
	})
}

// lastIndex is 0 for a client that has not rated the agent.
func (h *History) lastIndex(token *big.Int, client common.Address) (uint64, error) {
	if !h.known(token) {
		return 0, nil
	}
	id := uint32(token.Uint64())
	i, err := h.firstAfter(id, client, open)
	if err != nil || i == 0 {
		return 0, err
	}
	r, err := h.ratings.at(i - 1)
	if err != nil || r.Token != id || r.Client.address() != client {
		return 0, err
	}
	return uint64(r.Index), nil
}

func (h *History) feedbackView(token *big.Int, client common.Address, index uint64) ([]any, error) {
	last, err := h.lastIndex(token, client)
	switch {
	case err != nil:
		return nil, err
	case index == 0:
		return nil, require("index must be > 0")
	case index > last:
		return nil, require("index out of bounds")
	}
	i, err := h.firstAfter(uint32(token.Uint64()), client, index)
	if err != nil {
		return nil, err
	}
	r, err := h.ratings.at(i - 1)
	return []any{r.Value.big(), r.Decimals, h.enc.tags[r.Tag1], h.enc.tags[r.Tag2], r.Revoked != point{}}, err
}

// responseCount counts as the contract does: no client means all, index 0 all
// ratings of the client, no responders all; a responder named twice counts twice.
func (h *History) responseCount(token *big.Int, client common.Address, index uint64,
	responders []common.Address) (n uint64, err error) {
	if !h.known(token) {
		return 0, nil
	}
	id := uint32(token.Uint64())
	i, err := h.responses.find(func(r *response) bool { return r.Token < id })
	for ; err == nil && i < h.responses.rows; i++ {
		var r response
		if r, err = h.responses.at(i); err != nil || r.Token != id {
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
	return n, err
}

func (h *History) validationView(hash common.Hash) ([]any, error) {
	i, err := h.requests.find(func(r *request) bool { x := r.Hash.hash(); return bytes.Compare(x[:], hash[:]) < 0 })
	if err != nil || i == h.requests.rows {
		return nil, cmp.Or(err, require("unknown"))
	}
	q, err := h.requests.at(i)
	if err != nil || q.Hash.hash() != hash {
		return nil, cmp.Or(err, require("unknown"))
	}
	// The answers of a request are neighbors, the newest last.
	newest, changed := answer{}, q.At.Block
	err = each(h.answers, func(a *answer) {
		if a.Request == q.Hash {
			newest, changed = *a, a.At.Block
		}
	})
	return []any{q.Validator.address(), new(big.Int).SetUint64(uint64(q.Token)), newest.Response,
		[32]byte(newest.Hash.hash()),
		h.enc.tags[newest.Tag], new(big.Int).SetUint64(blockTime(uint64(changed)))}, err
}
