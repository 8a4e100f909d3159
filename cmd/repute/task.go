package main

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
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

func (p *program) taskCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "task", Short: "ask for tasks, follow and decide on them"}
	p.flags.database(cmd.PersistentFlags())
	by := cmd.PersistentFlags().String("by", "operator", "who does it, as it is kept with the task")
	e := &elsewhere{}
	e.flags(cmd.PersistentFlags())
	cmd.AddCommand(p.taskSubmitCommand(by, e), p.taskWatchCommand(e), p.taskCancelCommand(by, e), p.taskApproveCommand(by, e), p.taskRetryCommand(by, e))
	return cmd
}

// withDesk runs f on the configured database. Whoever runs tasks there finds what f asks.
func (p *program) withDesk(ctx context.Context, f func(*store.DB, *orchestrator.Desk) error) error {
	return p.withStore(ctx, func(_ config, db *store.DB) error {
		desk, err := orchestrator.NewDesk(db)
		if err != nil {
			return err
		}
		return f(db, desk)
	})
}

func (p *program) taskSubmitCommand(by *string, e *elsewhere) *cobra.Command {
	var r orchestrator.Request
	var input string
	var reputation float64
	var watch, asJSON bool
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
			if e.url != "" {
				return p.submitElsewhere(cmd.Context(), e, r, watch, asJSON)
			}
			return p.withDesk(cmd.Context(), func(db *store.DB, desk *orchestrator.Desk) error {
				t, _, err := desk.Submit(cmd.Context(), r)
				if err != nil {
					return err
				}
				if err := p.submitted(t.ID, t.Run, asJSON); err != nil || !watch {
					return err
				}
				return p.watch(cmd.Context(), db, t, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Coordinator, "coordinator", "coordinator", "slug of the agent that plans it")
	f.StringVar(&input, "input", "", "JSON for the coordinator")
	f.StringVar(&r.Key, "key", "", "makes asking twice one task")
	f.StringVar(&r.ValueAtRisk, "value-at-risk", "", "in wei")
	f.StringSliceVar(&r.Tags, "tag", nil, "tags of the task, for policies")
	f.Float64Var(&reputation, "min-reputation", 0, "lower bound of the score that agents need, -100 to 100")
	thresholdFlags(f, &r.Threshold)
	budgetFlags(f, &r.Budget)
	f.BoolVar(&watch, "watch", false, "follow it until it ends, and print its result")
	f.BoolVar(&asJSON, "json", false, "print one JSON object per line: the task, and with --watch its events and its result")
	return cmd
}

func thresholdFlags(f *pflag.FlagSet, t *policy.Threshold) {
	f.Float64Var(&t.MinTrustScore, "min-trust-score", 0, "of OpenFi's scale, 0 to 1")
	f.Int64Var(&t.MinTier, "min-tier", 0, "that agents need, 1 to 4")
	f.StringSliceVar(&t.Gates, "gate", nil, "that agents must pass")
	f.BoolVar(&t.RequireIdentity, "require-identity", false, "agents need an onchain identity")
	f.BoolVar(&t.RequireRegistration, "require-registration", false, "agents need a registration file that names them")
	f.BoolVar(&t.RequireValidation, "require-validation", false, "agents need a validation that counts")
}

// budgetFlags are of the run and all below it together. What is not given is the default.
func budgetFlags(f *pflag.FlagSet, b *policy.Bounds) {
	f.Var(countFlag{&b.Steps}, "max-steps", "steps of the run and all below it; 0 allows none, as with the next ones; not given: the default")
	f.Var(countFlag{&b.ToolCalls}, "max-tool-calls", "tools, HTTP, reads and simulations")
	f.Var(countFlag{&b.RuntimeMS}, "max-runtime-ms", "milliseconds")
	f.Var(countFlag{&b.OnchainWrites}, "max-writes", "transactions")
	f.StringVar(&b.GasWei, "max-gas", "", "what their gas may cost, in wei")
}

// countFlag is the flag of a number that may be absent.
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

func (p *program) submitElsewhere(ctx context.Context, e *elsewhere, r orchestrator.Request, watch, asJSON bool) error {
	asked := control.TaskRequest{Goal: r.Goal, Input: r.Input, Coordinator: r.Coordinator, Terms: control.Terms(r.Terms), Key: r.Key}
	var t control.Task
	if err := e.call(ctx, http.MethodPost, "/v1/tasks", asked, &t); err != nil {
		return err
	}
	if err := p.submitted(t.ID, t.RunID, asJSON); err != nil || !watch {
		return err
	}
	return p.watchElsewhere(ctx, e, t.ID, asJSON)
}

// submitted prints the ids of a task and of its run.
func (p *program) submitted(task, run string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(struct {
			Kind string `json:"kind"`
			Task string `json:"taskId"`
			Run  string `json:"runId"`
		}{"task", task, run})
	}
	_, err := fmt.Fprintf(p.stdout, "task %s\nrun  %s\n", task, run)
	return err
}

func (p *program) taskWatchCommand(e *elsewhere) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch TASK",
		Short: "print a task's events until it ends, then its result; exits with 1 when it did not complete",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.url != "" {
				return p.watchElsewhere(cmd.Context(), e, args[0], asJSON)
			}
			return p.withDesk(cmd.Context(), func(db *store.DB, _ *orchestrator.Desk) error {
				t, err := rundb.Task(cmd.Context(), db, args[0])
				if err != nil {
					return err
				}
				return p.watch(cmd.Context(), db, t, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// watchEvery is how often events are looked for.
const watchEvery = 250 * time.Millisecond

// watch prints events until the root run has ended, then its result.
func (p *program) watch(ctx context.Context, db *store.DB, t repute.Task, asJSON bool) error {
	for after := int64(0); ; {
		run, err := rundb.Run(ctx, db, t.Run) // before its events: those of one that ended are all there
		if err != nil {
			return err
		}
		list, err := rundb.Events(ctx, db, t.Run, after, 200)
		if err != nil {
			return err
		}
		for _, e := range list {
			after = e.Number
			if err := p.showEvent(t.Run, e, asJSON); err != nil {
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
			return p.ended(done, asJSON)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchEvery):
		}
	}
}

// showEvent prints an event of the run root, or of one below it, which is named.
func (p *program) showEvent(root string, e repute.RunEvent, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(map[string]any{"number": e.Number, "runId": e.Run, "kind": e.Kind, "data": e.Data, "at": e.Time})
	}
	of := ""
	if e.Run != root {
		of = "  " + visible(e.Run)
	}
	_, err := fmt.Fprintf(p.stdout, "%s  %-18s %s%s\n", e.Time.Format("15:04:05.000"), e.Kind, visible(string(e.Data)), of)
	return err
}

// done says what was done, unless it was not.
func (p *program) done(err error, what string) error {
	if err == nil {
		fmt.Fprintln(p.stdout, what)
	}
	return err
}

func (p *program) taskCancelCommand(by *string, e *elsewhere) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "ask that a task end",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.url != "" {
				return p.done(e.call(cmd.Context(), http.MethodPost, taskPath(args[0], "/cancel"), control.Cancellation{Reason: reason}, nil), "told to end")
			}
			return p.withDesk(cmd.Context(), func(_ *store.DB, desk *orchestrator.Desk) error {
				return p.done(desk.Cancel(cmd.Context(), args[0], *by, reason), "told to end")
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (p *program) taskApproveCommand(by *string, e *elsewhere) *cobra.Command {
	var reason, subject string
	var deny bool
	cmd := &cobra.Command{
		Use:   "approve TASK|RUN",
		Short: "show what a run waits for, or answer it with --subject: yes, or with --deny no",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			yes, said := !deny, map[bool]string{true: "denied", false: "approved"}[deny]
			if e.url != "" {
				if subject == "" {
					return p.askElsewhere(cmd.Context(), e, args[0])
				}
				return p.done(e.approve(cmd.Context(), args[0], control.ApprovalAnswer{Subject: subject, Approved: &yes, Reason: reason}), said)
			}
			return p.withDesk(cmd.Context(), func(db *store.DB, desk *orchestrator.Desk) error {
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
					return p.ask(run, list)
				}
				return p.done(desk.Approve(cmd.Context(), run, subject, yes, *by, reason), said)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().BoolVar(&deny, "deny", false, "no instead of yes")
	cmd.Flags().StringVar(&subject, "subject", "", "what the answer is about; without it what the run waits for is shown")
	return cmd
}

// ask prints what a run waits for, and says how to answer: nobody approves unseen.
func (p *program) ask(run string, open []control.Awaited) error {
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
		fmt.Fprintln(p.stdout, visibleLines(string(text)))
	}
	return repute.Invalid("subject", "is missing", "look at what is shown, then --subject with one of: "+strings.Join(subjects, ", "))
}

// visibleLines is a text whose lines are safe to print.
func visibleLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = visible(lines[i])
	}
	return strings.Join(lines, "\n")
}

// waitingOf is the run of a task that waits itself: those above it wait with it.
func waitingOf(runs []repute.Run) string {
	id := runs[0].ID
	for _, r := range runs {
		if r.Awaiting != "" {
			id = r.ID
		}
	}
	return id
}

func (p *program) taskRetryCommand(by *string, e *elsewhere) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "begin another attempt of a task that failed",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, ok := repute.ParsePhase(cmp.Or(name, repute.PhaseDiscover.String()))
			if !ok {
				return repute.Invalid("from", fmt.Sprintf("%.40q is no phase", name), fmt.Sprintf("one of %v", repute.Phases()))
			}
			if name == "" {
				from = 0
			}
			if e.url != "" {
				return p.done(e.call(cmd.Context(), http.MethodPost, taskPath(args[0], "/retry"), control.RetryFrom{From: name}, nil), "begun again")
			}
			return p.withDesk(cmd.Context(), func(_ *store.DB, desk *orchestrator.Desk) error {
				return p.done(desk.Retry(cmd.Context(), args[0], from, *by), "begun again")
			})
		},
	}
	cmd.Flags().StringVar(&name, "from", "", "phase to begin with; the one that failed when absent")
	return cmd
}
