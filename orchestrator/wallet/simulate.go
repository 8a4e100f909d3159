package wallet

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/orchestrator"
)

// Simulate executes a transaction as it would be signed at the newest block, which the
// result names, and compares it with the treasury's terms at that block. What the chain,
// the treasury or the wallet's own rules refuse is a Simulation that is not OK, with the
// reason.
func (w *Wallet) Simulate(ctx context.Context, o orchestrator.Origin, tx orchestrator.Tx) (orchestrator.Simulation, error) {
	return w.simulated(ctx, tx.ChainID, func(c *chain) (*call, error) { return c.callOf(o, &tx) })
}

// simulated executes the call that is made for a chain.
func (w *Wallet) simulated(ctx context.Context, chainID uint64, made func(*chain) (*call, error)) (orchestrator.Simulation, error) {
	c, err := w.on(chainID)
	if err != nil {
		return orchestrator.Simulation{}, err
	}
	var out orchestrator.Simulation
	err = c.with(ctx, func(e *endpoint) error {
		at, err := e.block(ctx, "latest")
		if err != nil {
			return err
		}
		out = orchestrator.Simulation{Block: uint64(at.Number), BlockHash: at.Hash, FeeWei: "0"}
		k, err := made(c)
		if errors.Is(err, repute.ErrInvalid) {
			out.Reason = err.Error()
			return nil
		}
		if err != nil {
			return err
		}
		return c.simulate(ctx, e, k, at, &out)
	})
	return out, err
}

func (c *chain) simulate(ctx context.Context, e *endpoint, k *call, at *head, out *orchestrator.Simulation) error {
	out.ThroughCall = k.by == byOperator
	v := verdict{caps: true, target: true, selector: true}
	if k.spends != nil {
		t := &terms{sender: k.signer.address(), treasury: c.Treasury}
		if err := e.look(ctx, t, k.spends, at); err != nil {
			return err
		}
		v = t.judge(k.spends, uint64(at.Time))
	}
	out.WithinCaps, out.TargetOK, out.SelectorOK, out.Reason = v.caps, v.target, v.selector, v.reason
	gas, reason, err := e.execute(ctx, k, at.Hash)
	if err != nil {
		return err
	}
	if out.Reason == "" {
		out.Reason = reason
	}
	if reason == "" && k.spends != nil && len(k.spends.Data) > 0 {
		out.Treasury, out.Logs = c.Treasury, e.logs(ctx, k, at.Hash)
	}
	tip, err := e.tip(ctx)
	if err != nil {
		return err
	}
	data, err := c.dataFee(ctx, e, k)
	if err != nil {
		return err
	}
	now := cost(gas, usual(at.base(), tip).limit)
	now.Add(now, data)
	out.Gas, out.FeeWei = gas, withHeadroom(now, c.Headroom).String()
	if out.Reason == "" {
		out.Reason, err = e.funds(ctx, k.signer.address(), at.Hash, now)
	}
	out.OK = out.Reason == ""
	return err
}

// maxTxGas is the most that a transaction may use on chains with EIP-7825.
const maxTxGas = 1 << 24

// execute runs a call at a block. gas is a limit with room for what a later block changes;
// reason is set where the chain refuses.
func (e *endpoint) execute(ctx context.Context, k *call, at common.Hash) (gas uint64, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	m := ethereum.CallMsg{From: k.signer.address(), To: &k.to, Data: k.data}
	if _, err := e.eth.CallContractAtHash(ctx, m, at); err != nil {
		return e.refusedOr("simulation", err)
	}
	gas, err = e.eth.EstimateGasAtBlockHash(ctx, m, at)
	if err != nil {
		return e.refusedOr("estimate of gas", err)
	}
	return max(gas, min(gas+gas/5, maxTxGas)), "", nil
}

func (e *endpoint) refusedOr(doing string, err error) (uint64, string, error) {
	if reason, refused := e.refusal(err); refused {
		return 0, reason, nil
	}
	return 0, "", e.failed(doing, err)
}

// funds tells what a sender lacks.
func (e *endpoint) funds(ctx context.Context, of common.Address, at common.Hash, need *big.Int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	has, err := e.eth.BalanceAtHash(ctx, of, at)
	if err != nil {
		return "", e.failed("balance", err)
	}
	if has.Cmp(need) < 0 {
		return fmt.Sprintf("the sender %s has %s wei, gas may cost %s", of, has, need), nil
	}
	return "", nil
}

// look reads a treasury's terms at a block, in one request.
func (e *endpoint) look(ctx context.Context, t *terms, s *spending, at *head) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	pinned := rpc.BlockNumberOrHashWithHash(at.Hash, false)
	qs := t.questions(s)
	answers := make([]hexutil.Bytes, len(qs)+1)
	batch := []rpc.BatchElem{{Method: "eth_getCode", Args: []any{t.treasury, pinned}, Result: &answers[0]}}
	for i, q := range qs {
		batch = append(batch, rpc.BatchElem{Method: "eth_call", Args: []any{map[string]any{"to": q.to, "data": hexutil.Bytes(q.data)}, pinned}, Result: &answers[i+1]})
	}
	if err := e.rpc.BatchCallContext(ctx, batch); err != nil {
		return e.failed("treasury's terms", err)
	}
	if t.code = len(answers[0]) > 0; batch[0].Error == nil && !t.code {
		t.unknown()
		return nil
	}
	for i, b := range batch {
		if b.Error != nil {
			return e.failed("treasury's terms", b.Error)
		}
		if i > 0 {
			if err := qs[i-1].answer(answers[i]); err != nil {
				return e.failed("treasury's terms", err)
			}
		}
	}
	return nil
}
