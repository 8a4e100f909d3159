// Package tasks has the commands for tasks, runs and agents of the orchestrator.
//
// Each works in one of two ways: on the configured database, or with --orchestrator on a running server over HTTP. On
// the database a command writes what the server's route would write (package orchestrator/tasks: a row and a job in one
// transaction) and ends; a process with the role orchestrator does the work. Over HTTP the token says who asks, on the
// database --by does. Both print the same, so that a script need not know which it uses.
//
// task submit and task watch follow a run to its end: on the database by looking every 250 ms, over HTTP by the stream
// of events, which is asked for again from the last event when it breaks. They exit with 1 when the run did not
// complete. Texts of agents are strangers' texts and are made safe for a terminal; with --json each line is one value.
//
// agent new writes the start of an agent from an embedded scaffold. agent run builds and serves such a directory, or an
// agent that repute comes with, and registers it; it ends when either the agent or the command is ended.
package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// TaskCommand returns the command that submits, watches, cancels, approves and retries tasks. The flag --by is used on
// the database only. Over HTTP the name of the token is stored.
func TaskCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "task", Short: "ask for tasks, follow and decide on them"}
	p.Flags.Database(cmd.PersistentFlags())
	by := cmd.PersistentFlags().String("by", "operator", "who does it, as it is kept with the task")
	e := &remoteClient{}
	e.Flags(cmd.PersistentFlags())
	cmd.AddCommand(taskSubmitCommand(p, by, e), taskWatchCommand(p, e), taskCancelCommand(p, by, e),
		taskApproveCommand(p, by, e), taskRetryCommand(p, by, e))
	return cmd
}

// withClient calls f with the configured database. A running orchestrator on that database does the
// work that f requests.
func withClient(ctx context.Context, p *cli.Program, f func(*store.DB, *tasks.Client) error) error {
	return p.WithStore(ctx, func(_ config.Config, db *store.DB) error {
		client, err := tasks.NewClient(db)
		if err != nil {
			return err
		}
		return f(db, client)
	})
}

// taskSubmitCommand returns `repute task submit`. A task with the key of an earlier one is that task: its ids are
// printed and nothing is begun, so that a script may repeat the command. With --watch the ids are printed first,
// because the watch may be interrupted.
func taskSubmitCommand(p *cli.Program, by *string, e *remoteClient) *cobra.Command {
	var r standard.Request
	var input string
	var reputation float64
	var watch bool
	cmd := &cobra.Command{
		Use:     "submit GOAL",
		Short:   "ask for a task; prints its id and that of its run",
		Example: "  repute task submit 'rate agent 8453:22' --coordinator coordinator --watch",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Goal, r.Input, r.By = args[0], json.RawMessage(input), *by
			if cmd.Flags().Changed("min-reputation") {
				r.Threshold.MinReputation = &reputation
			}
			if e.URL != "" {
				return submitRemote(cmd.Context(), p, e, r, watch)
			}
			return withClient(cmd.Context(), p, func(db *store.DB, client *tasks.Client) error {
				t, _, err := client.Submit(cmd.Context(), r)
				if err != nil {
					return err
				}
				if err := submitted(p, t.ID, t.Run); err != nil || !watch {
					return err
				}
				return watchTask(cmd.Context(), p, db, t)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Coordinator, "coordinator", "coordinator", "slug of the agent that plans it")
	f.StringVar(&input, "input", "", "JSON for the coordinator")
	f.StringVar(&r.Key, "key", "", "equal keys: one task")
	f.StringVar(&r.ValueAtRisk, "value-at-risk", "", "in wei")
	f.StringSliceVar(&r.Tags, "tag", nil, "tags of the task, for policies")
	f.Float64Var(&reputation, "min-reputation", 0, "lower bound of the score that agents need, -100 to 100")
	thresholdFlags(f, &r.Threshold)
	budgetFlags(f, &r.Budget)
	f.BoolVar(&watch, "watch", false, "follow it until it ends, and print its result")
	p.JSONFlag(f, "print one JSON object per line: the task, and with --watch its events and its result")
	return cmd
}

// thresholdFlags adds the flags of trust thresholds.
func thresholdFlags(f *pflag.FlagSet, t *policy.Threshold) {
	f.Float64Var(&t.MinTrustScore, "min-trust-score", 0, "of OpenFi's scale, 0 to 1")
	f.Int64Var(&t.MinTier, "min-tier", 0, "that agents need, 1 to 4")
	f.BoolVar(&t.Verified, "verified", false, "the agents' scores must follow from verified blocks alone")
	f.StringSliceVar(&t.Gates, "gate", nil, "that agents must pass")
	f.BoolVar(&t.RequireIdentity, "require-identity", false, "agents need an onchain identity")
	f.BoolVar(&t.RequireRegistration, "require-registration", false, "agents need a registration file that names them")
	f.BoolVar(&t.RequireValidation, "require-validation", false, "agents need a validation that counts")
}

// budgetFlags adds the flags of the budget of a run and all runs below it. Limits that are not given have their
// defaults. A bound of 0 allows nothing and differs from an absent one, which is why these flags set pointers.
func budgetFlags(f *pflag.FlagSet, b *policy.Bounds) {
	f.Var(countFlag{&b.Steps}, "max-steps",
		"steps of the run and all below it; 0 allows none, as with the next ones; not given: the default")
	f.Var(countFlag{&b.ToolCalls}, "max-tool-calls", "tools, HTTP, reads and simulations")
	f.Var(countFlag{&b.RuntimeMS}, "max-runtime-ms", "milliseconds")
	f.Var(countFlag{&b.OnchainWrites}, "max-writes", "transactions")
	f.Var(countFlag{&b.Tokens}, "max-tokens", "tokens that language models read and write; not given: no limit")
	f.StringVar(&b.CostUSD, "max-cost", "", "what language models may cost, in dollars")
	f.StringVar(&b.GasWei, "max-gas", "", "what their gas may cost, in wei")
	f.StringVar(&b.PaymentUSD, "max-payment", "",
		"dollars that may be paid for answers by x402; not given: maxTask of the policy's payments, which it cannot raise")
}

// countFlag is the flag of an optional number. It is nil until the flag is given.
type countFlag struct{ to **int64 }

// Set implements pflag.Value.
func (c countFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		*c.to = &n
	}
	return err
}

// String implements pflag.Value; the zero countFlag and an absent number are empty.
func (c countFlag) String() string {
	if c.to == nil || *c.to == nil {
		return ""
	}
	return strconv.FormatInt(**c.to, 10)
}

// Type implements pflag.Value.
func (countFlag) Type() string { return "int" }

// submitRemote submits a task to a remote orchestrator and, with watch, follows it. The name of --by is not sent: the
// token says who asks.
func submitRemote(ctx context.Context, p *cli.Program, e *remoteClient, r standard.Request, watch bool) error {
	asked := control.TaskRequest{Goal: r.Goal, Input: r.Input, Coordinator: r.Coordinator,
		Terms: control.Terms(r.Terms), Key: r.Key}
	var t control.Task
	if err := e.Call(ctx, http.MethodPost, "/v1/tasks", asked, &t); err != nil {
		return err
	}
	if err := submitted(p, t.ID, t.RunID); err != nil || !watch {
		return err
	}
	return watchRemote(ctx, p, e, t.ID)
}

// submitted prints the ids of a task and of its run.
func submitted(p *cli.Program, task, run string) error {
	if p.JSON {
		return p.PrintLine(struct {
			Kind string `json:"kind"`
			Task string `json:"taskId"`
			Run  string `json:"runId"`
		}{"task", task, run})
	}
	_, err := fmt.Fprintf(p.Stdout, "task %s\nrun  %s\n", cli.Visible(task), cli.Visible(run))
	return err
}

// taskWatchCommand returns `repute task watch`. It may be started at any time, also after the end of the task: events
// are printed from the first one on.
func taskWatchCommand(p *cli.Program, e *remoteClient) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch TASK",
		Short: "print a task's events until it ends, then its result; exits with 1 when it did not complete",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.URL != "" {
				return watchRemote(cmd.Context(), p, e, args[0])
			}
			return withClient(cmd.Context(), p, func(db *store.DB, _ *tasks.Client) error {
				t, err := rundb.Task(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return watchTask(cmd.Context(), p, db, t)
			})
		},
	}
	p.JSONFlag(cmd.Flags(), "print one JSON object per line")
	return cmd
}

// watchEvery is the interval of reading new events. A watcher sends two short queries in each.
const watchEvery = 250 * time.Millisecond

// watchTask prints events until the root run has ended, then its result. Events are read in pages of 200, without a
// pause while a page is full or has any event at all.
func watchTask(ctx context.Context, p *cli.Program, db *store.DB, t repute.Task) error {
	for after := int64(0); ; {
		run, err := rundb.Run(ctx, db, t.Run) // read before the events, so that all events of an ended run are printed
		if err != nil {
			return err
		}
		list, err := rundb.Events(ctx, db, t.Run, after, 200)
		if err != nil {
			return err
		}
		for _, e := range list {
			after = e.Number
			if err := showEvent(p, t.Run, e); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			continue
		}
		if run.Status.Ended() {
			done, err := control.ReadResult(ctx, db, run)
			if err != nil {
				return err
			}
			return ended(p, done)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// showEvent prints an event of the root run, or of a run below it, which is named.
func showEvent(p *cli.Program, root string, e repute.RunEvent) error {
	if p.JSON {
		return p.PrintLine(map[string]any{"number": e.Number, "runId": e.Run, "kind": e.Kind, "data": e.Data,
			"at": e.Time})
	}
	of := ""
	if e.Run != root {
		of = "  " + cli.Visible(e.Run)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s  %-18s %s%s\n", e.Time.Format("15:04:05.000"), cli.Visible(e.Kind),
		cli.Visible(string(e.Data)), of)
	return err
}

// done prints what was done, unless err is set.
func done(p *cli.Program, err error, what string) error {
	if err == nil {
		fmt.Fprintln(p.Stdout, what)
	}
	return err
}

// taskCancelCommand returns `repute task cancel`. The command stores the request and returns. The worker sees it when
// it next renews its claim, so that the run may continue for some seconds.
func taskCancelCommand(p *cli.Program, by *string, e *remoteClient) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "ask that a task end",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.URL != "" {
				return done(p, e.Call(cmd.Context(), http.MethodPost, taskPath(args[0], "/cancel"),
					control.Cancellation{Reason: reason}, nil), "told to end")
			}
			return withClient(cmd.Context(), p, func(_ *store.DB, client *tasks.Client) error {
				return done(p, client.Cancel(cmd.Context(), args[0], *by, reason), "told to end")
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

// taskApproveCommand returns `repute task approve`. Without --subject it prints what the run waits for and exits with
// 2, so that a script cannot mistake a question for an answer.
func taskApproveCommand(p *cli.Program, by *string, e *remoteClient) *cobra.Command {
	var reason, subject string
	var deny bool
	cmd := &cobra.Command{
		Use:   "approve TASK|RUN",
		Short: "show what a run waits for; answer with --subject (approve) or --subject --deny (reject)",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			yes, said := !deny, map[bool]string{true: "denied", false: "approved"}[deny]
			if e.URL != "" {
				if subject == "" {
					return askRemote(cmd.Context(), p, e, args[0])
				}
				return done(p, e.approve(cmd.Context(), args[0],
					control.ApprovalAnswer{Subject: subject, Approved: &yes,
						Reason: reason}), said)
			}
			return withClient(cmd.Context(), p, func(db *store.DB, client *tasks.Client) error {
				run := args[0]
				if runs, err := rundb.TaskRuns(cmd.Context(), db, args[0]); err != nil {
					return err
				} else if len(runs) > 0 {
					run = waitingOf(runs)
				}
				if subject == "" {
					open, err := rundb.Awaited(cmd.Context(), db, run)
					if err != nil {
						return err
					}
					list, err := control.AwaitedOf(open)
					if err != nil {
						return err
					}
					return ask(p, run, list)
				}
				return done(p, client.Approve(cmd.Context(), run, subject, yes, *by, reason), said)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().BoolVar(&deny, "deny", false, "reject instead of approve")
	cmd.Flags().StringVar(&subject, "subject", "",
		"what the answer is about; without it what the run waits for is shown")
	return cmd
}

// ask prints the open approvals of a run with the command that answers them: nobody should approve unseen. It returns
// repute.ErrConflict when nothing is pending, and otherwise repute.ErrInvalid with the subjects, which are what the
// next call must choose from.
func ask(p *cli.Program, run string, open []control.Awaited) error {
	if len(open) == 0 {
		return repute.Conflict("no approval of run %s is pending", run)
	}
	subjects := make([]string, len(open))
	for i, a := range open {
		subjects[i] = a.Subject
		text, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintln(p.Stdout, cli.VisibleLines(string(text)))
	}
	return repute.Invalid("subject", "is missing",
		"look at what is shown, then --subject with one of: "+strings.Join(subjects, ", "))
}

// waitingOf returns the run of a task that itself waits for an approval; the runs above it wait for it. The runs are in
// the order of their creation, so that a run comes after the one that began it. It is the root run when none waits,
// whose error then says so. The list MUST NOT be empty.
func waitingOf(runs []repute.Run) string {
	id := runs[0].ID
	for _, r := range runs {
		if r.Awaiting != "" {
			id = r.ID
		}
	}
	return id
}

// taskRetryCommand returns `repute task retry`. Phases before the given one are not repeated, and their results are
// used. A phase that does not exist is refused here, with the names of all, before the database or the server is asked.
func taskRetryCommand(p *cli.Program, by *string, e *remoteClient) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "begin another attempt of a task that failed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, ok := repute.ParsePhase(cmp.Or(name, repute.PhaseDiscover.String()))
			if !ok {
				return repute.Invalid("from", fmt.Sprintf("%.40q is no phase", name),
					fmt.Sprintf("one of %v", repute.Phases()))
			}
			if name == "" {
				from = 0
			}
			if e.URL != "" {
				return done(p, e.Call(cmd.Context(), http.MethodPost, taskPath(args[0], "/retry"),
					control.RetryFrom{From: name},
					nil), "begun again")
			}
			return withClient(cmd.Context(), p, func(_ *store.DB, client *tasks.Client) error {
				return done(p, client.Retry(cmd.Context(), args[0], from, *by), "begun again")
			})
		},
	}
	cmd.Flags().StringVar(&name, "from", "", "phase to begin with; the one that failed when absent")
	return cmd
}
