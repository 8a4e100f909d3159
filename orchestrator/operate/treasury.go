package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/rules"
	"repute/store/rundb"
)

// treasury returns the configured treasury; repute.ErrNotFound if there is none.
func (o *Operator) treasury() (common.Address, error) {
	_, at, err := o.wallet.Contracts(o.o.ExecutionChain)
	if err == nil && (at == common.Address{}) {
		err = &repute.MissingError{What: "treasury", Why: "is not configured", Hint: "orchestrator.wallets[].treasury"}
	}
	return at, err
}

// Treasury returns the configured treasury and its chain; repute.ErrNotFound if there is none.
func (o *Operator) Treasury() (chainID uint64, at common.Address, err error) {
	at, err = o.treasury()
	return o.o.ExecutionChain, at, err
}

// TreasuryStatus reads the treasury at the newest block.
func (o *Operator) TreasuryStatus(ctx context.Context) (TreasuryStatus, error) {
	out, _, err := o.TreasuryOverview(ctx)
	return out, err
}

// TreasuryOverview reads the treasury and the policies of agents in it, all at the newest block and in one request. The
// policies are in the order of the slugs.
//
// One look means one block for all of it, so that the sums of the policies and the balance belong together. An error
// about any slug fails the whole answer.
func (o *Operator) TreasuryOverview(ctx context.Context,
	slugs ...string) (out TreasuryStatus, list []TreasuryPolicy, err error) {
	at, err := o.treasury()
	if err != nil {
		return out, nil, err
	}
	b := bindings.NewOpenFiTreasury()
	views := []wallet.View{{To: at, Data: b.PackOwner()}, {To: at, Data: b.PackPendingOwner()},
		{To: at, Data: b.PackPaused()}}
	first := len(views)
	for _, slug := range slugs {
		if err := slugOf("agentSlug", slug); err != nil {
			return out, nil, err
		}
		views = append(views, policyViews(at, slug)...)
	}
	seen, err := o.wallet.Look(ctx, o.o.ExecutionChain, at, views...)
	if err != nil {
		return out, nil, err
	}
	if out, err = o.statusIn(&seen, at); err != nil {
		return out, nil, err
	}
	for _, slug := range slugs {
		p, _, err := o.policyIn(&seen, seen.Answers[first:], at, slug)
		if err != nil {
			return out, nil, err
		}
		list, first = append(list, p), first+viewsOfPolicy
	}
	return out, list, nil
}

// statusIn reads the state of the treasury out of the first answers of a look.
// A chain without an operator key gives a status without an operator, which is no error: a service that only reads
// needs none.
func (o *Operator) statusIn(seen *wallet.Seen, at common.Address) (out TreasuryStatus, err error) {
	b := bindings.NewOpenFiTreasury()
	owner, err := b.UnpackOwner(seen.Answers[0])
	if err != nil {
		return out, noTreasury(at)
	}
	next, err := b.UnpackPendingOwner(seen.Answers[1])
	if err != nil {
		return out, noTreasury(at)
	}
	paused, err := b.UnpackPaused(seen.Answers[2])
	if err != nil {
		return out, noTreasury(at)
	}
	out = TreasuryStatus{ChainID: o.o.ExecutionChain, Address: at.Hex(), Balance: seen.Balance.String(),
		Owner: owner.Hex(), Paused: paused,
		Block: seen.Block, BlockHash: seen.BlockHash.Hex(), BlockTime: time.Unix(int64(seen.Time), 0).UTC()}
	if (next != common.Address{}) {
		out.PendingOwner = next.Hex()
	}
	if operator, err := o.wallet.Operator(o.o.ExecutionChain); err == nil {
		out.Operator = operator.Hex()
	}
	return out, nil
}

// noTreasury is the error for an address without a treasury contract.
// It is a conflict and no invalid input, because the address is the operator's configuration and not the caller's.
func noTreasury(at common.Address) error {
	return repute.Conflict("there is no OpenFiTreasury at %s: mend orchestrator.wallets[].treasury", at)
}

// TreasuryPolicy reads an agent's policy in the treasury at the newest block.
func (o *Operator) TreasuryPolicy(ctx context.Context, slug string) (TreasuryPolicy, error) {
	out, _, err := o.policyNow(ctx, slug)
	return out, err
}

// policyNow reads an agent's policy at the newest block, in the form of answers and of the
// contract.
func (o *Operator) policyNow(ctx context.Context, slug string) (out TreasuryPolicy, p bindings.AgentPoliciesOutput,
	err error) {
	if err := slugOf("agentSlug", slug); err != nil {
		return out, p, err
	}
	at, err := o.treasury()
	if err != nil {
		return out, p, err
	}
	seen, err := o.wallet.Look(ctx, o.o.ExecutionChain, at, policyViews(at, slug)...)
	if err != nil {
		return out, p, err
	}
	return o.policyIn(&seen, seen.Answers, at, slug)
}

// viewsOfPolicy is how many views policyViews returns.
const viewsOfPolicy = 3

// policyViews returns the questions by which an agent's policy is read.
// The window and what is left of it are the contract's own computation at the block, because payments leave a window
// as time passes without any event.
func policyViews(at common.Address, slug string) []wallet.View {
	b, key := bindings.NewOpenFiTreasury(), crypto.Keccak256Hash([]byte(slug))
	return []wallet.View{{To: at, Data: b.PackAgentPolicies(key)}, {To: at, Data: b.PackNativeWindow(key)},
		{To: at, Data: b.PackNativeLeft(key)}}
}

// policyIn reads an agent's policy out of the answers to policyViews, which come first in answers.
func (o *Operator) policyIn(seen *wallet.Seen, answers [][]byte, at common.Address, slug string) (out TreasuryPolicy,
	p bindings.AgentPoliciesOutput, err error) {
	b, key := bindings.NewOpenFiTreasury(), crypto.Keccak256Hash([]byte(slug))
	if p, err = b.UnpackAgentPolicies(answers[0]); err != nil {
		return out, p, noTreasury(at)
	}
	window, err := b.UnpackNativeWindow(answers[1])
	if err != nil {
		return out, p, noTreasury(at)
	}
	left, err := b.UnpackNativeLeft(answers[2])
	if err != nil {
		return out, p, noTreasury(at)
	}
	return TreasuryPolicy{ChainID: o.o.ExecutionChain, Address: at.Hex(), AgentSlug: slug, AgentKey: key.Hex(),
		Active: p.Active, Operator: p.Operator.Hex(),
		NativePerTxCapWei: p.NativePerTxCapWei.String(), NativeWindowCapWei: p.NativeWindowCapWei.String(),
		WindowDurationSeconds: p.WindowDurationSeconds.Uint64(),
		NativeWindowStart:     window.Start.Uint64(), NativeWindowSpentWei: window.Spent.String(),
		NativeLeftWei: left.String(),
		Block:         seen.Block, BlockHash: seen.BlockHash.Hex()}, p, nil
}

// ExecuteCall calls a target by the treasury, for an agent.
//
// The allow-list of the treasury is not checked here: the simulation fails for a call that the contract refuses, and
// the act is refused with the contract's reason.
func (o *Operator) ExecuteCall(ctx context.Context, c TreasuryCall, h How) (Act, error) {
	if act, known, err := o.asked(ctx, kindCall, c, h); known || err != nil {
		return act, err
	}
	tx, err := o.spend(ctx, c.AgentSlug, c.RunID, c.TaskID, c.Purpose)
	if err != nil {
		return Act{}, err
	}
	if tx.Target, err = addressOf("target", c.Target); err != nil {
		return Act{}, err
	}
	value, err := rules.Amount("value", c.Value)
	if err != nil {
		return Act{}, err
	}
	if tx.Data, err = dataOf("data", c.Data); err != nil {
		return Act{}, err
	}
	tx.Value = value.String()
	return o.perform(ctx, o.spending(kindCall, c.AgentSlug, c.RunID, c.TaskID, c, tx), h)
}

// TransferERC20 moves tokens out of the treasury, for an agent.
// It is a function of the treasury and no ExecuteCall of the token, so that the token's cap and window count it.
func (o *Operator) TransferERC20(ctx context.Context, t Transfer, h How) (Act, error) {
	if act, known, err := o.asked(ctx, kindTransfer, t, h); known || err != nil {
		return act, err
	}
	tx, err := o.spend(ctx, t.AgentSlug, t.RunID, t.TaskID, t.Purpose)
	if err != nil {
		return Act{}, err
	}
	token, err := addressOf("token", t.Token)
	if err != nil {
		return Act{}, err
	}
	if tx.Target, err = addressOf("to", t.To); err != nil {
		return Act{}, err
	}
	if t.Amount == "" {
		return Act{}, repute.Invalid("amount", "is missing", "decimal digits")
	}
	amount, err := rules.Amount("amount", t.Amount)
	if err != nil {
		return Act{}, err
	}
	tx.Token, tx.Amount = &token, amount.String()
	return o.perform(ctx, o.spending(kindTransfer, t.AgentSlug, t.RunID, t.TaskID, t, tx), h)
}

// spend returns the common fields of all calls of the treasury.
func (o *Operator) spend(ctx context.Context, slug, run, task, purpose string) (tx transaction.Tx, err error) {
	if err := slugOf("agentSlug", slug); err != nil {
		return tx, err
	}
	for _, f := range []struct{ name, text string }{{"runId", run}, {"taskId", task}} {
		if len(f.text) > maxID || strings.ContainsFunc(f.text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return tx, repute.Invalid(f.name, "is no id",
				"at most 64 printable characters, as tasks and runs have them")
		}
	}
	if n := utf8.RuneCountInString(purpose); n > maxPurpose {
		return tx, repute.Invalid("purpose", fmt.Sprintf("has %d characters", n), fmt.Sprintf("at most %d", maxPurpose))
	}
	if _, err := o.treasury(); err != nil {
		return tx, err
	}
	return transaction.Tx{ChainID: o.o.ExecutionChain, Purpose: purpose}, o.works(ctx, slug, run, task)
}

// works refuses a run or task of this service that belongs to another agent, because the action
// would be shown as theirs. Ids that are not known here are accepted.
//
// A run or a task is named for the audit and for its limits. One of another agent would put this spending on that
// agent's account; one that is unknown here may be of another service, and counts on its own.
func (o *Operator) works(ctx context.Context, slug, run, task string) error {
	if run != "" {
		r, err := rundb.Run(ctx, o.db, run)
		switch {
		case errors.Is(err, repute.ErrNotFound):
		case err != nil:
			return err
		case r.Agent != slug || task != "" && r.Task != task:
			return repute.Invalid("runId", fmt.Sprintf("is a run of agent %s in task %s", r.Agent, r.Task),
				"a run of agent "+slug+" in the task that is named")
		}
	}
	if task == "" {
		return nil
	}
	runs, err := rundb.TaskRuns(ctx, o.db, task)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	if len(runs) > 0 && !slices.ContainsFunc(runs, func(r repute.Run) bool { return r.Agent == slug }) {
		return repute.Invalid("taskId", "is a task that agent "+slug+" does not work for", "a task of the agent's runs")
	}
	return nil
}

// spending returns the action of a call or transfer by the treasury.
func (o *Operator) spending(kind, slug, run, task string, request any, tx transaction.Tx) *job {
	purpose := tx.Purpose
	if purpose == "" {
		purpose = kind
	}
	return &job{kind: kind, chain: o.o.ExecutionChain, agent: slug, run: run, task: task, request: request,
		steps: []step{{Purpose: purpose, Tx: tx}}}
}

// dataOf decodes hex digits after 0x; empty is no data.
func dataOf(field, text string) ([]byte, error) {
	if text == "" || text == "0x" {
		return nil, nil
	}
	data, err := hexutil.Decode(text)
	// The bound is that of the pool of go-ethereum for one transaction: a longer one would be refused by endpoints.
	if err != nil || len(data) > 128<<10 {
		return nil, repute.Invalid(field, "is no hex text, or longer than 131072 bytes",
			"0x and an even number of hex digits")
	}
	return data, nil
}
