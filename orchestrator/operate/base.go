package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/store/walletdb"
)

// The index of a treasury's events is waited for where it is behind the chain.
const (
	indexWait  = 5 * time.Second
	indexPause = 200 * time.Millisecond
)

// policyBase returns the current policy of an agent, whose fields a change keeps unless it names them: the policy
// on which endpoints agree at one block. It MUST equal the last indexed PolicySet event at or below that block:
// setPolicy writes all fields, so that an endpoint that lies about one could have the owner sign it.
// repute.ErrConflict if they differ; repute.ErrUnavailable if the index is behind the block, after a wait of
// indexWait, or absent.
func (o *Operator) policyBase(ctx context.Context, slug string) (p bindings.AgentPoliciesOutput, err error) {
	for end := time.Now().Add(indexWait); ; {
		if p, err = o.confirmedPolicy(ctx, slug); !errors.Is(err, errIndexBehind) || time.Now().After(end) {
			return p, err
		}
		select {
		case <-time.After(indexPause):
		case <-ctx.Done():
			return p, err
		}
	}
}

// errIndexBehind is returned when the treasury's events are not indexed up to the block of a
// policy.
// It is the only error after which policyBase looks again: the index catches up by itself, while any other difference
// needs a person.
var errIndexBehind = fmt.Errorf("the treasury's events are not indexed that far: try again: %w", repute.ErrUnavailable)

// confirmedPolicy compares the policy on which endpoints agree with the indexed one.
//
// The order matters. The chain is read first, and the index after it, so that an index which has caught up in between
// can only know more. A difference is a conflict only where the cursor is at or above the block that was read; below
// it, the event that would explain the policy may still be on its way.
func (o *Operator) confirmedPolicy(ctx context.Context, slug string) (p bindings.AgentPoliciesOutput, err error) {
	at, err := o.treasury()
	if err != nil {
		return p, err
	}
	now, p, err := o.policyNow(ctx, slug)
	if err != nil {
		return p, err
	}
	t, err := walletdb.ReadTreasury(ctx, o.db, o.o.ExecutionChain, at)
	if errors.Is(err, repute.ErrNotFound) {
		return p, fmt.Errorf("policy of %s: %s: %w", slug, err.Error(), errIndexBehind)
	}
	if err != nil {
		return p, err
	}
	// The event is looked up at or below the block of the policy: a later one says nothing about the values at that
	// block.
	set, err := walletdb.LastPolicySet(ctx, o.db, t, crypto.Keccak256Hash([]byte(slug)), now.Block)
	if err != nil {
		return p, err
	}
	differ, err := policyDiffers(set.Fields, &p)
	if err != nil || differ == "" {
		return p, err
	}
	said := fmt.Sprintf("policy of %s at block %d (%s): %s", slug, now.Block, now.BlockHash, differ)
	if t.Cursor.Number < now.Block {
		return p, fmt.Errorf("%s, indexed up to block %d: %w", said, t.Cursor.Number, errIndexBehind)
	}
	return p, repute.Conflict("%s (%s): an endpoint or the index is wrong, so nothing is made of it", said,
		setIn(set.Tx))
}

// setIn describes the indexed event for an error text.
// The transaction tells a person which change to look up in an explorer, to decide whether the endpoint or the index
// is wrong.
func setIn(tx common.Hash) string {
	if (tx == common.Hash{}) {
		return "no PolicySet is indexed"
	}
	return "the last PolicySet that is indexed is of transaction " + tx.Hex()
}

// policyDiffers returns how a policy on the chain differs from the event that set it; empty if it does not. Without
// an event the policy MUST be empty, since no other function of the treasury writes it.
func policyDiffers(event json.RawMessage, p *bindings.AgentPoliciesOutput) (string, error) {
	set := map[string]any{}
	if len(event) > 0 {
		if err := json.Unmarshal(event, &set); err != nil {
			return "", fmt.Errorf("stored PolicySet: %w", err)
		}
	}
	return strings.Join(differences(set, len(event) > 0, reflect.ValueOf(p).Elem()), ", "), nil
}

// differences compares the fields of a policy with the fields of the same names of an event. Fields
// that no event sets count the spending.
//
// Both sides are compared as text in the form of contracts.Plain, which is the form in which events are stored. A
// field of the policy that the event lacks is not compared, and without any event every field that is not zero is a
// difference.
func differences(set map[string]any, known bool, p reflect.Value) (out []string) {
	for i := range p.NumField() {
		name := p.Type().Field(i).Name
		name = strings.ToLower(name[:1]) + name[1:]
		now := fmt.Sprint(contracts.Plain(p.Field(i).Interface()))
		then, has := set[name]
		switch {
		case known && has && fmt.Sprint(then) != now:
			out = append(out, fmt.Sprintf("%s is %s on the chain and %v in the index", name, now, then))
		case !known && now != "0" && now != "false" && now != (common.Address{}).Hex():
			out = append(out, fmt.Sprintf("%s is %s on the chain and nothing in the index", name, now))
		}
	}
	return out
}
