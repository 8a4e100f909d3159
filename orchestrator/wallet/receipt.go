package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator/wallet/rules"
	"repute/store/walletdb"
	"repute/x402"
)

// maxLogs bounds the stored logs of a transaction, in bytes of JSON.
const maxLogs = 256 << 10

// keptLogs returns a transaction's logs as JSON. Above maxLogs it keeps only the logs of the treasury,
// the registries and the tokens, which show what was paid and whose records changed, and nil if these
// exceed maxLogs too.
func (c *chain) keptLogs(logs []*types.Log) (json.RawMessage, error) {
	all, err := json.Marshal(logs)
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	if len(all) <= maxLogs {
		return all, nil
	}
	ours := slices.Concat([]common.Address{c.Treasury, c.Registries.Identity, c.Registries.Reputation},
		c.Registries.Validations, c.Tokens)
	few, err := json.Marshal(slices.DeleteFunc(slices.Clone(logs),
		func(l *types.Log) bool { return !slices.Contains(ours, l.Address) }))
	if err != nil || len(few) > maxLogs {
		return nil, err
	}
	return few, nil
}

// mined finds the signed form of an intent that is in a block, according to one endpoint. good
// reports whether it succeeded. The zero Mining means that none is mined.
func (c *chain) mined(ctx context.Context, e *endpoint, in *walletdb.Intent) (m walletdb.Mining, good bool, err error) {
	for _, a := range slices.Backward(in.Attempts) {
		r, err := e.receipt(ctx, a.Hash)
		if err != nil {
			return m, false, err
		}
		if r == nil {
			continue
		}
		if err := e.checkReceipt(ctx, in, &a, r.Receipt); err != nil {
			return m, false, err
		}
		logs, err := c.keptLogs(r.Logs)
		if err != nil {
			return m, false, err
		}
		return walletdb.Mining{Hash: a.Hash, Block: r.BlockNumber.Uint64(), BlockHash: r.BlockHash, GasUsed: r.GasUsed,
			Fee: r.fee(), Logs: logs}, r.Status == types.ReceiptStatusSuccessful, nil
	}
	return m, false, nil
}

// checkReceipt compares a receipt with the chain and with the signed form. A contradiction is
// repute.ErrUnavailable, because the endpoint cannot be trusted.
func (e *endpoint) checkReceipt(ctx context.Context, in *walletdb.Intent, a *walletdb.IntentAttempt,
	r *types.Receipt) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("receipt of %s at %s: %s: %w", a.Hash, e.name, fmt.Sprintf(format, args...),
			repute.ErrUnavailable)
	}
	switch {
	case r.TxHash != a.Hash:
		return wrong("is of transaction %s", r.TxHash)
	case r.BlockNumber == nil || !r.BlockNumber.IsUint64() || r.BlockNumber.Sign() == 0:
		return wrong("names no block")
	case r.GasUsed > a.Gas || r.GasUsed == 0:
		return wrong("gas used %d, allowed %d", r.GasUsed, a.Gas)
	case r.EffectiveGasPrice == nil || r.EffectiveGasPrice.Sign() < 0 || r.EffectiveGasPrice.Cmp(a.FeeCap) > 0:
		return wrong("gas price %s, allowed %s", r.EffectiveGasPrice, a.FeeCap)
	}
	h, err := e.block(ctx, hexutil.EncodeUint64(r.BlockNumber.Uint64()))
	if err != nil {
		return err
	}
	if h.Hash != r.BlockHash {
		return wrong("names block %s, but block %s is %s", r.BlockHash, r.BlockNumber, h.Hash)
	}
	if reason := contradiction(in, r); reason != "" {
		return wrong("%s", reason)
	}
	return nil
}

// contradiction returns an impossible property of a receipt's logs, empty for none. An endpoint that invents
// success has to invent the event too, which then must equal what other endpoints return.
func contradiction(in *walletdb.Intent, r *types.Receipt) string {
	for _, l := range r.Logs {
		if l == nil || l.TxHash != r.TxHash || l.BlockHash != r.BlockHash {
			return "has a log of another transaction or block"
		}
	}
	switch {
	case r.Status == types.ReceiptStatusFailed && len(r.Logs) > 0:
		return "says reverted, but has logs"
	case r.Status == types.ReceiptStatusFailed:
		return ""
	case r.Status != types.ReceiptStatusSuccessful:
		return fmt.Sprintf("has status %d", r.Status)
	}
	if _, settles := x402.Charged(in.To, in.Data); settles {
		return "" // what the token's logs show of it is checked by the caller
	}
	s, err := rules.ParseSpending(in.Data)
	if err != nil { // a registry write: each of them emits an event
		if !slices.ContainsFunc(r.Logs, func(l *types.Log) bool { return l.Address == in.To }) {
			return "says done, but the registry emitted nothing"
		}
		return ""
	}
	if !slices.ContainsFunc(r.Logs, func(l *types.Log) bool { return l.Address == in.To && s.Emitted(l) }) {
		return "says done, but the treasury's event of the run is not there"
	}
	return ""
}

// agreed reports whether the other endpoints return the same as first. It returns false if one does not have it yet
// or too few answer: the intent stays open, and is looked at again. A contradiction is repute.ErrUnavailable.
func (c *chain) agreed(ctx context.Context, first *endpoint, in *walletdb.Intent, m walletdb.Mining, good bool) (bool,
	error) {
	i := slices.IndexFunc(in.Attempts, func(a walletdb.IntentAttempt) bool { return a.Hash == m.Hash })
	if i < 0 {
		return false, errors.New("mined form of intent " + in.ID + " is not stored")
	}
	agree := 1
	for _, e := range c.nodes {
		if e == first {
			continue
		}
		r, err := e.receipt(ctx, m.Hash)
		if isDown(err) && ctx.Err() == nil {
			continue
		}
		if err != nil || r == nil {
			return false, err
		}
		if err := e.checkReceipt(ctx, in, &in.Attempts[i], r.Receipt); err != nil {
			return false, err
		}
		logs, err := c.keptLogs(r.Logs)
		if err != nil {
			return false, err
		}
		if r.BlockHash != m.BlockHash || good != (r.Status == types.ReceiptStatusSuccessful) ||
			r.GasUsed != m.GasUsed ||
			string(logs) != string(m.Logs) {
			return false, fmt.Errorf("endpoints disagree about transaction %s (%s and %s): %w", m.Hash, first.name,
				e.name,
				repute.ErrUnavailable)
		}
		agree++
	}
	return agree >= c.quorum(), nil
}
