package wallet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
	"repute/store/walletdb"
)

// Send sends a transaction exactly once per intent, however often it is called, by any number of
// processes and after crashes, and waits for its confirmation. repute.ErrUnavailable or the end of
// ctx mean that the result is unknown: call it again with the same intent. Other errors are final:
// nothing was sent, or it can never be mined.
func (w *Wallet) Send(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) { return c.callOf(intent.Origin, &intent.Tx) })
}

// once follows an intent, and signs it before if nobody has. A signed transaction is followed even
// if the configuration changed since, because it may be mined.
func (w *Wallet) once(ctx context.Context, intent *transaction.Intent,
	of func(*chain) (*call, error)) (transaction.Sent, error) {
	in, err := w.stored(ctx, intent)
	if errors.Is(err, repute.ErrNotFound) {
		in, err = w.begin(ctx, intent, of)
	}
	if err != nil {
		return transaction.Sent{}, err
	}
	return w.follow(ctx, in)
}

// stored returns an intent in its signed form. repute.ErrNotFound if it was not signed,
// repute.ErrConflict if its id was used for another transaction, repute.ErrUnavailable if the
// database cannot be read.
func (w *Wallet) stored(ctx context.Context, intent *transaction.Intent) (walletdb.Intent, error) {
	in, err := walletdb.ReadIntent(ctx, w.db, intent.ID)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return in, err
	case err != nil:
		return in, fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	case !isRequested(intent, &in):
		return in, repute.Conflict("intent %s is another transaction", in.ID)
	}
	return in, nil
}

// isRequested reports whether a stored intent was made from the requested one, with this configuration
// or an earlier one. An id that is used for another transaction MUST be refused, because the caller
// would take the other transaction for its own.
func isRequested(intent *transaction.Intent, in *walletdb.Intent) bool {
	if in.ChainID != intent.ChainID || in.Run != intent.Run || in.Agent != intent.Agent {
		return false
	}
	if intent.Token == nil && bytes.Equal(in.Data, intent.Data) &&
		(in.To == intent.Target || rules.SetsPolicy(in.Data)) {
		return true
	}
	s, err := rules.SpendingOf(intent.Origin, &intent.Tx)
	return err == nil && bytes.Equal(in.Data, s.Pack())
}

// begin signs and stores an intent, and returns it. The first stored form decides: when another
// process has stored the intent meanwhile, its form is returned and an error of this one ignored.
func (w *Wallet) begin(ctx context.Context, intent *transaction.Intent,
	of func(*chain) (*call, error)) (walletdb.Intent, error) {
	in, err := w.sign(ctx, intent, of)
	if err == nil {
		return in, nil
	}
	if known, now := w.stored(ctx, intent); !errors.Is(now, repute.ErrNotFound) {
		return known, now
	}
	return in, err
}

// sign stores an intent with its first signed form, before anything is sent. An intent that is
// stored already is returned as it is.
func (w *Wallet) sign(ctx context.Context, intent *transaction.Intent,
	of func(*chain) (*call, error)) (added walletdb.Intent, err error) {
	c, err := w.on(intent.ChainID)
	if err != nil {
		return added, err
	}
	k, err := of(c)
	if err != nil {
		return added, err
	}
	k.still = intent.Still
	in := walletdb.Intent{ID: intent.ID, Run: intent.Run, Task: intent.Task, Agent: intent.Agent, ChainID: c.ChainID,
		From: k.signer.Address(), To: k.to, Value: new(big.Int), Data: k.data}
	var most *big.Int
	if intent.MaxGasWei != "" {
		if most, err = rules.Amount("maxGasWei", intent.MaxGasWei); err != nil {
			return added, err
		}
	}
	return w.add(ctx, c, k, in, c.Budget(c.field, most))
}

// add signs and stores an intent by data on which endpoints agree. The nonce is assigned in the transaction of
// walletdb.AddIntent, which locks the account's nonces for all processes: the next process that signs sees this one.
// Still is asked last, as close to the signature as can be. The error is final if the chain refuses the call, its cost
// exceeds the limit, or the sender cannot pay.
func (w *Wallet) add(ctx context.Context, c *chain, k *call, in walletdb.Intent,
	most rules.Budget) (walletdb.Intent, error) {
	a, err := c.appraise(ctx, k, false)
	if err != nil {
		return in, err
	}
	if a.reason != "" {
		return in, repute.Invalid("tx", "would fail: "+a.reason, "simulate it")
	}
	if most, err = most.ForGas(a.dataFee, c.Headroom); err != nil {
		return in, err
	}
	f, err := c.first(a, most)
	if err != nil {
		return in, err
	}
	if lack := a.lacks(k, new(big.Int).Add(rules.Cost(a.gas, a.at.base()), a.dataFee)); lack != "" {
		return in, repute.Invalid("tx", "would fail: "+lack, "give the sender coin for gas")
	}
	in.MaxFee = most.Wei
	select {
	case c.signing <- struct{}{}:
		defer func() { <-c.signing }()
	case <-ctx.Done():
		return in, ctx.Err()
	}
	return walletdb.AddIntent(ctx, w.db, in,
		func(ctx context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
			ctx, cancel := context.WithTimeout(ctx, keys.Timeout+5*time.Second)
			defer cancel()
			err := c.with(ctx, func(e *endpoint) (err error) {
				in.Nonce, err = c.nextNonce(ctx, e, in.From, n, w.log.Warn)
				return err
			})
			if err == nil && k.still != nil {
				err = k.still(ctx)
			}
			if err != nil {
				return walletdb.IntentAttempt{}, err
			}
			return c.form(ctx, k.by, k.signer, &in, a.gas, f)
		})
}

// form signs an intent at its nonce.
func (c *chain) form(ctx context.Context, by rules.Role, s keys.Signer, in *walletdb.Intent, gas uint64,
	f rules.Fees) (walletdb.IntentAttempt, error) {
	to := in.To
	return c.rules.Sign(ctx, by, s, transaction.Origin{Agent: in.Agent, Run: in.Run, Task: in.Task},
		types.NewTx(&types.DynamicFeeTx{
			ChainID: c.id, Nonce: in.Nonce, To: &to, Value: in.Value, Data: in.Data, Gas: gas, GasFeeCap: f.Limit,
			GasTipCap: f.Tip}))
}

// keyOf returns the key that signed an intent; nil if it is no longer configured.
func (c *chain) keyOf(in *walletdb.Intent) (rules.Role, keys.Signer) {
	if c.operator != nil && c.operator.Address() == in.From {
		return rules.ByOperator, c.operator
	}
	if c.owner != nil && c.owner.Address() == in.From {
		return rules.ByOwner, c.owner
	}
	if s := c.identities[in.Agent]; s != nil && s.Address() == in.From {
		return rules.ByIdentity, s
	}
	return rules.ByIdentity, nil
}

// follow follows an intent until it is final. Once it is signed, every error is repute.ErrUnavailable: whether the
// transaction will be mined is not known. Endpoints may fail for Patience before the caller is told.
func (w *Wallet) follow(ctx context.Context, in walletdb.Intent) (transaction.Sent, error) {
	if in.State.Final() {
		return outcome(&in)
	}
	c, err := w.on(in.ChainID)
	if err != nil {
		return transaction.Sent{}, fmt.Errorf("transaction of intent %s is signed: %w: %w", in.ID,
			repute.ErrUnavailable,
			err)
	}
	f := w.follower(c, in.ID)
	healthy := time.Now()
	for {
		in, err := f.step(ctx)
		switch {
		case err == nil && in.State.Final():
			return outcome(&in)
		case err == nil:
			healthy = time.Now()
		case ctx.Err() != nil: // returned below
		case !errors.Is(err, repute.ErrUnavailable): // a signed transaction may be mined despite the error
			return transaction.Sent{}, fmt.Errorf("transaction of intent %s: %w: %w", f.id, repute.ErrUnavailable, err)
		case time.Since(healthy) > c.Patience:
			return transaction.Sent{}, err
		default:
			w.log.Warn("transaction: step failed, will retry", "intent", f.id, "chain", c.ChainID, "error", err)
		}
		select {
		case <-time.After(c.Poll):
		case <-ctx.Done():
			return transaction.Sent{}, fmt.Errorf("transaction of intent %s is not confirmed%s: %w: %w", f.id, f.note,
				repute.ErrUnavailable, ctx.Err())
		}
	}
}

// outcome returns the result of a final intent.
func outcome(in *walletdb.Intent) (transaction.Sent, error) {
	if in.State == walletdb.IntentFailed {
		return transaction.Sent{}, repute.Conflict("the transaction of intent %s was not sent: %s", in.ID, in.Reason)
	}
	return transaction.Sent{Hash: in.Mined.Hash, From: in.From, OK: in.State == walletdb.IntentConfirmed,
		Block:   in.Mined.Block,
		GasUsed: in.Mined.GasUsed, FeeWei: in.Mined.Fee.String(), Result: in.Mined.Logs}, nil
}

// follower follows one intent.
type follower struct {
	w       *Wallet
	c       *chain
	id      string
	note    string    // last refusal of an endpoint
	foreign int       // how often in a row its nonce was seen used by another transaction
	sent    time.Time // when it was last offered to the endpoint
	fresh   time.Time // when the current form was first sent by this process
}

// follower returns a follower of an intent.
func (w *Wallet) follower(c *chain, id string) *follower {
	return &follower{w: w, c: c, id: id, fresh: time.Now()}
}

// foreignSeen is how often a used nonce without receipt must be observed before its transaction is
// searched: an endpoint may consist of many nodes that do not all have every receipt.
const foreignSeen = 3

// step checks the intent once and acts. All its effects are repeatable.
func (f *follower) step(ctx context.Context) (walletdb.Intent, error) {
	in, err := walletdb.ReadIntent(ctx, f.w.db, f.id)
	if err != nil || in.State.Final() {
		return in, err
	}
	err = f.c.with(ctx, func(e *endpoint) (err error) {
		in, err = f.stepAt(ctx, e, in)
		return err
	})
	return in, err
}

// stepAt is step with one endpoint.
func (f *follower) stepAt(ctx context.Context, e *endpoint, in walletdb.Intent) (walletdb.Intent, error) {
	latest, err := e.block(ctx, "latest")
	if err != nil {
		return in, err
	}
	used, err := f.c.nonceUsed(ctx, e, &in, uint64(latest.Number))
	if err != nil {
		return in, err
	}
	m, good, err := f.c.mined(ctx, e, &in)
	switch {
	case err != nil:
		return in, err
	case m.Block > 0:
		f.foreign = 0
		return f.settle(ctx, e, in, m, good, uint64(latest.Number))
	case in.State == walletdb.IntentMined: // its block was replaced
		f.sent, f.fresh = time.Time{}, time.Now()
		if err := walletdb.MarkIntent(ctx, f.w.db, in.ID, walletdb.IntentBroadcast, walletdb.Mining{}, ""); err != nil {
			return in, err
		}
	}
	if used {
		return f.nonceTaken(ctx, in)
	}
	f.foreign = 0
	if err := f.sendEarlier(ctx, e, &in); err != nil || in.State.Final() {
		return in, err
	}
	return in, f.push(ctx, e, &in)
}

// nonceUsed reports whether a confirmed block has the intent's nonce behind it.
func (c *chain) nonceUsed(ctx context.Context, e *endpoint, in *walletdb.Intent, latest uint64) (bool, error) {
	depth := c.Confirmations - 1
	n, err := e.nonce(ctx, in.From, hexutil.EncodeUint64(latest-min(latest, depth)))
	return n > in.Nonce, err
}

// settle stores where a transaction was mined, and the end of it once its block is deep
// enough and every endpoint shows the same.
func (f *follower) settle(ctx context.Context, e *endpoint, in walletdb.Intent, m walletdb.Mining, good bool,
	latest uint64) (walletdb.Intent, error) {
	state := walletdb.IntentMined
	if latest+1 >= m.Block+f.c.Confirmations {
		agreed, err := f.c.agreed(ctx, e, &in, m, good)
		if err != nil {
			return in, err
		}
		switch {
		case agreed && good:
			state = walletdb.IntentConfirmed
		case agreed:
			state = walletdb.IntentReverted
		default:
			f.note = " (another endpoint does not show it yet, or does not answer)"
		}
	}
	if state == in.State && m.Hash == in.Mined.Hash && m.BlockHash == in.Mined.BlockHash {
		return in, nil
	}
	if err := walletdb.MarkIntent(ctx, f.w.db, in.ID, state, m, ""); err != nil {
		return in, err
	}
	return walletdb.ReadIntent(ctx, f.w.db, in.ID)
}

// sendEarlier sends earlier transactions of the account again, for which nobody may be waiting: this transaction is
// mined only after them. They are sent as rarely as this one.
func (f *follower) sendEarlier(ctx context.Context, e *endpoint, in *walletdb.Intent) error {
	next, err := e.nonce(ctx, in.From, "latest")
	if err != nil || next >= in.Nonce || !f.due() {
		return err
	}
	if in.Nonce-next > reach {
		return f.stranded(ctx, in)
	}
	earlier, err := walletdb.IntentsBetween(ctx, f.w.db, in.ChainID, in.From, next, in.Nonce-1)
	if err != nil {
		return err
	}
	for i := range earlier {
		if err := f.offer(ctx, e, &earlier[i]); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether a transaction should be sent again, because nodes may have dropped it.
func (f *follower) due() bool { return f.sent.IsZero() || time.Since(f.sent) > f.c.StuckAfter/2 }

// push sends an intent that is not mined, with higher fees after StuckAfter.
func (f *follower) push(ctx context.Context, e *endpoint, in *walletdb.Intent) error {
	if in.State != walletdb.IntentSigned && in.Attempts[len(in.Attempts)-1].Age < f.c.StuckAfter && !f.due() {
		return nil
	}
	if err := f.offer(ctx, e, in); err != nil {
		return err
	}
	f.sent = time.Now()
	return nil
}

// offer sends the newest form of an intent, or a replacement with higher fees if that is due: its form is older
// than StuckAfter, and this process has sent it for as long. After a restart the old form thus gets its chance
// first.
func (f *follower) offer(ctx context.Context, e *endpoint, in *walletdb.Intent) error {
	if in.Attempts[len(in.Attempts)-1].Age >= f.c.StuckAfter && time.Since(f.fresh) >= f.c.StuckAfter &&
		!in.State.Final() {
		if err := f.bump(ctx, in); err != nil {
			return err
		}
	}
	note, err := e.send(ctx, in.Attempts[len(in.Attempts)-1].Raw)
	if err != nil {
		return err
	}
	if note != "" {
		f.note = " (" + e.name + " said: " + note + ")"
		f.w.log.Warn("transaction: refused by an endpoint", "intent", in.ID, "chain", in.ChainID, "endpoint", e.name,
			"host",
			e.rpc.Host(), "reason", note)
		return nil
	}
	if in.State == walletdb.IntentSigned {
		return walletdb.MarkIntent(ctx, f.w.db, in.ID, walletdb.IntentBroadcast, walletdb.Mining{}, "")
	}
	return nil
}

// bump signs an intent for an eighth more or today's fees, where its limit and the ceilings
// of the chain allow that.
func (f *follower) bump(ctx context.Context, in *walletdb.Intent) error {
	by, key := f.c.keyOf(in)
	if key == nil {
		f.note = fmt.Sprintf(" (the key of %s is not configured any more, so its fee stays)", in.From)
		return nil
	}
	last := in.Attempts[len(in.Attempts)-1]
	now, err := f.c.feesNow(ctx)
	if err != nil {
		return err
	}
	most := f.c.Budget(f.c.field, in.MaxFee)
	before := rules.Fees{Limit: last.FeeCap, Tip: last.TipCap}
	least := before.Raised()
	higher := f.c.Capped(before.Bumped(now)).Within(last.Gas, most.Wei)
	if higher.Limit.Cmp(least.Limit) < 0 || higher.Tip.Cmp(least.Tip) < 0 {
		f.note = fmt.Sprintf(" (it waits at nonce %d, and its limit of %s wei, by %s, or max_fee_per_gas or the highest tip allow no higher fee)", in.Nonce, most.Wei, most.Of)
		return nil
	}
	dearer, err := walletdb.AddAttempt(ctx, f.w.db, in.ID, len(in.Attempts),
		func(ctx context.Context, in walletdb.Intent) (walletdb.IntentAttempt, error) {
			return f.c.form(ctx, by, key, &in, last.Gas, higher)
		})
	if err != nil {
		return err
	}
	*in = dearer
	return nil
}
