package devnet

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
)

// View reads the registries' state at one block through their own view
// functions: the truth that an index is checked against. Unknown agents give the
// registry's error where it reverts.
type View struct {
	dn *Devnet
	at *big.Int // nil for the newest block
}

// View reads at the newest block, whichever that is at each call.
func (d *Devnet) View() View { return View{d, nil} }

// ViewAt reads at a block of the present chain.
func (d *Devnet) ViewAt(block uint64) View { return View{d, new(big.Int).SetUint64(block)} }

// AgentCount is the number of agents, which is also the next id.
func (v View) AgentCount(ctx context.Context) (uint64, error) {
	word, err := v.dn.client.StorageAt(ctx, v.dn.chain.Identity, contracts.AgentCountSlot(), v.at)
	if err != nil {
		return 0, fmt.Errorf("read agent count: %w", err)
	}
	return new(big.Int).SetBytes(word).Uint64(), nil
}

// OwnerOf is the agent's owner.
func (v View) OwnerOf(ctx context.Context, agent uint64) (common.Address, error) {
	return ask(ctx, v, v.dn.chain.Identity, v.dn.views.OwnerOf(tokenID(agent)))
}

// TokenURI is the agent's URI.
func (v View) TokenURI(ctx context.Context, agent uint64) (string, error) {
	return ask(ctx, v, v.dn.chain.Identity, v.dn.views.TokenURI(tokenID(agent)))
}

// AgentWallet is the agent's wallet, zero when cleared.
func (v View) AgentWallet(ctx context.Context, agent uint64) (common.Address, error) {
	return ask(ctx, v, v.dn.chain.Identity, v.dn.views.AgentWallet(tokenID(agent)))
}

// Approved is the agent's approved address, zero for none.
func (v View) Approved(ctx context.Context, agent uint64) (common.Address, error) {
	return ask(ctx, v, v.dn.chain.Identity, v.dn.views.Approved(tokenID(agent)))
}

// Metadata is the value of a metadata key, empty when unset.
func (v View) Metadata(ctx context.Context, agent uint64, key string) ([]byte, error) {
	return ask(ctx, v, v.dn.chain.Identity, v.dn.views.Metadata(tokenID(agent), key))
}

// Clients lists who ever rated the agent, in order of their first rating.
func (v View) Clients(ctx context.Context, agent uint64) ([]common.Address, error) {
	return ask(ctx, v, v.dn.chain.Reputation, v.dn.views.Clients(tokenID(agent)))
}

// LastIndex is how many ratings the client gave the agent.
func (v View) LastIndex(ctx context.Context, agent uint64, client common.Address) (uint64, error) {
	return ask(ctx, v, v.dn.chain.Reputation, v.dn.views.LastIndex(tokenID(agent), client))
}

// Summary is getSummary over the clients; an empty tag does not filter.
func (v View) Summary(ctx context.Context, agent uint64, clients []common.Address, tag1, tag2 string) (repute.Summary,
	error) {
	return ask(ctx, v, v.dn.chain.Reputation, v.dn.views.Summary(tokenID(agent), clients, tag1, tag2))
}

// FeedbackView is one rating as the registry keeps it.
type FeedbackView struct {
	Client     common.Address
	Index      uint64
	Value      *big.Int
	Decimals   uint8
	Tag1, Tag2 string
	Revoked    bool
}

// AllFeedback lists every rating of the agent, revoked ones included, by client
// in order of their first rating, then by index.
func (v View) AllFeedback(ctx context.Context, agent uint64) ([]FeedbackView, error) {
	r := v.dn.reputation
	out, err := ask(ctx, v, v.dn.chain.Reputation, question(
		r.PackReadAllFeedback(token(agent), nil, "", "", true), r.UnpackReadAllFeedback))
	if err != nil {
		return nil, err
	}
	list := make([]FeedbackView, len(out.Clients))
	for i := range list {
		list[i] = FeedbackView{out.Clients[i], out.FeedbackIndexes[i], out.Values[i], out.ValueDecimals[i],
			out.Tag1s[i], out.Tag2s[i], out.RevokedStatuses[i]}
	}
	return list, nil
}

// ResponseCount counts the responses to a rating, of everybody.
func (v View) ResponseCount(ctx context.Context, agent uint64, client common.Address, index uint64) (uint64, error) {
	return ask(ctx, v, v.dn.chain.Reputation, v.dn.views.Responses(tokenID(agent), client, index))
}

// ValidationStatus is the state of a request.
func (v View) ValidationStatus(ctx context.Context, request common.Hash) (contracts.Validation, error) {
	return ask(ctx, v, v.dn.chain.Validations[0], v.dn.views.Validation(request))
}

// Validations lists the agent's requests by hash.
func (v View) Validations(ctx context.Context, agent uint64) ([]common.Hash, error) {
	out, err := ask(ctx, v, v.dn.chain.Validations[0], v.dn.views.Requests(tokenID(agent)))
	hashes := make([]common.Hash, len(out))
	for i := range out {
		hashes[i] = out[i]
	}
	return hashes, err
}

// ValidationSummary counts the agent's answered requests and averages the latest
// answers, rounded down; no validators and an empty tag do not filter.
func (v View) ValidationSummary(ctx context.Context, agent uint64, validators []common.Address,
	tag string) (count uint64, average uint8, err error) {
	r := v.dn.validation
	out, err := ask(ctx, v, v.dn.chain.Validations[0], question(
		r.PackGetValidationSummary(token(agent), validators, tag), r.UnpackGetValidationSummary))
	return out.Count, out.AvgResponse, err
}

// question is a call that an index never makes, so that contracts.Views lacks it.
func question[T any](data []byte, read func([]byte) (T, error)) contracts.Question[T] {
	return contracts.Question[T]{Data: data, Read: read}
}

// ask calls a view function of the contract.
func ask[T any](ctx context.Context, v View, contract common.Address, q contracts.Question[T]) (out T, err error) {
	raw, err := v.dn.client.CallContract(ctx, ethereum.CallMsg{To: &contract, Data: q.Data}, v.at)
	if err == nil {
		out, err = q.Read(raw)
	}
	if err != nil {
		return out, fmt.Errorf("call %s: %w", contract, err)
	}
	return out, nil
}
