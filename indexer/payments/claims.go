package payments

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store/paydb"
)

// question is the claim about a transaction that the chain must confirm.
type question struct {
	tx       common.Hash
	from, to common.Address
}

// landed is a final transaction with its transfers from the payer to the payee.
type landed struct {
	block     repute.Block
	succeeded bool
	transfers []repute.TokenTransfer
}

const (
	retryMin = time.Minute
	retryMax = 6 * time.Hour
	// absentAfter is how often a transaction that no endpoint knows is asked for: for
	// about a day.
	absentAfter = 12
)

// later returns the pause before the next try of a claim, given the tries so far.
func later(attempts int) time.Duration { return min(retryMax, retryMin<<min(attempts, 20)) }

// settle verifies one claim and stores the outcome. A failure that concerns this claim alone is no error,
// and neither is an endpoint that does not answer.
func (l *Loop) settle(ctx context.Context, c paydb.Claim) error {
	limited, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	judge, err := l.judge(limited, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var open *openError
	switch {
	case errors.As(err, &open):
		l.log.Debug("payment left open", "tx", c.Tx, "error", err)
		judge = func(func(uint64) bool) paydb.Outcome { return open.verdict(c) }
	case err != nil:
		return fmt.Errorf("payment %s: %w", c.Tx, err)
	}
	return paydb.SettlePayment(ctx, l.db, c, judge)
}

// openError is returned when a claim cannot be decided now. It holds the reason.
type openError struct {
	reason repute.PaymentReason
	err    error // of an endpoint, if any
}

// Error returns the reason and the error of the endpoint.
func (e *openError) Error() string { return fmt.Sprintf("%s: %v", e.reason, e.err) }

// Unwrap returns the error of the endpoint.
func (e *openError) Unwrap() error { return e.err }

// noAnswer marks a failure after which the claim stays open and is retried.
func noAnswer(err error) error { return &openError{repute.PaymentNoAnswer, err} }

// verdict keeps a claim open, or refuses it if no endpoint has known the transaction for a long
// time. A verified claim stays verified until it can be examined again.
func (e *openError) verdict(c paydb.Claim) paydb.Outcome {
	if c.State == repute.PaymentVerified {
		return paydb.Outcome{Next: later(c.Attempts)}
	}
	if e.reason == repute.PaymentNotFound && c.Attempts+1 >= absentAfter {
		return paydb.Outcome{State: repute.PaymentRefused, Reason: repute.PaymentAbsent}
	}
	return paydb.Outcome{State: repute.PaymentUnavailable, Reason: e.reason, Next: later(c.Attempts)}
}

// judge collects the facts about a claim and returns the function that decides it.
func (l *Loop) judge(ctx context.Context, c paydb.Claim) (func(func(uint64) bool) paydb.Outcome, error) {
	final, err := paydb.FinalBlock(ctx, l.db, l.chain)
	if err != nil {
		return nil, err
	}
	t, err := l.transaction(ctx, c, final)
	if err != nil {
		return nil, err
	}
	related, err := paydb.ReadRelated(ctx, l.db, c, t.block)
	if err != nil {
		return nil, err
	}
	k := repute.PaymentCase{From: c.From, To: c.To, Client: related.Client, Payees: related.Payees,
		Operators: related.Operators,
		Paid:      t.block.Time, Given: c.Given, Coins: l.opts.Coins, Transfers: t.transfers, Around: related.Around}
	next := time.Duration(0)
	if _, _, reason := k.Judge(); reason == "" { // only then is it worth asking for more
		back, rest, err := l.around(ctx, k, t.block, final)
		if err != nil {
			return nil, err
		}
		k.Around, next = merge(k.Around, back), rest
	}
	return func(taken func(uint64) bool) paydb.Outcome {
		k.Taken = taken
		return verdictOf(k, t, next)
	}, nil
}

// verdictOf returns what a mined transaction proves about a claimed payment. A verified payment has
// a next time, because money may be sent back within the window.
func verdictOf(k repute.PaymentCase, t landed, next time.Duration) paydb.Outcome {
	if !t.succeeded {
		return paydb.Outcome{State: repute.PaymentRefused, Reason: repute.PaymentFailed}
	}
	transfer, paid, reason := k.Judge()
	if reason != "" {
		return paydb.Outcome{State: repute.PaymentRefused, Reason: reason}
	}
	coin, _ := repute.CoinOf(k.Coins, transfer.Token)
	return paydb.Outcome{State: repute.PaymentVerified, Next: next, Transfer: transfer, Coin: coin, Paid: paid,
		Time: t.block.Time}
}

// merge returns the transfers of both lists, each once.
func merge(a, b []repute.TokenTransfer) []repute.TokenTransfer {
	out := slices.Clone(a)
	for _, t := range b {
		if !slices.ContainsFunc(a,
			func(u repute.TokenTransfer) bool { return u.Tx == t.Tx && u.LogIndex == t.LogIndex }) {
			out = append(out, t)
		}
	}
	return out
}

// transaction finds a claimed transaction in a final block and proves what it moved.
func (l *Loop) transaction(ctx context.Context, c paydb.Claim, final uint64) (landed, error) {
	q := question{c.Tx, c.From, c.To}
	if t, ok := l.found[q]; ok {
		return t, nil
	}
	where, err := l.pool.Transaction(ctx, c.Tx)
	switch {
	case err != nil:
		return landed{}, noAnswer(err)
	case where == nil:
		return landed{}, &openError{reason: repute.PaymentNotFound}
	case where.Block.Number > final:
		return landed{}, &openError{reason: repute.PaymentNotFinal}
	}
	blocks, err := l.pool.Agreed(ctx, []uint64{where.Block.Number})
	if err != nil {
		return landed{}, noAnswer(err)
	}
	if blocks[0].Hash != where.Block.Hash { // of a block that is not on the chain
		return landed{}, &openError{reason: repute.PaymentNotFound}
	}
	e, err := l.pool.Receipts(ctx, blocks[0], nil)
	if err != nil {
		return landed{}, noAnswer(err)
	}
	if e.Hash != blocks[0].Hash || !slices.Contains(e.Txs, c.Tx) {
		return landed{}, noAnswer(fmt.Errorf("block %d does not hold the transaction", e.Number))
	}
	t := landed{block: blocks[0], transfers: transfersOf(e.Logs, q)}
	// A failed transaction logs nothing.
	t.succeeded = where.Succeeded || len(t.transfers) > 0
	if len(l.found) >= foundMost {
		clear(l.found)
	}
	l.found[q] = t
	return t, nil
}

// transferTopic is the topic of ERC-20's Transfer(address indexed, address indexed, uint256).
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// maxTransfers bounds how many transfers of one transaction are kept.
const maxTransfers = 100

// transfersOf returns the token transfers from the claimed payer to the claimed payee in the
// transaction, at most maxTransfers.
func transfersOf(logs []types.Log, q question) (out []repute.TokenTransfer) {
	for i := range logs {
		t, ok := transferOf(&logs[i])
		if ok && t.Tx == q.tx && t.From == q.from && t.To == q.to && len(out) < maxTransfers {
			out = append(out, t)
		}
	}
	return out
}

// transferOf reads a log as a movement of an ERC-20 token.
func transferOf(g *types.Log) (t repute.TokenTransfer, ok bool) {
	if len(g.Topics) != 3 || g.Topics[0] != transferTopic || len(g.Data) != common.HashLength {
		return t, false
	}
	return repute.TokenTransfer{Tx: g.TxHash, Block: g.BlockNumber, LogIndex: uint64(g.Index), Token: g.Address,
		From: common.BytesToAddress(g.Topics[1][:]), To: common.BytesToAddress(g.Topics[2][:]),
		Amount: new(big.Int).SetBytes(g.Data)}, true
}
