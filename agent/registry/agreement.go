package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"repute"
	"repute/agent"
	"repute/contracts/bindings"
)

// maxLag is how many blocks a node may be behind what a majority of nodes showed earlier. What an
// older state says of the agent does not count.
const maxLag = 64

// view is what one node says of the agent.
type view struct {
	agent.Registered
	head    uint64
	missing bool // no such agent is registered
	foreign bool // the address is no identity registry
}

// same reports whether two nodes say the same of who the agent is. URIs may differ, because nodes can be at different
// blocks.
func (v *view) same(w *view) bool {
	return v.missing == w.missing && v.foreign == w.foreign && v.Owner == w.Owner && v.Wallet == w.Wallet
}

// Agent implements agent.Registry. All nodes are asked: what more than half of those that answer say
// counts, so that one that lags or is wrong decides nothing. repute.ErrNotFound where no such agent is
// registered, repute.ErrUnavailable where no node answers or the nodes disagree.
func (r *Registry) Agent(ctx context.Context) (agent.Registered, error) {
	views := r.views(ctx)
	if len(views) == 0 {
		return agent.Registered{}, fmt.Errorf("chain %d: %w: no node answers with a block that is new enough",
			r.o.ID.ChainID, repute.ErrUnavailable)
	}
	v, ok := agreed(views)
	switch {
	case !ok:
		return agent.Registered{}, fmt.Errorf("chain %d: %w: its nodes disagree about the agent", r.o.ID.ChainID,
			repute.ErrUnavailable)
	case v.missing:
		return agent.Registered{}, &repute.MissingError{What: "agent " + r.o.ID.String(), Why: "is not registered",
			Hint: "agent.id and agent.registry (AGENT_ID, AGENT_REGISTRY_CONTRACT)"}
	case v.foreign:
		return agent.Registered{}, repute.Invalid("agent.registry",
			r.o.ID.Registry.Hex()+" is no identity registry on this chain",
			"the address of ERC-8004's (AGENT_REGISTRY_CONTRACT)")
	}
	return v.Registered, nil
}

// agreed returns what more than half of the views say, with the URI of the newest of them. Its head is
// the oldest of them: a single node MUST NOT decide which blocks count as new.
func agreed(views []view) (view, bool) {
	for i := range views {
		votes, newest, oldest := 0, views[i], views[i].head
		for j := range views {
			if !views[i].same(&views[j]) {
				continue
			}
			votes++
			oldest = min(oldest, views[j].head)
			if views[j].head > newest.head {
				newest = views[j]
			}
		}
		if 2*votes > len(views) {
			newest.head = oldest
			return newest, true
		}
	}
	return view{}, false
}

// views asks all nodes at once. Those that do not answer, or with a state that is too old, are left out.
func (r *Registry) views(ctx context.Context) (out []view) {
	known := r.head.Load()
	for _, v := range askAll(ctx, r, r.view) {
		if v.head+maxLag >= known {
			out = append(out, v)
		}
	}
	if v, ok := agreed(out); ok && v.head > known {
		r.head.CompareAndSwap(known, v.head) // another question may have set a later one
	}
	return out
}

// view asks one node.
func (r *Registry) view(ctx context.Context, n *ethclient.Client) (v view, err error) {
	if v.head, err = n.BlockNumber(ctx); err != nil {
		return v, err
	}
	contract, id := bindings.NewIdentityRegistry(), r.o.ID.TokenID.ToBig()
	call := func(data []byte) ([]byte, error) {
		return n.CallContract(ctx, ethereum.CallMsg{From: common.Address{}, To: &r.o.ID.Registry, Data: data}, nil)
	}
	raw, err := call(contract.PackOwnerOf(id))
	switch {
	case reverted(err):
		v.missing = true
		return v, nil
	case err != nil:
		return v, err
	}
	if v.Owner, err = contract.UnpackOwnerOf(raw); err != nil {
		v.foreign = true
		return v, nil
	}
	if raw, err = call(contract.PackTokenURI(id)); err != nil {
		return v, err
	}
	if v.URI, err = contract.UnpackTokenURI(raw); err != nil {
		return v, errors.Join(errors.New("token URI"), err)
	}
	if raw, err = call(contract.PackGetAgentWallet(id)); err != nil {
		return v, err
	}
	v.Wallet, err = contract.UnpackGetAgentWallet(raw)
	return v, err
}
