package web

import (
	"context"
	"strings"
	"time"

	"repute/web/budget"
	"repute/web/failure"
	"repute/web/format"
	"repute/web/query"
)

// taskRow is a task in a list.
type taskRow struct {
	ID, RunID, Goal, Coordinator, Status, AskedBy string
	Awaiting                                      bool
	Error, ValueAtRisk                            *string
	Tags                                          []string
	Created, Updated                              *time.Time
}

// runLine is a run in a list.
type runLine struct {
	ID, TaskID, RootID      string
	Parent, Step            *string
	Agent, Goal, Status     string
	Awaiting                bool
	Attempt                 int64
	Phase, Error            *string
	Created, Started, Ended *time.Time
}

// Over reports whether the run has ended.
func (r runLine) Over() bool {
	return r.Status == "completed" || r.Status == "failed" || r.Status == "cancelled"
}

// Took returns how long the run has worked, in milliseconds; -1 where it has not begun or has not ended.
func (r runLine) Took() int64 { return took(r.Started, r.Ended) }

// took returns the milliseconds between two times; -1 where one is missing.
func took(from, to *time.Time) int64 {
	if from == nil || to == nil {
		return -1
	}
	return to.Sub(*from).Milliseconds()
}

// workReason is a limit, threshold or rule that applies.
type workReason struct {
	ID, Effect, Text string
	Have, Need       *string
}

// treasuryEvent is an event that a treasury emitted.
type treasuryEvent struct {
	ChainID, Block                                int64
	Treasury, Kind, Transaction, Finality, Fields string
	BlockTime                                     *time.Time
}

// receipt is the record of a call.
type receipt struct {
	ID                 string
	Step               *string
	Kind, Ref, Summary string
	ChainID            *int64
	Domain             *string
	Done               bool
	Error              *string
	Started, Ended     *time.Time
}

// Took returns how long the call took, in milliseconds; -1 where nobody saw its end.
func (r receipt) Took() int64 { return took(r.Started, r.Ended) }

// phase is the record of a phase.
type phase struct {
	Phase, Status  string
	Attempt        int64
	Error          *string
	Started, Ended *time.Time
}

// Took returns how long the phase took, in milliseconds.
func (p phase) Took() int64 { return took(p.Started, p.Ended) }

// awaited is a decision that waits for a person.
type awaited struct {
	Subject string
	Reasons []workReason
	Shown   *struct {
		ChainID, EventsOmitted          int64
		Target                          string
		Payee                           *string
		ValueWei, Purpose               string
		Calls, Amounts, Effects, Events []string
		Names                           []struct {
			Address string
			Names   []string
		}
		AgentStatus     string
		AgentScore, Low float64
		AgentTier       int64
	}
}

// run is a run with what is stored about it.
type run struct {
	runLine
	Limits  budget.Amounts
	Used    *budget.Amounts
	Reasons []workReason
	Cancel  *string
	Phases  []phase
	Steps   []struct {
		ID, Status                        string
		Description, Agent, Error, Result *string
		DependsOn                         []string
	}
	Verification *struct {
		Score  float64
		Checks []struct {
			Name    string
			Passed  bool
			Details *string
		}
	}
	Summary *struct {
		Text                           string
		KeyActions, Receipts, Warnings []string
	}
	Trust *struct {
		AgentID                      *string
		Effect, Status, ValueAtRisk  string
		Score, Low, High, Confidence float64
		Tier                         int64
		Policy                       string
		Reasons                      []workReason
		At                           *time.Time
	}
	Decisions []struct {
		Number, Attempt                            int64
		Phase, Kind, Subject, Effect, Policy, Hash string
		Reasons                                    []workReason
		At                                         *time.Time
	}
	Chain struct {
		Count  int64
		Head   string
		Signer *string
	}
	Approvals []struct {
		Subject, By string
		Approved    bool
		Reason      *string
		At          *time.Time
	}
	Awaited      []awaited
	Receipts     []receipt
	MoreReceipts bool
	Events       []treasuryEvent
	Runs         []runLine
}

// Budget returns the limits of the run, each with what was used of it.
func (r run) Budget() []budget.Line { return budget.Lines(r.Limits, r.Used) }

// Root returns the run of the whole task.
func (r run) Root() runLine {
	for _, other := range r.Runs {
		if other.ID == r.RootID {
			return other
		}
	}
	return r.runLine
}

// Transactions returns the receipts of transactions and payments.
func (r run) Transactions() (list []receipt) {
	for _, one := range r.Receipts {
		if one.Kind == "transaction" || one.Kind == "payment" {
			list = append(list, one)
		}
	}
	return list
}

// Evidence returns the receipts of what was looked at to check the run.
func (r run) Evidence() (list []receipt) {
	for _, one := range r.Receipts {
		if one.Kind == "verification" {
			list = append(list, one)
		}
	}
	return list
}

// Waits returns other runs of the task that wait for a person.
func (r run) Waits() (list []runLine) {
	for _, other := range r.Runs {
		if other.Awaiting && other.ID != r.ID {
			list = append(list, other)
		}
	}
	return list
}

// workFilter reads the variables of a list of tasks or runs from the parameters of the page.
func workFilter(p *page) map[string]any {
	variables := query.Given(map[string]any{"status": p.Query.Get("status"),
		"agent": strings.TrimSpace(p.Query.Get("agent")),
		"first": exploreRows, "after": p.Query.Get("after")})
	if p.Is("awaiting", "true") {
		variables["awaiting"] = true
	}
	return variables
}

// tasks shows the tasks that were given, the newest first.
func (s *site) tasks(ctx context.Context, p *page) (string, error) {
	p.Title = "Tasks"
	l, err := ask[struct{ Tasks listOf[taskRow] }](ctx, s, p, "tasks", workFilter(p))
	p.Body = guard(p, struct {
		Tasks []taskRow
		Next  string
	}{l.Tasks.Nodes, nextPage(p, l.Tasks.PageInfo)}, true, err)
	return "tasks", nil
}

// runs shows the runs of all tasks, the newest first.
func (s *site) runs(ctx context.Context, p *page) (string, error) {
	p.Title = "Runs"
	l, err := ask[struct{ Runs listOf[runLine] }](ctx, s, p, "runs", workFilter(p))
	p.Body = guard(p, struct {
		Runs []runLine
		Next string
	}{l.Runs.Nodes, nextPage(p, l.Runs.PageInfo)}, true, err)
	return "runs", nil
}

// run shows one run.
func (s *site) run(ctx context.Context, p *page) (string, error) {
	p.Title = "Run " + format.Short(p.ID)
	r, err := ask[struct{ Run *run }](ctx, s, p, "run", map[string]any{"id": p.ID})
	if err == nil && r.Run == nil {
		return "", failure.ErrNowhere
	}
	live := err == nil && !(r.Run.Over() && r.Run.Root().Over())
	p.Body = guard(p, r.Run, live, err)
	return "run", nil
}

// treasuryShown is the treasury that runs spend from.
type treasuryShown struct {
	ChainID, Block             int64
	Address, BalanceWei, Owner string
	PendingOwner, Operator     *string
	Paused                     bool
	BlockTime                  *time.Time
	Agents                     []struct {
		Agent, Operator           string
		Active                    bool
		PerTxCapWei, WindowCapWei string
		WindowSeconds             int64
		WindowStart               *time.Time
		WindowSpentWei, LeftWei   string
	}
	Events []treasuryEvent
}

// purchases are what agents paid by x402, which the treasury does not see.
type purchases struct {
	DayUsd, WeekUsd string
	Count           int64
	Agents          []struct {
		Agent, DayUsd, WeekUsd string
		Count                  int64
	}
}

// spending is what agents paid by x402, and the treasury or why there is none to show: agents pay without one too.
type spending struct {
	Treasury  *treasuryShown
	Missing   *failure.Text
	Purchases *purchases
}

// treasury shows what runs spend from, what is left of each agent's caps, and what agents paid by x402.
func (s *site) treasury(ctx context.Context, p *page) (string, error) {
	p.Title = "Treasury"
	shown, err := s.spending(ctx, p)
	p.Body = guard(p, shown, true, err)
	return "treasury", nil
}

// spending reads what the page of the treasury shows.
func (s *site) spending(ctx context.Context, p *page) (out spending, err error) {
	paid, err := ask[struct{ Purchases *purchases }](ctx, s, p, "purchases", map[string]any{})
	if err != nil {
		return out, err
	}
	out.Purchases = paid.Purchases
	t, err := ask[struct{ Treasury *treasuryShown }](ctx, s, p, "treasury", map[string]any{})
	if failure.NotServed(err) {
		out.Missing, err = new(failure.Of(err)), nil
	}
	out.Treasury = t.Treasury
	return out, err
}
