package operate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/contracts"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/orchestrator/wallet"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// Options tune an Operator. Policy is needed.
type Options struct {
	// Policy returns the rules that are in force now. It is called for each decision, so that a reloaded file takes
	// effect without a restart, and MUST never return nil.
	Policy func() *policy.Policy
	// Lenient is the setting of the engines: agents without identity may work.
	Lenient bool
	// TrustChain is the chain of identities and feedback, ExecutionChain that of the treasury.
	TrustChain, ExecutionChain uint64
	// PublicURL is the public URL of this service, for the address of registration files.
	PublicURL string
	// Wait is how long a request waits for the transactions of its action; 10 s when 0.
	Wait time.Duration
	// Fresh is how long the decision about an action is valid for unsigned transactions; 1 min when
	// 0. Expire is the age at which an action without signed transactions ends; 10 min when 0.
	Fresh, Expire time.Duration
	Log           *slog.Logger // nil discards
}

// Operator carries out operator actions. It is safe for concurrent use, by any number of processes
// on one database.
//
// It keeps no state of actions in memory: compared and decoder are caches, and everything else is in the database.
type Operator struct {
	db     *store.DB
	wallet *wallet.Wallet
	o      Options

	decoder func() (*contracts.CallDecoder, error) // made once

	compared atomic.Pointer[TreasuryCompared] // the last comparison
}

// New returns an Operator that uses a wallet.
// It starts nothing: the caller runs Run in one or more processes, or else open actions are never completed.
func New(db *store.DB, w *wallet.Wallet, o Options) *Operator {
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	o.Fresh, o.Expire = cmp.Or(o.Fresh, time.Minute), cmp.Or(o.Expire, 10*time.Minute)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Operator{db: db, wallet: w, o: o, decoder: sync.OnceValues(contracts.NewCallDecoder)}
}

// Kinds of acts. They are stored.
const (
	kindPolicy   = "policy"
	kindCall     = "call"
	kindTransfer = "transfer"
	kindIdentity = "identity"
	kindWallet   = "wallet"
	kindFeedback = "feedback"
)

// job is a new operator action.
type job struct {
	kind  string
	chain uint64
	// agent is the slug of the agent, whose keccak256 is the key of its policy in the treasury.
	agent     string // slug
	signs     string // slug whose key signs, where it is not agent's
	run, task string // empty: the act itself
	// request is what an idempotency key is compared with, in the canonical JSON of package journal.
	request any
	steps   []step
}

// step is a transaction of an action in its stored form.
type step struct {
	Purpose string         `json:"purpose"`
	Owner   bool           `json:"owner,omitempty"` // the treasury's owner signs
	Tx      transaction.Tx `json:"tx"`
	// Consent completes the data of Tx after the steps before it.
	Consent *consent `json:"consent,omitempty"`
	// Calls are the decoded calls in the data of Tx; none if the data is completed later.
	Calls      []contracts.Call        `json:"calls,omitempty"`
	Simulation *transaction.Simulation `json:"simulation,omitempty"`
}

// origin names the agent, run and task on whose behalf transactions are sent.
func (j *job) origin(id string) transaction.Origin {
	return transaction.Origin{Agent: cmp.Or(j.signs, j.agent), Run: cmp.Or(j.run, id), Task: cmp.Or(j.task, id)}
}

// recorded is a stored decision with its inputs.
// It is what the column decision of an act has; a field that is renamed loses the decisions of stored acts.
type recorded struct {
	Decision
	Origin transaction.Origin `json:"origin"`
	// Inputs are what the rules were asked, one per transaction in their order: with the policy's hash they replay
	// the decision.
	Inputs []policy.Input `json:"inputs"`
	// ApprovedFor is the hash of the approved transactions and rules (see approval). It is empty
	// without approval.
	ApprovedFor string `json:"approvedFor,omitempty"`
}

// approval hashes what a person approves: the transactions of an action, and the rules that require approval. A
// later decision that rests on other rules is not what the person saw, and takes another approval.
func (d *recorded) approval(steps []step) string {
	var rules []string
	for _, r := range d.Reasons {
		if r.Effect == policy.RequireApproval {
			rules = append(rules, r.ID)
		}
	}
	slices.Sort(rules)
	transactions := make([]transaction.Tx, len(steps))
	for i := range steps {
		transactions[i] = steps[i].Tx
	}
	sum := sha256.Sum256(journal.JSON(struct {
		Rules        []string
		Transactions []transaction.Tx
	}{slices.Compact(rules), transactions}))
	return hex.EncodeToString(sum[:])
}

const (
	// maxKey and maxPurpose are in characters, and maxID is in bytes, as ids are ASCII.
	maxKey     = 80
	maxPurpose = 256
	maxID      = 64
)

// asked returns the result of an earlier request with the same idempotency key; known is false if there was none.
// Each action calls it before it looks at anything else, so that the repeated request gets its answer also where
// the state that was checked then has changed. A dry run has no key.
func (o *Operator) asked(ctx context.Context, kind string, request any, h How) (act Act, known bool, err error) {
	if utf8.RuneCountInString(h.Key) > maxKey {
		return Act{}, false, repute.Invalid("idempotencyKey", "is too long",
			fmt.Sprintf("at most %d characters", maxKey))
	}
	if h.Key == "" || h.DryRun {
		return Act{}, false, nil
	}
	row, err := walletdb.ActOfKey(ctx, o.db, h.key())
	if errors.Is(err, repute.ErrNotFound) {
		return Act{}, false, nil
	}
	if err != nil {
		return Act{}, false, err
	}
	act, err = o.again(ctx, kind, request, &row)
	return act, true, err
}

// key returns the stored idempotency key, which includes the caller: callers do not share keys.
func (h How) key() string {
	if h.Key == "" {
		return ""
	}
	return h.By + "/" + h.Key
}

// perform carries out a new action, or simulates it. The action is stored with its transactions and the decision
// before the first of them is signed: from there on Run completes it, whatever happens to this request. Of two
// requests at once with one key, one is stored and both answer with it. A refusal is a *transaction.DeniedError; it
// is stored too.
//
// The simulation and the decision come before the row, and the row before the first signature. A crash before the row
// leaves nothing; a crash after it leaves an open act that Run completes. A refused act is stored as ended, so that
// it is in the audit and never sent.
func (o *Operator) perform(ctx context.Context, j *job, h How) (Act, error) {
	row := walletdb.Act{ID: journal.NewID("act"), Key: h.key(), Kind: j.kind, By: h.By, ChainID: j.chain, Agent: j.agent,
		Alone: j.kind == kindPolicy, Request: journal.JSON(j.request)}
	denied, err := o.judge(ctx, j, h, &row)
	if err != nil {
		return Act{}, err
	}
	if denied != nil {
		row.Refused = denied.Error()
	}
	if h.DryRun {
		return o.dryRun(&row)
	}
	row, added, err := walletdb.AddAct(ctx, o.db, row)
	switch {
	case err != nil:
		return Act{}, err
	case !added:
		return o.again(ctx, j.kind, j.request, &row)
	case denied != nil:
		act, err := o.view(ctx, &row)
		return act, errors.Join(denied, err)
	}
	return o.carryOn(ctx, &row)
}

// again returns the answer to a repeated request.
// A request that repeats an open act continues it, so that a client which retries also speeds it up. A request that
// repeats a refused act gets the same error again, with the reasons of that time.
func (o *Operator) again(ctx context.Context, kind string, request any, known *walletdb.Act) (Act, error) {
	if known.Kind != kind || string(known.Request) != string(journal.JSON(request)) {
		return Act{}, repute.Conflict("the idempotency key was used for act %s, which is another: take another key",
			known.ID)
	}
	if known.Ended.IsZero() {
		return o.carryOn(ctx, known)
	}
	act, err := o.view(ctx, known)
	if err == nil && known.Refused != "" {
		err = &transaction.DeniedError{Reasons: act.Policy.Reasons}
	}
	return act, err
}

// dryRun returns the answer to a simulated action.
// The id and the time are those of a row that does not exist, and are left out.
func (o *Operator) dryRun(row *walletdb.Act) (Act, error) {
	act, err := o.shown(row)
	act.ID, act.DryRun, act.Created, act.Status = "", true, nil, Simulated
	if row.Refused != "" {
		act.Status = Refused
	}
	return act, err
}

// judge simulates the transactions of an action and asks the policy about each. denied is nil if
// the action may be sent.
//
// The facts of the agent are read once for all steps, so that one action is not decided by two different scores. Each
// step is decided on its own, and the action has the strongest effect of them all.
func (o *Operator) judge(ctx context.Context, j *job, h How, row *walletdb.Act) (denied *transaction.DeniedError,
	err error) {
	p := o.o.Policy()
	agent, err := o.facts(ctx, p, j)
	if err != nil {
		return nil, err
	}
	d := recorded{Decision: Decision{Effect: policy.Allow, Reasons: []policy.Reason{}}, Origin: j.origin(row.ID)}
	for i := range j.steps {
		if err := o.judgeStep(ctx, p, j, &j.steps[i], agent, &d); err != nil {
			return nil, err
		}
	}
	if d.Effect == policy.RequireApproval && h.Approve {
		d.Approved, d.ApprovedFor = h.By, d.approval(j.steps)
	}
	row.Decision, row.Transactions = journal.JSON(d), journal.JSON(j.steps)
	return d.denied(), nil
}

// denied returns the error for a refused action; nil if it may be sent.
func (d *Decision) denied() *transaction.DeniedError {
	if d.Effect == policy.Allow || d.Effect == policy.RequireApproval && d.Approved != "" {
		return nil
	}
	return &transaction.DeniedError{Reasons: d.Reasons}
}

// judgeStep simulates a transaction, unless it depends on an earlier one, and adds the decision of
// the policy.
// A transaction that would fail is denied with the reason runtime.simulation, which no rule can overrule.
func (o *Operator) judgeStep(ctx context.Context, p *policy.Policy, j *job, s *step, agent policy.Agent,
	d *recorded) error {
	if err := o.decode(ctx, s); err != nil {
		return err
	}
	if s.Consent == nil {
		simulated, err := o.simulate(ctx, d.Origin, s)
		if err != nil {
			return err
		}
		s.Simulation = &simulated
		if !simulated.OK {
			d.add(policy.Reason{ID: "runtime.simulation", Effect: policy.Deny,
				Text: s.Purpose + ": the transaction would fail: " + simulated.Reason})
		}
	}
	hash := p.Hash()
	d.Policy = hexutil.Encode(hash[:])
	in := input(j, s, d.Origin, agent, p)
	d.Inputs = append(d.Inputs, in)
	for _, r := range p.Decide(ctx, &in).Reasons {
		d.add(r)
	}
	return nil
}

// add adds a reason; the strongest effect counts: deny, then require_approval, then allow, which are all that a
// rule of this phase may have.
func (d *Decision) add(r policy.Reason) {
	if d.Effect != policy.Deny && r.Effect != policy.Allow {
		d.Effect = r.Effect
	}
	if !slices.Contains(d.Reasons, r) {
		d.Reasons = append(d.Reasons, r)
	}
}

// simulate simulates the transaction of a step.
func (o *Operator) simulate(ctx context.Context, origin transaction.Origin, s *step) (transaction.Simulation, error) {
	if s.Owner {
		return o.wallet.SimulateOwner(ctx, origin, s.Tx.ChainID, s.Tx.Data)
	}
	return o.wallet.Simulate(ctx, origin, s.Tx)
}

// facts returns the indexed data of the agent for which an action is done. An agent that this service does not know
// is unrated: the treasury may act for it, and the rules decide.
func (o *Operator) facts(ctx context.Context, p *policy.Policy, j *job) (policy.Agent, error) {
	unknown := policy.Agent{Slug: j.agent, Status: "unrated", Validation: policy.ValidationDisabled}
	m, err := rundb.Module(ctx, o.db, j.agent)
	if errors.Is(err, repute.ErrNotFound) {
		return unknown, nil
	}
	if err != nil {
		return unknown, err
	}
	v, err := trustgate.Decide(ctx, o.db, p, o.o.Lenient, m, policy.Task{Coordinator: j.agent, Value: "0"},
		policy.Threshold{})
	return v.Agent, err
}

// input returns the input of the policy's rules for a transaction of an action.
//
// The limits of the policy stand for the budget of the task, as an operator action has none; the fee of the
// simulation replaces the limit on gas where there is one. Rules recognize an operator action by the tag operator.
func input(j *job, s *step, origin transaction.Origin, agent policy.Agent, p *policy.Policy) policy.Input {
	budget := p.Limits()
	if s.Simulation != nil && budget.GasWei != "" {
		budget.GasWei = s.Simulation.FeeWei
	}
	in := policy.Input{Phase: "call", Agent: agent,
		Task: policy.Task{ID: origin.Task, Goal: j.kind, Coordinator: j.agent, Value: cmp.Or(s.Tx.Value, "0"),
			Tags: []string{"operator"}, Budget: budget},
		Call: s.Tx.Call()}
	in.Call.Purpose = s.Purpose
	if len(s.Calls) > 0 && s.Calls[0].Decoded != nil {
		in.Call.Function, in.Call.Args = s.Calls[0].Function, s.Calls[0].Decoded.Values()
	}
	return in
}

// slugOf refuses a text that is not a slug.
// It is the pattern of the API's documents, checked again here because stored requests and calls of other packages do
// not pass the API.
func slugOf(field, s string) error {
	plain := !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') &&
			(r < '0' || r > '9')
	})
	if s == "" || len(s) > maxID || !plain || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") ||
		strings.Contains(s, "--") {
		return repute.Invalid(field, fmt.Sprintf("%.80q is no slug", s),
			"lower-case words joined by hyphens, at most 64 bytes")
	}
	return nil
}

// addressOf reads an address that is not zero.
func addressOf(field, s string) (common.Address, error) {
	a, err := repute.ParseAddress(field, s)
	if err == nil && (a == common.Address{}) {
		err = repute.Invalid(field, "is the zero address", "an address")
	}
	return a, err
}
