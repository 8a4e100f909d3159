package wallet

import (
	"cmp"
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/rules"
)

// Simulate executes a transaction as it would be signed at the newest block that two
// endpoints have, which the result names, and compares it with the treasury's terms at that block. What the chain,
// the treasury or the wallet's own rules refuse is a Simulation that is not OK, with the
// reason.
func (w *Wallet) Simulate(ctx context.Context, o transaction.Origin, tx transaction.Tx) (transaction.Simulation,
	error) {
	return w.simulated(ctx, tx.ChainID, func(c *chain) (*call, error) { return c.callOf(o, &tx) })
}

// simulated executes the call that is made for a chain. What the wallet's own rules refuse has a block too, on
// which endpoints agree, as readers compare simulations by it.
func (w *Wallet) simulated(ctx context.Context, chainID uint64,
	made func(*chain) (*call, error)) (transaction.Simulation, error) {
	c, err := w.on(chainID)
	if err != nil {
		return transaction.Simulation{}, err
	}
	k, refused := made(c)
	if refused == nil {
		return c.simulate(ctx, k)
	}
	if !errors.Is(refused, repute.ErrInvalid) {
		return transaction.Simulation{}, refused
	}
	_, at, err := agree(ctx, c, nil, func(context.Context, *endpoint, *head) (bool, error) { return true, nil },
		func(_, _ *bool) string { return "" })
	if err != nil {
		return transaction.Simulation{}, err
	}
	return transaction.Simulation{Block: uint64(at.Number), BlockHash: at.Hash, FeeWei: "0",
		Reason: refused.Error()}, nil
}

// simulate appraises a call and adds the wallet's own limits: ceilings of fees and the sender's
// balance.
func (c *chain) simulate(ctx context.Context, k *call) (out transaction.Simulation, err error) {
	a, err := c.appraise(ctx, k, true)
	if err != nil {
		return out, err
	}
	out = transaction.Simulation{Block: uint64(a.at.Number), BlockHash: a.at.Hash, Gas: a.gas,
		ThroughCall: k.by == rules.ByOperator,
		WithinCaps:  a.outcome.Caps, CallOK: a.outcome.Call, Reason: cmp.Or(a.outcome.Reason, a.reason)}
	if a.simulated {
		out.Treasury, out.Logs = c.Treasury, a.logs
	}
	now := rules.Cost(a.gas, c.Usual(a.at.base(), a.tip).Limit)
	now.Add(now, a.dataFee)
	most := c.Budget(c.field, nil)
	out.FeeWei = rules.Smaller(rules.WithHeadroom(now, c.Headroom), most.Wei).String()
	if out.Reason == "" {
		out.Reason = c.tooDear(a, most)
	}
	if out.Reason == "" {
		out.Reason = a.lacks(k, now)
	}
	out.OK = out.Reason == ""
	return out, nil
}

// tooDear returns the ceiling of fees that a call would exceed now, empty for none.
func (c *chain) tooDear(a *appraisal, most rules.Budget) string {
	most, err := most.ForGas(a.dataFee, c.Headroom)
	if err == nil {
		_, err = c.first(a, most)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// maxTxGas is the largest gas limit of a transaction on chains with EIP-7825.
const maxTxGas = 1 << 24

// execute executes a call at a block. gas is a limit with a fifth of room for changes in later blocks; reason is
// set if the chain refuses the call. eth_call comes first, as its error has the reason of a revert, which that of
// the estimate often lacks.
func (e *endpoint) execute(ctx context.Context, k *call, at common.Hash) (gas uint64, reason string, err error) {
	m := message(k.signer.Address(), k.to, k.data)
	if err := e.call(ctx, nil, "eth_call", m, pinned(at)); err != nil {
		return e.refusedOr("simulation", err)
	}
	var estimate hexutil.Uint64
	if err := e.call(ctx, &estimate, "eth_estimateGas", m, pinned(at)); err != nil {
		return e.refusedOr("estimate of gas", err)
	}
	gas = uint64(estimate)
	return max(gas, min(gas+gas/5, maxTxGas)), "", nil
}

// refusedOr separates a refusal by the chain, which is a result, from an endpoint that failed,
// which is an error.
func (e *endpoint) refusedOr(doing string, err error) (uint64, string, error) {
	if reason, refused := e.refusal(err); refused {
		return 0, reason, nil
	}
	return 0, "", e.failed(doing, err)
}

// readTerms reads a treasury's terms at a block, in one request. An address without code has no terms: nothing is
// allowed there.
func (e *endpoint) readTerms(ctx context.Context, t *rules.Terms, s *rules.Spending, at *head) error {
	qs := t.Questions(s)
	answers := make([]hexutil.Bytes, len(qs)+1)
	batch := []rpc.BatchElem{{Method: "eth_getCode", Args: []any{t.Treasury, pinned(at.Hash)}, Result: &answers[0]}}
	for i, q := range qs {
		batch = append(batch,
			rpc.BatchElem{Method: "eth_call", Args: []any{message(common.Address{}, q.To, q.Data), pinned(at.Hash)},
				Result: &answers[i+1]})
	}
	if err := e.batch(ctx, batch); err != nil {
		return e.failed("treasury's terms", err)
	}
	if t.Code = len(answers[0]) > 0; batch[0].Error == nil && !t.Code {
		t.NothingAllowed()
		return nil
	}
	for i, b := range batch {
		if b.Error != nil {
			return e.failed("treasury's terms", b.Error)
		}
		if i > 0 {
			if err := qs[i-1].Answer(answers[i]); err != nil {
				return e.failed("treasury's terms", err)
			}
		}
	}
	return nil
}

// emitted is a log of a simulated call.
type emitted struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

// simulatedBlock is a simulated block with the logs of its calls.
type simulatedBlock struct {
	Calls []struct {
		Logs []emitted `json:"logs"`
	} `json:"calls"`
}

// logs returns the logs that a call would emit at a block. simulated is false if the endpoint does not
// support eth_simulateV1.
func (e *endpoint) logs(ctx context.Context, k *call, at common.Hash) (out []types.Log, simulated bool) {
	request := map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{message(k.signer.Address(), k.to,
		k.data)}}}}
	var blocks []simulatedBlock
	if err := e.call(ctx, &blocks, "eth_simulateV1", request, pinned(at)); err != nil {
		return nil, false
	}
	for _, b := range blocks {
		for _, c := range b.Calls {
			for _, l := range c.Logs {
				out = append(out, types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data})
			}
		}
	}
	return out, true
}
