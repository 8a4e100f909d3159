package safety

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/query"
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
	"validationResponse(bytes32,uint8,string,bytes32,string)":                answersRequest,
}

// answersRequest marks the function that names a request, not the agent.
const answersRequest = -2

// rates reports whether a function says how good an agent is. Such functions are refused also for agents of the same
// controllers.
func rates(signature string) bool {
	return strings.HasPrefix(signature, "giveFeedback(") || strings.HasPrefix(signature, "validationResponse(")
}

// Records are the identity and trust records, on one chain, of an agent that runs and of those
// that it works for.
type Records struct {
	Db         *store.DB
	Registries []Registries
	ChainID    uint64
	Mine       []repute.AgentID
}

// MayTouch refuses what would change the identity or trust records of the agent that runs,
// or of one that it works for (OpenFi agent standard, safety rule 5), and ratings of agents
// that the same addresses control. repute.ErrInvalid says which.
func (k *Records) MayTouch(ctx context.Context, tx *transaction.Tx) error {
	for i := range k.Registries {
		r := &k.Registries[i]
		if r.ChainID != k.ChainID || !r.Has(tx.Target) {
			continue
		}
		for signature, argument := range ownArgument {
			if !bytes.HasPrefix(tx.Data, crypto.Keccak256([]byte(signature))[:4]) {
				continue
			}
			if err := k.mayWrite(ctx, tx, signature, argument); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayWrite is mayTouch of one function.
func (k *Records) mayWrite(ctx context.Context, tx *transaction.Tx, signature string, argument int) error {
	if len(k.Mine) == 0 {
		return nil
	}
	subject, err := k.subjectOf(ctx, tx, argument)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return transaction.Refuse("self", "it cannot be told whose records this changes (%s): %v", signature, err)
	case err != nil:
		return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	for _, id := range k.Mine {
		if subject == nil || *subject == id.TokenID {
			return transaction.Refuse("self",
				"an agent does not change its own identity or trust records, nor those of one that it works for (%s)",
				signature)
		}
	}
	if !rates(signature) {
		return nil
	}
	return k.mayRate(ctx, repute.AgentID{ChainID: k.ChainID, Registry: k.Mine[0].Registry, TokenID: *subject})
}

// subjectOf is the agent whose records a function changes; nil where it changes those of
// whatever its caller owns, or its arguments are cut off. repute.ErrNotFound: the index does
// not know the request that is answered.
func (k *Records) subjectOf(ctx context.Context, tx *transaction.Tx, argument int) (*repute.TokenID, error) {
	at, args := max(argument, 0), tx.Data[4:]
	if argument == -1 || len(args) < 32*(at+1) {
		return nil, nil
	}
	word := args[32*at : 32*(at+1)]
	if argument == answersRequest {
		token, err := query.ValidationSubject(ctx, k.Db, k.ChainID, tx.Target, common.BytesToHash(word))
		return &token, err
	}
	return new(repute.TokenID).SetBytes32(word), nil
}

// mayRate refuses ratings of an agent that has a controller in common with one of mine: a second
// wallet does not make another rater.
func (k *Records) mayRate(ctx context.Context, subject repute.AgentID) error {
	controllers, err := k.controllers(ctx, subject)
	if errors.Is(err, repute.ErrNotFound) {
		return transaction.Refuse("self", "agent %s is not indexed: it cannot be told whose it is", subject)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	for _, id := range k.Mine {
		own, err := k.controllers(ctx, id)
		if err != nil && !errors.Is(err, repute.ErrNotFound) {
			return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
		}
		for _, a := range own {
			if slices.Contains(controllers, a) {
				return transaction.Refuse("self",
					"agent %s is controlled by %s, as agent %s is: nobody rates an agent of its own", subject,
					a, id)
			}
		}
	}
	return nil
}

// controllers are the addresses that an agent is controlled by or paid at.
func (k *Records) controllers(ctx context.Context, id repute.AgentID) (out []common.Address, err error) {
	a, _, err := query.Agent(ctx, k.Db, id, repute.At{Finality: repute.Latest})
	for _, address := range []common.Address{a.Owner, a.Wallet, a.Approved} {
		if address != (common.Address{}) {
			out = append(out, address)
		}
	}
	return out, err
}

// Has reports whether an address is one of the registries.
func (r *Registries) Has(a common.Address) bool {
	return a == r.Identity || a == r.Reputation || slices.Contains(r.Validations, a)
}

// hasLogs tells of a transaction whose logs must be seen: it had an effect, on a chain where
// the agent has records. Treasury and registries emit an event with each call, so none at
// all are some that were too many to keep.
func (k *Records) hasLogs(sent *transaction.Sent) bool {
	known := slices.ContainsFunc(k.Registries, func(r Registries) bool { return r.ChainID == k.ChainID })
	return sent.OK && known && len(k.Mine) > 0
}

// MayLog is mayTouch by what registries say that a transaction did, or would do.
func (k *Records) MayLog(ctx context.Context, logs []types.Log) error {
	for i := range logs {
		l := &logs[i]
		registry := slices.ContainsFunc(k.Registries, func(r Registries) bool {
			return r.ChainID == k.ChainID &&
				r.Has(l.Address)
		})
		if !registry || len(k.Mine) == 0 {
			continue
		}
		event, err := contracts.Decode(*l)
		subject, one := repute.TokenID{}, false
		if err == nil {
			subject, one = repute.AgentOf(event)
		}
		for _, id := range k.Mine {
			if one && subject == id.TokenID || err != nil && names(l, id.TokenID) {
				return transaction.Refuse("self",
					"an agent does not change its own identity or trust records, nor those of one that it works for, through others (registry %s)", l.Address)
			}
		}
		if one && judges(event) {
			if err := k.mayRate(ctx, repute.AgentID{ChainID: k.ChainID, Registry: k.Mine[0].Registry,
				TokenID: subject}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Broken says which transaction of a run changed records that an agent must not change, by its logs, empty for none.
// records returns the records of the agent on a chain. The error is one of the runtime.
func Broken(ctx context.Context, receipts []repute.Receipt, records func(chainID uint64) *Records) (string, error) {
	broken := ""
	for _, r := range receipts {
		var sent transaction.Sent
		var logs []types.Log
		if r.Kind != repute.CallTransaction || !r.Done || json.Unmarshal(r.Result, &sent) != nil ||
			len(sent.Result) == 0 &&
				!records(r.Chain).hasLogs(&sent) {
			continue
		}
		if err := json.Unmarshal(sent.Result, &logs); err != nil {
			return fmt.Sprintf("the logs of transaction %s are not there or cannot be read", sent.Hash), nil
		}
		if err := records(r.Chain).MayLog(ctx, logs); errors.Is(err, journal.ErrRuntime) {
			return broken, err
		} else if err != nil {
			broken = fmt.Sprintf("transaction %s: %v", sent.Hash, err)
		}
	}
	return broken, nil
}

// judges tells the events that say how good an agent is.
func judges(e repute.Event) bool {
	return e.Kind() == repute.KindNewFeedback || e.Kind() == repute.KindValidationResponse
}

// names tells whether a log that nobody can read has an agent's number among its topics.
func names(l *types.Log, token repute.TokenID) bool {
	return len(l.Topics) > 1 && slices.Contains(l.Topics[1:], common.Hash(token.Bytes32()))
}
