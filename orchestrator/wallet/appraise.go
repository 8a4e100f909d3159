package wallet

import (
	"context"
	"fmt"
	"math/big"
	"reflect"

	"github.com/ethereum/go-ethereum/core/types"

	"repute/orchestrator/wallet/rules"
)

// opinion is one endpoint's answer about a call at a block.
type opinion struct {
	outcome   rules.Outcome // decision of the treasury's terms, if they were requested
	reason    string        // why the chain would refuse the call; empty: it would not
	gas       uint64        // limit; 0 where the chain would refuse
	logs      []types.Log   // that it would emit
	simulated bool          // the endpoint can simulate logs
	balance   *big.Int      // of the sender, in wei
	tip       *big.Int      // wei per gas
	dataFee   *big.Int      // wei
	oracle    bool          // the chain takes a fee for data
}

// appraisal is the answer about a call on which endpoints agree.
type appraisal struct {
	opinion
	at *head
}

// appraise evaluates a call at the newest block. Gas and tip are estimates of the endpoints and may differ: of gas
// the upper median is used, so that one low estimate does not make the transaction fail, and of tips the lower one,
// so that one high tip does not make it dear. Everything else must agree.
func (c *chain) appraise(ctx context.Context, k *call, withTerms bool) (*appraisal, error) {
	list, at, err := agree(ctx, c, nil, func(ctx context.Context, e *endpoint, at *head) (opinion, error) {
		return c.opinion(ctx, e, k, at, withTerms)
	}, (*opinion).differs)
	if err != nil {
		return nil, err
	}
	out := &appraisal{list[0], at}
	var gas, tips []*big.Int
	for i := range list {
		gas, tips = append(gas, new(big.Int).SetUint64(list[i].gas)), append(tips, list[i].tip)
		if list[i].simulated && !out.simulated {
			out.simulated, out.logs = true, list[i].logs
		}
	}
	out.gas, out.tip = rules.Median(gas, true).Uint64(), rules.Median(tips, false)
	c.knowOracle(out.oracle)
	return out, nil
}

// opinion requests from one endpoint everything that a call is decided by: the treasury's terms,
// the outcome of execution, gas, balance and fees.
func (c *chain) opinion(ctx context.Context, e *endpoint, k *call, at *head, withTerms bool) (o opinion, err error) {
	o.outcome = rules.Outcome{Caps: true, Call: true}
	if withTerms && k.spends != nil {
		t := &rules.Terms{Sender: k.signer.Address(), Treasury: c.Treasury}
		if err := e.readTerms(ctx, t, k.spends, at); err != nil {
			return o, err
		}
		o.outcome = t.Judge(k.spends)
	}
	if o.gas, o.reason, err = e.execute(ctx, k, at.Hash); err != nil {
		return o, err
	}
	if withTerms && o.reason == "" && k.spends != nil && len(k.spends.Data) > 0 {
		o.logs, o.simulated = e.logs(ctx, k, at.Hash)
	}
	if o.balance, err = e.amount(ctx, "balance", "eth_getBalance", k.signer.Address(), pinned(at.Hash)); err != nil {
		return o, err
	}
	if o.tip, err = e.tip(ctx); err != nil {
		return o, err
	}
	o.dataFee, o.oracle, err = c.dataFee(ctx, e, k, at)
	return o, err
}

// differs returns how two endpoints contradict each other about a call, empty if they do not. The
// texts of refusals may differ.
func (o *opinion) differs(other *opinion) string {
	switch {
	case o.outcome != other.outcome:
		return fmt.Sprintf("of the treasury's terms %q and %q", o.outcome.Reason, other.outcome.Reason)
	case (o.reason == "") != (other.reason == ""):
		return fmt.Sprintf("of the simulation %q and %q", o.reason, other.reason)
	case o.balance.Cmp(other.balance) != 0:
		return fmt.Sprintf("that the sender has %s and %s wei", o.balance, other.balance)
	case o.oracle != other.oracle:
		return fmt.Sprintf("that the oracle of fees for data is there: %v and %v", o.oracle, other.oracle)
	case o.dataFee.Cmp(other.dataFee) != 0:
		return fmt.Sprintf("that the transaction's data cost %s and %s wei", o.dataFee, other.dataFee)
	case o.simulated && other.simulated && !reflect.DeepEqual(o.logs, other.logs):
		return fmt.Sprintf("that the call emits %d and %d events, which are not the same", len(o.logs), len(other.logs))
	}
	return ""
}

// lacks returns what the sender cannot pay, empty for nothing.
func (a *appraisal) lacks(k *call, need *big.Int) string {
	if a.balance.Cmp(need) < 0 {
		return fmt.Sprintf("the sender %s has %s wei, gas may cost %s", k.signer.Address(), a.balance, need)
	}
	return ""
}
