// Package eventlog encodes events as the logs of their contracts, for chains that are not real: the
// inverse of contracts.Decode.
//
// Registries.Log encodes one event, with the address of the registry that emits it. Register, Move, SetURI
// and Feedback return the logs of whole transactions in the order in which the registries leave them. The place
// of a log on the chain is left to the caller. The encoding of the registries' events follows from the ABIs of the
// bindings, and not from the tables by which package contracts decodes, so that a fault is not in both.
//
// It panics on an event that it does not know, which is a bug of the caller.
package eventlog

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
)

// Registries are the addresses whose logs are built.
type Registries struct{ Identity, Reputation, Validation common.Address }

// Gateway is a feedback gateway whose logs are built.
var Gateway = common.HexToAddress("0x8004f00000000000000000000000000000000001")

// Log encodes one event as its registry emits it.
func (r Registries) Log(e repute.Event) types.Log {
	if ticket, ok := e.(repute.TicketConsumed); ok {
		return ticketLog(ticket)
	}
	address, topics, data := r.parts(e)
	ev := event(e.Kind())
	packed, err := ev.Inputs.NonIndexed().Pack(data...)
	must(err)
	l := types.Log{Address: address, Topics: []common.Hash{ev.ID}, Data: packed}
	for _, topic := range topics {
		made, err := abi.MakeTopics([]any{topic})
		must(err)
		l.Topics = append(l.Topics, made[0][0])
	}
	return l
}

// ticketLog encodes TicketConsumed with three indexed arguments.
func ticketLog(e repute.TicketConsumed) types.Log {
	word := func(a common.Address) common.Hash { return common.BytesToHash(a[:]) }
	agent := word(e.Agent)
	return types.Log{Address: Gateway, Topics: []common.Hash{contracts.GatewayTopics()[0], e.TicketID, word(e.Payer),
		e.TokenID.Bytes32()}, Data: append(agent[:], e.FeedbackHash[:]...)}
}

// parts returns an event's address, indexed and plain arguments in ABI order.
func (r Registries) parts(e repute.Event) (at common.Address, topics, data []any) {
	switch e := e.(type) {
	case repute.NewFeedback:
		return r.Reputation, []any{e.TokenID.ToBig(), e.Client, e.Tag1},
			[]any{e.Index, e.Value, e.Decimals, e.Tag1, e.Tag2, e.Endpoint, e.URI, e.FeedbackHash}
	case repute.FeedbackRevoked:
		return r.Reputation, []any{e.TokenID.ToBig(), e.Client, e.Index}, nil
	case repute.ResponseAppended:
		return r.Reputation, []any{e.TokenID.ToBig(), e.Client, e.Responder}, []any{e.Index, e.URI, e.ResponseHash}
	case repute.ValidationRequest:
		return r.Validation, []any{e.Validator, e.TokenID.ToBig(), e.RequestHash}, []any{e.URI}
	case repute.ValidationResponse:
		return r.Validation, []any{e.Validator, e.TokenID.ToBig(), e.RequestHash},
			[]any{e.Response, e.URI, e.ResponseHash, e.Tag}
	}
	topics, data = identityParts(e)
	return r.Identity, topics, data
}

func identityParts(e repute.Event) (topics, data []any) {
	switch e := e.(type) {
	case repute.Transfer:
		return []any{e.From, e.To, e.TokenID.ToBig()}, nil
	case repute.Registered:
		return []any{e.TokenID.ToBig(), e.Owner}, []any{e.URI}
	case repute.URIUpdated:
		return []any{e.TokenID.ToBig(), e.UpdatedBy}, []any{e.URI}
	case repute.MetadataSet:
		return []any{e.TokenID.ToBig(), e.Key}, []any{e.Key, e.Value}
	case repute.MetadataUpdate:
		return nil, []any{e.TokenID.ToBig()}
	case repute.BatchMetadataUpdate:
		return nil, []any{e.From.ToBig(), e.To.ToBig()}
	case repute.Approval:
		return []any{e.Owner, e.Approved, e.TokenID.ToBig()}, nil
	case repute.ApprovalForAll:
		return []any{e.Owner, e.Operator}, []any{e.Approved}
	case repute.Upgraded:
		return []any{e.Implementation}, nil
	case repute.Initialized:
		return nil, []any{e.Version}
	case repute.OwnershipTransferred:
		return []any{e.Previous, e.New}, nil
	case repute.EIP712DomainChanged:
		return nil, nil
	}
	panic(fmt.Sprintf("eventlog: no encoding for %T", e))
}

// event finds the ABI of an event kind; its name is the same in every registry.
func event(k repute.EventKind) abi.Event {
	for _, meta := range []*bind.MetaData{&bindings.IdentityRegistryMetaData,
		&bindings.ReputationRegistryMetaData, &bindings.ValidationRegistryMetaData} {
		parsed, err := meta.ParseABI()
		must(err)
		if ev, ok := parsed.Events[k.String()]; ok {
			return ev
		}
	}
	panic("eventlog: no ABI for " + k.String())
}

func must(err error) {
	if err != nil {
		panic("eventlog: " + err.Error())
	}
}

// Tx encodes events as the logs of one transaction.
func (r Registries) Tx(events ...repute.Event) []types.Log {
	logs := make([]types.Log, 0, len(events))
	for _, e := range events {
		logs = append(logs, r.Log(e))
	}
	return logs
}

// Register returns the logs of register(string).
func (r Registries) Register(id uint64, owner common.Address, uri string) []types.Log {
	return r.Tx(
		repute.Transfer{To: owner, TokenID: Token(id)},
		repute.MetadataUpdate{TokenID: Token(id)},
		repute.Registered{TokenID: Token(id), URI: uri, Owner: owner},
		repute.MetadataSet{TokenID: Token(id), Key: "agentWallet", Value: owner.Bytes()})
}

// Move returns the logs of a transfer, which clears the wallet first.
func (r Registries) Move(id uint64, from, to common.Address) []types.Log {
	return r.Tx(
		repute.MetadataSet{TokenID: Token(id), Key: "agentWallet", Value: []byte{}},
		repute.Transfer{From: from, To: to, TokenID: Token(id)})
}

// SetURI returns the logs of setAgentURI.
func (r Registries) SetURI(id uint64, by common.Address, uri string) []types.Log {
	return r.Tx(repute.MetadataUpdate{TokenID: Token(id)},
		repute.URIUpdated{TokenID: Token(id), URI: uri, UpdatedBy: by})
}

// Feedback returns the log of giveFeedback with a whole value and one tag.
func (r Registries) Feedback(id uint64, client common.Address, index uint64, value int64, tag string) []types.Log {
	return r.Tx(repute.NewFeedback{TokenID: Token(id), Client: client, Index: index,
		Value: big.NewInt(value), Tag1: tag})
}

// Token makes a token id of a small number.
func Token(id uint64) (t repute.TokenID) {
	t.SetUint64(id)
	return t
}

// Account returns the n-th of a fixed series of addresses.
func Account(n uint64) common.Address {
	return common.BigToAddress(new(big.Int).SetUint64(0xacc0_0000_0000 + n))
}
