// Package workgraph reads tasks, runs and the treasury for GraphQL: from the same rows as the routes under /v1, for
// the same callers, in the shapes of api/wire/work. Package api calls a Reader through an interface of its own, so
// that it does not import the orchestrator.
//
// Every method checks the caller first. Lists of a run are cut to what a page shows, and the routes have the rest.
// The runs of many agents are read with a fixed number of statements. The treasury is read from the chain, which asks
// all of its endpoints: callers share one reading for three seconds.
package workgraph

import (
	"context"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/api/wire/work"
	"repute/internal/cache"
	"repute/internal/httpapi"
	"repute/orchestrator/control"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/treasury"
	"repute/orchestrator/operate"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

const (
	// shownReceipts is how many receipts a run has in GraphQL; /v1/runs/{id}/receipts has all.
	shownReceipts = 200
	// shownCaps is how many agents the treasury and the sums of purchases have in GraphQL.
	shownCaps = 32
	// shownEvents is how many events the treasury has in GraphQL, the newest ones.
	shownEvents = 20
)

// Reader reads tasks, runs and the treasury. Make one with New.
type Reader struct {
	db           *store.DB
	operator     *operate.Operator
	privateReads bool
	treasury     *cache.Brief[work.Treasury]
}

const (
	// treasuryKept is how long callers share what was read of the treasury: each reading asks the endpoints of the
	// chain.
	treasuryKept = 3 * time.Second
	// treasuryLimit bounds a reading of it.
	treasuryLimit = time.Minute
)

// New returns a reader of a database. The operator reads the treasury; nil: no wallet is configured, and the treasury
// says so. privateReads requires a token with the role read, as in control.Options.
func New(db *store.DB, operator *operate.Operator, privateReads bool) Reader {
	return Reader{db, operator, privateReads,
		cache.NewBrief[work.Treasury]("the treasury", treasuryKept, treasuryLimit)}
}

// permit returns why the caller of a request may not read; nil if it may.
func (r Reader) permit(ctx context.Context) error {
	if !r.privateReads {
		return nil
	}
	return httpapi.Allowed(ctx, httpapi.RoleRead)
}

// Tasks returns a page of tasks, the newest first.
func (r Reader) Tasks(ctx context.Context, f work.Filter) (out work.Page[work.Task], err error) {
	if err := r.permit(ctx); err != nil {
		return out, err
	}
	in := control.TasksInput{Status: f.Status, Coordinator: f.Agent,
		PageInput: rest.PageInput{Limit: httpapi.Number(strconv.Itoa(f.First)), Cursor: f.After}}
	if f.Awaiting {
		in.Awaiting = "approval"
	}
	list, err := control.Tasks(ctx, r.db, &in)
	return work.Page[work.Task]{Nodes: wire.Each(list.Tasks, taskInGraph), Next: list.Next}, err
}

// taskInGraph converts a task into its form in GraphQL.
func taskInGraph(t control.Task) work.Task {
	return work.Task{ID: wire.ID(t.ID), RunID: wire.ID(t.RunID), Goal: t.Goal, Coordinator: t.Coordinator,
		Status: string(t.Status), AskedBy: t.AskedBy, Awaiting: t.Awaiting != "", Error: wire.OrNull(t.Error),
		ValueAtRisk: wire.OrNull(wire.BigInt(t.ValueAtRisk)), Tags: rest.OrEmpty(t.Tags),
		Created: *wire.EncodeTime(t.Created), Updated: *wire.EncodeTime(t.Updated)}
}

// Runs returns a page of runs, the newest first.
func (r Reader) Runs(ctx context.Context, f work.Filter) (out work.Page[work.RunLine], err error) {
	if err := r.permit(ctx); err != nil {
		return out, err
	}
	if err := rest.Known("agent", f.Agent); err != nil {
		return out, err
	}
	filter := rundb.RunFilter{Status: repute.RunStatus(f.Status), Agent: f.Agent, Awaiting: f.Awaiting}
	of := control.ListOfRuns(filter.Status, f.Agent, "", f.Awaiting)
	if filter.Before, filter.BeforeID, err = of.ReadCursor(f.After); err != nil {
		return out, err
	}
	list, err := rundb.Runs(ctx, r.db, filter, f.First+1)
	if err != nil {
		return out, err
	}
	list, out.Next, err = control.CutRuns(list, f.First, of)
	out.Nodes = wire.Each(list, lineInGraph)
	return out, err
}

// lineInGraph converts a stored run into its form in lists of GraphQL.
func lineInGraph(r repute.Run) work.RunLine {
	out := work.RunLine{ID: wire.ID(r.ID), TaskID: wire.ID(r.Task), RootID: wire.ID(r.Root),
		Parent: wire.OrNull(wire.ID(r.Parent)),
		Step:   wire.OrNull(r.ParentStep), Agent: r.Agent, Goal: r.Goal, Status: string(r.Status),
		Awaiting: r.Awaiting != "",
		Attempt:  int32(min(r.Attempt, maxAttempt)), Error: wire.OrNull(r.Error), Created: *wire.EncodeTime(r.Created),
		Started: wire.EncodeTime(r.Started), Ended: wire.EncodeTime(r.Ended)}
	if r.Phase != 0 {
		phase := r.Phase.String()
		out.Phase = &phase
	}
	return out
}

// maxAttempt is the greatest attempt that a 32-bit number of GraphQL holds.
const maxAttempt = 1<<31 - 1

// Run returns a run with what is stored about it. repute.ErrNotFound if there is none.
func (r Reader) Run(ctx context.Context, id string) (out work.Run, err error) {
	if err := r.permit(ctx); err != nil {
		return out, err
	}
	w, err := control.ReadRun(ctx, r.db, id)
	if err != nil {
		return out, err
	}
	if out, err = runInGraph(&w); err != nil {
		return out, err
	}
	all, err := rundb.TaskRuns(ctx, r.db, w.TaskID)
	if err != nil {
		return out, err
	}
	out.Runs = wire.Each(all, lineInGraph)
	for _, line := range out.Runs {
		if string(line.ID) == w.ID {
			out.RunLine = line
		}
	}
	receipts, err := rundb.ReceiptPage(ctx, r.db, w.ID, 0, shownReceipts+1)
	if out.MoreReceipts = len(receipts) > shownReceipts; out.MoreReceipts {
		receipts = receipts[:shownReceipts]
	}
	out.Receipts = wire.Each(receipts, receiptInGraph)
	return out, err
}

// Treasury returns the treasury with what it lets each agent spend, as of one block of the last seconds.
// repute.ErrNotFound if none is configured.
func (r Reader) Treasury(ctx context.Context) (out work.Treasury, err error) {
	if err := r.permit(ctx); err != nil {
		return out, err
	}
	if r.operator == nil {
		return out, treasury.NoWallet()
	}
	return r.treasury.Get(ctx, r.readTreasury)
}

// readTreasury reads the treasury at the newest block. Agents that it has no policy for are left out.
func (r Reader) readTreasury(ctx context.Context) (out work.Treasury, err error) {
	modules, err := rundb.Modules(ctx, r.db)
	if err != nil {
		return out, err
	}
	slugs := []string{}
	for _, m := range modules[:min(len(modules), shownCaps)] {
		slugs = append(slugs, m.Slug)
	}
	s, policies, err := r.operator.TreasuryOverview(ctx, slugs...)
	if err != nil {
		return out, err
	}
	out = work.Treasury{ChainID: wire.Long(s.ChainID), Address: wire.Address(s.Address),
		BalanceWei: wire.BigInt(s.Balance),
		Owner:      wire.Address(s.Owner), PendingOwner: wire.OrNull(wire.Address(s.PendingOwner)),
		Operator: wire.OrNull(wire.Address(s.Operator)), Paused: s.Paused, Block: wire.Long(s.Block),
		BlockTime: *wire.EncodeTime(s.BlockTime), Agents: []work.Cap{}}
	for i := range policies {
		if policies[i].Operator != (common.Address{}).Hex() {
			out.Agents = append(out.Agents, capInGraph(&policies[i]))
		}
	}
	events, err := walletdb.TreasuryEvents(ctx, r.db, s.ChainID, common.HexToAddress(s.Address), common.Hash{},
		newest, 0,
		shownEvents)
	for i := range events {
		out.Events = append(out.Events, eventInGraph(treasury.Encode(&events[i])))
	}
	out.Events = rest.OrEmpty(out.Events)
	return out, err
}

// Purchases returns what agents paid by x402, as the caps of payments count it.
func (r Reader) Purchases(ctx context.Context) (out work.PurchaseTotals, err error) {
	if err := r.permit(ctx); err != nil {
		return out, err
	}
	all, agents, err := walletdb.SumPurchases(ctx, r.db, shownCaps)
	if err != nil {
		return out, err
	}
	return work.PurchaseTotals{DayUsd: wire.Decimal(all.Day.String()), WeekUsd: wire.Decimal(all.Week.String()),
		Count: wire.Long(all.Count), Agents: wire.Each(agents, purchasesInGraph)}, nil
}

// purchasesInGraph converts what an agent paid into its form in GraphQL.
func purchasesInGraph(a walletdb.AgentPurchases) work.AgentPurchases {
	return work.AgentPurchases{Agent: a.Agent, DayUsd: wire.Decimal(a.Day.String()),
		WeekUsd: wire.Decimal(a.Week.String()), Count: wire.Long(a.Count)}
}

// newest is a block above all blocks.
const newest = 1<<63 - 1

// capInGraph converts an agent's policy in the treasury into its form in GraphQL.
func capInGraph(p *operate.TreasuryPolicy) work.Cap {
	c := work.Cap{Agent: p.AgentSlug, Active: p.Active, Operator: wire.Address(p.Operator),
		PerTxCapWei: wire.BigInt(p.NativePerTxCapWei), WindowCapWei: wire.BigInt(p.NativeWindowCapWei),
		WindowSeconds: wire.Long(p.WindowDurationSeconds), WindowSpentWei: wire.BigInt(p.NativeWindowSpentWei),
		LeftWei: wire.BigInt(p.NativeLeftWei)}
	if p.NativeWindowStart > 0 {
		c.WindowStart = wire.EncodeTime(time.Unix(int64(p.NativeWindowStart), 0))
	}
	return c
}
