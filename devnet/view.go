package devnet

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
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

// identitySlot is the first word of the identity registry's namespace: the
// number of agents.
const identitySlot = "0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00"

// AgentCount is the number of agents, which is also the next id.
func (v View) AgentCount(ctx context.Context) (uint64, error) {
	word, err := v.dn.client.StorageAt(ctx, v.dn.chain.Identity, common.HexToHash(identitySlot), v.at)
	if err != nil {
		return 0, fmt.Errorf("read agent count: %w", err)
	}
	return new(big.Int).SetBytes(word).Uint64(), nil
}

// OwnerOf is the agent's owner.
func (v View) OwnerOf(ctx context.Context, agent uint64) (common.Address, error) {
	r := v.dn.identity
	return ask(ctx, v, v.dn.chain.Identity, r.PackOwnerOf(token(agent)), r.UnpackOwnerOf)
}

// TokenURI is the agent's URI.
func (v View) TokenURI(ctx context.Context, agent uint64) (string, error) {
	r := v.dn.identity
	return ask(ctx, v, v.dn.chain.Identity, r.PackTokenURI(token(agent)), r.UnpackTokenURI)
}

// AgentWallet is the agent's wallet, zero when cleared.
func (v View) AgentWallet(ctx context.Context, agent uint64) (common.Address, error) {
	r := v.dn.identity
	return ask(ctx, v, v.dn.chain.Identity, r.PackGetAgentWallet(token(agent)), r.UnpackGetAgentWallet)
}

// Approved is the agent's approved address, zero for none.
func (v View) Approved(ctx context.Context, agent uint64) (common.Address, error) {
	r := v.dn.identity
	return ask(ctx, v, v.dn.chain.Identity, r.PackGetApproved(token(agent)), r.UnpackGetApproved)
}

// Metadata is the value of a metadata key, empty when unset.
func (v View) Metadata(ctx context.Context, agent uint64, key string) ([]byte, error) {
	r := v.dn.identity
	return ask(ctx, v, v.dn.chain.Identity, r.PackGetMetadata(token(agent), key), r.UnpackGetMetadata)
}

// Clients lists who ever rated the agent, in order of their first rating.
func (v View) Clients(ctx context.Context, agent uint64) ([]common.Address, error) {
	r := v.dn.reputation
	return ask(ctx, v, v.dn.chain.Reputation, r.PackGetClients(token(agent)), r.UnpackGetClients)
}

// LastIndex is how many ratings the client gave the agent.
func (v View) LastIndex(ctx context.Context, agent uint64, client common.Address) (uint64, error) {
	r := v.dn.reputation
	return ask(ctx, v, v.dn.chain.Reputation, r.PackGetLastIndex(token(agent), client), r.UnpackGetLastIndex)
}

// Summary is getSummary over the clients; an empty tag does not filter.
func (v View) Summary(ctx context.Context, agent uint64, clients []common.Address, tag1, tag2 string) (repute.Summary,
	error) {
	r := v.dn.reputation
	out, err := ask(ctx, v, v.dn.chain.Reputation, r.PackGetSummary(token(agent), clients, tag1, tag2),
		r.UnpackGetSummary)
	if err != nil {
		return repute.Summary{}, err
	}
	return repute.Summary{Count: out.Count,
		Amount: repute.Amount{Value: out.SummaryValue, Decimals: out.SummaryValueDecimals}}, nil
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
	out, err := ask(ctx, v, v.dn.chain.Reputation, r.PackReadAllFeedback(token(agent), nil, "", "", true),
		r.UnpackReadAllFeedback)
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
	r := v.dn.reputation
	return ask(ctx, v, v.dn.chain.Reputation, r.PackGetResponseCount(token(agent), client, index, nil),
		r.UnpackGetResponseCount)
}

// ValidationView is a request's latest state. The registry cannot distinguish a pending
// request from one answered with 0.
type ValidationView struct {
	Validator  common.Address
	Agent      uint64
	Response   uint8
	Hash       common.Hash
	Tag        string
	LastUpdate uint64 // Unix seconds of the request or its latest answer
}

// ValidationStatus is the state of a request.
func (v View) ValidationStatus(ctx context.Context, request common.Hash) (ValidationView, error) {
	r := v.dn.validation
	out, err := ask(ctx, v, v.dn.chain.Validations[0], r.PackGetValidationStatus(request), r.UnpackGetValidationStatus)
	if err != nil {
		return ValidationView{}, err
	}
	return ValidationView{out.ValidatorAddress, out.AgentId.Uint64(), out.Response, out.ResponseHash, out.Tag,
		out.LastUpdate.Uint64()}, nil
}

// Validations lists the agent's requests by hash.
func (v View) Validations(ctx context.Context, agent uint64) ([]common.Hash, error) {
	r := v.dn.validation
	out, err := ask(ctx, v, v.dn.chain.Validations[0], r.PackGetAgentValidations(token(agent)),
		r.UnpackGetAgentValidations)
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
	out, err := ask(ctx, v, v.dn.chain.Validations[0], r.PackGetValidationSummary(token(agent), validators, tag),
		r.UnpackGetValidationSummary)
	return out.Count, out.AvgResponse, err
}

// registries hold the parsed bindings, which are expensive to make.
type registries struct {
	identity   *bindings.IdentityRegistry
	reputation *bindings.ReputationRegistry
	validation *bindings.ValidationRegistry
}

func newRegistries() registries {
	return registries{bindings.NewIdentityRegistry(), bindings.NewReputationRegistry(),
		bindings.NewValidationRegistry()}
}

// ask calls a view function of the contract.
func ask[T any](ctx context.Context, v View, contract common.Address, data []byte, unpack func([]byte) (T, error)) (T,
	error) {
	bound := v.dn.identity.Instance(v.dn.client, contract) // only the address matters to a call
	out, err := bind.Call(bound, &bind.CallOpts{Context: ctx, BlockNumber: v.at}, data, unpack)
	if err != nil {
		return out, fmt.Errorf("call %s: %w", contract, err)
	}
	return out, nil
}
