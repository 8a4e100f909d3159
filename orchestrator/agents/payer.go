package agents

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// Payment requests a payment from the treasury, within the caps of the payer's policy.
type Payment struct {
	ChainID uint64 `json:"chainId,omitempty"` // optional if there is one chain
	// To is an account. Agent instead names an agent whose wallet is paid.
	To    string `json:"to,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Token is an ERC-20 contract; empty: the chain's own coin. Amount is in the smallest
	// unit, decimal.
	Token   string `json:"token,omitempty"`
	Amount  string `json:"amount"`
	Purpose string `json:"purpose,omitempty"`
	// MinSuccessRate, in percent, pays only where the report before this step found at
	// least that.
	MinSuccessRate float64 `json:"minSuccessRate,omitempty"`
}

// Paid describes the payment.
type Paid struct {
	To     string      `json:"to"`
	Token  string      `json:"token,omitempty"`
	Amount string      `json:"amount"`
	Tx     common.Hash `json:"tx"`
	Block  uint64      `json:"block"`
	Event  PaidEvent   `json:"event"` // event of the treasury
	// SpentBefore is the spending in the window before the payment, since StartBefore.
	SpentBefore string `json:"spentBefore"`
	StartBefore string `json:"startBefore"`
}

// PaidEvent is the treasury's event of a payment.
type PaidEvent struct {
	AgentKey common.Hash `json:"agentKey"`
	To       string      `json:"to"`
	Amount   string      `json:"amount"`
	Run      common.Hash `json:"runId"`
}

// payerSheet returns the payer's part of its manifest.
func payerSheet() sheet {
	return sheet{name: "Payer", does: "Pays from the treasury within the caps of its policy, where a report allows it.",
		capabilities: []string{"treasury-ops"}, categories: []string{"pay"}, writes: 1}
}

// payer is the craft of the payer. Its key in the treasury follows from its slug, so that another slug has no
// policy.
type payer struct {
	self   Self
	chains places
}

// Accept refuses a payment that cannot be made, before any phase runs. repute.ErrInvalid names the
// field.
func (p *payer) Accept(o order[Payment]) error {
	c, err := p.chains.at(o.In.ChainID)
	switch amount, ok := new(big.Int).SetString(o.In.Amount, 10); {
	case err != nil:
		return err
	case c.Treasury == common.Address{}:
		return repute.Invalid("input.chainId", fmt.Sprintf("chain %d has no treasury", c.ID), "a chain with one")
	case !ok || amount.Sign() <= 0 || amount.BitLen() > 256:
		return repute.Invalid("input.amount", fmt.Sprintf("%.80q is no amount", o.In.Amount),
			"decimal digits, in the smallest unit, more than 0")
	case (o.In.To == "") == (o.In.Agent == ""):
		return repute.Invalid("input.to", "is missing, or stands beside an agent", "one of to and agent")
	case o.In.MinSuccessRate < 0 || o.In.MinSuccessRate > 100:
		return repute.Invalid("input.minSuccessRate", fmt.Sprintf("is %g", o.In.MinSuccessRate), "percent, 0 to 100")
	case len(o.In.Purpose) > 200:
		return repute.Invalid("input.purpose", "is longer than 200 bytes", "a few words")
	}
	if o.In.Token != "" {
		if _, err := repute.ParseAddress("input.token", o.In.Token); err != nil {
			return err
		}
	}
	if o.In.To == "" {
		_, _, err = p.chains.agent("input.agent", o.In.Agent)
		return err
	}
	_, err = repute.ParseAddress("input.to", o.In.To)
	return err
}

// payee returns the paid account, and the id of the agent whose wallet it is, if it is one.
func (p *payer) payee(ctx context.Context, w World, in Payment) (common.Address, string, error) {
	if in.To != "" {
		to, err := repute.ParseAddress("input.to", in.To)
		return to, "", err
	}
	id, c, err := p.chains.agent("input.agent", in.Agent)
	if err != nil {
		return common.Address{}, "", err
	}
	wallet, err := view(ctx, w, c.ID, c.Identity, identities.PackGetAgentWallet(id.TokenID.ToBig()),
		identities.UnpackGetAgentWallet)
	if err == nil && wallet == (common.Address{}) {
		err = repute.Invalid("input.agent", fmt.Sprintf("%s has no wallet on the chain", id.Short()),
			"an agent with one, or an account")
	}
	return wallet, id.String(), err
}

// earned returns why the report of the step before does not justify the payment, empty if it does. Where the payee
// is an agent, the report MUST be about it; for an account the task's author vouches for that.
func (p *payer) earned(o order[Payment]) (string, error) {
	if o.In.MinSuccessRate == 0 {
		return "", nil
	}
	report, err := before[Reported](o.Before, jobReport)
	if err != nil {
		return "", fmt.Errorf("minSuccessRate needs a report before the payment: %w", err)
	}
	if o.In.Agent != "" {
		if id, _, err := p.chains.agent("input.agent", o.In.Agent); err != nil || report.Agent != id.String() {
			return "the report is of another agent than the one to be paid", err
		}
	}
	for _, f := range report.Ratings {
		if f.Tag1 == "successRate" {
			if rate := float64(f.Value) / 100; rate < o.In.MinSuccessRate {
				return fmt.Sprintf("the report found a success rate of %g %%, less than %g %%", rate,
					o.In.MinSuccessRate), nil
			}
			return "", nil
		}
	}
	return "the report holds no success rate", nil
}

// tx returns the transaction of the payment: a call of the payee, or a transfer of a token, by the
// treasury.
func (p *payer) tx(ctx context.Context, w World, o order[Payment]) (tx transaction.Tx, c Chain, err error) {
	if c, err = p.chains.at(o.In.ChainID); err != nil {
		return tx, c, err
	}
	tx = transaction.Tx{Key: "payment", ChainID: c.ID, Purpose: o.In.Purpose, Value: o.In.Amount}
	if tx.Purpose == "" {
		tx.Purpose = "payment"
	}
	if tx.Target, tx.Payee, err = p.payee(ctx, w, o.In); err != nil || o.In.Token == "" {
		return tx, c, err
	}
	token, err := repute.ParseAddress("input.token", o.In.Token)
	tx.Token, tx.Amount, tx.Value = &token, o.In.Amount, ""
	return tx, c, err
}

// DryRun compares the payment with the treasury's current limits, and lists every exceeded cap. The contract
// enforces them in any case: what is listed here is told before anything is sent, and all of it at once.
func (p *payer) DryRun(ctx context.Context, w World, o order[Payment]) (d standard.DryRun, err error) {
	tx, c, err := p.tx(ctx, w, o)
	if err != nil {
		return d, err
	}
	d.Calls = []transaction.Tx{tx}
	lack, err := p.earned(o)
	if err != nil {
		return d, err
	}
	if lack != "" {
		d.Violations = append(d.Violations, lack)
	}
	caps, err := p.against(ctx, w, c, tx)
	d.Violations = append(d.Violations, caps...)
	return d, err
}

// against returns the rules of the treasury's policy that a payment violates.
func (p *payer) against(ctx context.Context, w World, c Chain, tx transaction.Tx) (out []string, err error) {
	limits, err := p.limits(ctx, w, c, &tx)
	if err != nil {
		return nil, err
	}
	amount, _ := new(big.Int).SetString(tx.Value+tx.Amount, 10) // one of the two is empty
	if !limits.active {
		out = append(out, "the treasury has no active policy for the payer")
	}
	if !limits.payee {
		out = append(out, fmt.Sprintf("the treasury does not allow the payer to pay %s", tx.Target))
	}
	if amount.Cmp(limits.perTx) > 0 {
		out = append(out, fmt.Sprintf("%s is over the treasury's cap of %s per transaction", amount, limits.perTx))
	}
	if amount.Cmp(limits.left) > 0 {
		out = append(out, fmt.Sprintf("%s is over the %s that are left of the treasury's window", amount, limits.left))
	}
	return out, nil
}

// limits are the treasury's current limits of the payer for a coin or token.
type limits struct {
	active, payee             bool
	perTx, left, spent, start *big.Int
}

// limits reads the current limits. The receivers of tokens are not limited.
func (p *payer) limits(ctx context.Context, w World, c Chain, tx *transaction.Tx) (l limits, err error) {
	key, token := p.key(), tx.Token
	policy, err := view(ctx, w, c.ID, c.Treasury, treasuries.PackAgentPolicies(key), treasuries.UnpackAgentPolicies)
	if err != nil {
		return l, err
	}
	l.active, l.payee, l.perTx = policy.Active, true, policy.NativePerTxCapWei
	if token == nil {
		if l.payee, err = view(ctx, w, c.ID, c.Treasury, treasuries.PackAllowedCalls(key, tx.Target, [4]byte{}),
			treasuries.UnpackAllowedCalls); err != nil {
			return l, err
		}
		window, err := view(ctx, w, c.ID, c.Treasury, treasuries.PackNativeWindow(key), treasuries.UnpackNativeWindow)
		if err != nil {
			return l, err
		}
		l.spent, l.start = window.Spent, window.Start
		l.left, err = view(ctx, w, c.ID, c.Treasury, treasuries.PackNativeLeft(key), treasuries.UnpackNativeLeft)
		return l, err
	}
	if l.perTx, err = view(ctx, w, c.ID, c.Treasury, treasuries.PackErc20PerTxCaps(key, *token),
		treasuries.UnpackErc20PerTxCaps); err != nil {
		return l, err
	}
	window, err := view(ctx, w, c.ID, c.Treasury, treasuries.PackErc20Window(key, *token), treasuries.UnpackErc20Window)
	if err != nil {
		return l, err
	}
	l.spent, l.start = window.Spent, window.Start
	l.left, err = view(ctx, w, c.ID, c.Treasury, treasuries.PackErc20Left(key, *token), treasuries.UnpackErc20Left)
	return l, err
}

// key returns the payer's key in the treasury.
func (p *payer) key() common.Hash { return crypto.Keccak256Hash([]byte(p.self.Slug)) }

// Do pays, if the report of the measured agent allows it. The window is read before the payment is sent, for Verify
// to compare with; a repeated method gets the first answer to that read again.
func (p *payer) Do(ctx context.Context, w World, o order[Payment]) (done Paid, err error) {
	lack, err := p.earned(o)
	if err != nil {
		return done, err
	}
	if lack != "" {
		return done, repute.Invalid("input.minSuccessRate", "forbids the payment: "+lack,
			"a lower one, or a better report")
	}
	tx, c, err := p.tx(ctx, w, o)
	if err != nil {
		return done, err
	}
	now, err := p.limits(ctx, w, c, &tx)
	if err != nil {
		return done, err
	}
	sent, err := w.Send(ctx, tx)
	if err != nil {
		return done, err
	}
	done = Paid{To: tx.Target.Hex(), Token: o.In.Token, Amount: o.In.Amount, Tx: sent.Hash, Block: sent.Block,
		SpentBefore: now.spent.String(), StartBefore: now.start.String()}
	done.Event, err = paidEvent(sent, c.Treasury, tx.Token)
	return done, err
}

// paidEvent finds the treasury's event of the payment among the transaction's logs.
func paidEvent(sent transaction.Sent, treasury common.Address, token *common.Address) (PaidEvent, error) {
	if token == nil {
		e, err := logOf(sent, treasury, treasuries.UnpackNativeExecutedEvent)
		if err != nil {
			return PaidEvent{}, err
		}
		return PaidEvent{e.AgentKey, e.Target.Hex(), e.Value.String(), e.RunId}, nil
	}
	e, err := logOf(sent, treasury, treasuries.UnpackERC20TransferredEvent)
	if err != nil {
		return PaidEvent{}, err
	}
	return PaidEvent{e.AgentKey, e.To.Hex(), e.Amount.String(), e.RunId}, nil
}

// Verify compares the treasury's event and its accounts with the order.
func (p *payer) Verify(ctx context.Context, w World, o order[Payment], done Paid) (out []standard.Check,
	err error) {
	tx, c, err := p.tx(ctx, w, o)
	if err != nil {
		return nil, err
	}
	out = append(out, check("payee", done.Event.To, tx.Target.Hex()), check("amount", done.Event.Amount, o.In.Amount),
		check("agent", done.Event.AgentKey, p.key()))
	now, err := p.limits(ctx, w, c, &tx)
	if err != nil {
		return nil, err
	}
	amount, _ := new(big.Int).SetString(o.In.Amount, 10)
	spent, ok := new(big.Int).SetString(done.SpentBefore, 10)
	// If the oldest counted payment no longer counts, this one may not count any more either.
	moved := done.StartBefore != "0" && done.StartBefore != now.start.String()
	books := ok && (moved || now.spent.Cmp(new(big.Int).Add(spent, amount)) >= 0)
	return append(out, standard.Check{Name: "treasury's books", Passed: books,
		Details: fmt.Sprintf("spent %s before and %s now", done.SpentBefore, now.spent)}), nil
}

// Summary describes the payment.
func (p *payer) Summary(_ order[Payment], done Paid) standard.Summary {
	unit := "wei"
	if done.Token != "" {
		unit = "units of " + done.Token
	}
	return standard.Summary{Text: fmt.Sprintf("%s %s went from the treasury to %s.", done.Amount, unit, done.To),
		KeyActions: []string{"paid " + done.Amount + " " + unit}, Receipts: []string{done.Tx.Hex()}}
}
