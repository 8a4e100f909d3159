package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/service"
	"repute/internal/httpapi"
	"repute/internal/shell"
	"repute/orchestrator/control"
	"repute/orchestrator/tasks"
	"repute/store"
	"repute/store/rundb"
	"repute/trust/explain"
)

// RunCommand returns the command that shows runs and checks their decisions.
func RunCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "look at runs of tasks"}
	p.Flags.Database(cmd.PersistentFlags())
	cmd.AddCommand(runShowCommand(p))
	return cmd
}

// withControl calls f with the control plane on the configured database, without a server. The control plane is what
// answers the routes below /v1, so that a command prints what the route would.
func withControl(ctx context.Context, p *cli.Program, f func(*control.Control, *store.DB) error) error {
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		plane, err := newControl(p, c, db)
		if err != nil {
			return err
		}
		return f(plane, db)
	})
}

// newControl returns the control plane over a database, without routes. It holds no keys and runs no task: what a
// command asks for through it is done by a process with the role orchestrator.
func newControl(p *cli.Program, c config.Config, db *store.DB) (*control.Control, error) {
	client, err := tasks.NewClient(db)
	if err != nil {
		return nil, err
	}
	o, err := c.Trust.Reader()
	if err != nil {
		return nil, err
	}
	replay, err := explain.NewReader(db, o)
	if err != nil {
		return nil, err
	}
	server, err := httpapi.NewServer(httpapi.ServerOptions{Logger: c.Logger(p.Stderr)})
	if err != nil {
		return nil, err
	}
	return control.New(control.Options{Server: server, DB: db, Client: client, Policy: c.Orchestrator.PolicyNow,
		Lenient: c.Orchestrator.Development, Replay: replay, Keys: c.Signing.Published(), Gates: o.Params.Passable(),
		Agents: service.Outside(&c, c.Orchestrator.AgentHosts), DefaultChain: c.DefaultChain})
}

// shownRun is the JSON output for a run.
type shownRun struct {
	control.Run
	// Gate is set with --verify-gate only. The run is shown also where the check fails, so that a reader sees what
	// failed.
	Gate *control.GateCheck `json:"gate,omitempty"`
}

// runShowCommand returns `repute run show`.
func runShowCommand(p *cli.Program) *cobra.Command {
	var verify bool
	var e remoteClient
	cmd := &cobra.Command{
		Use:   "show TASK|RUN",
		Short: "print a run's phases, steps, result, use of its budget, and why it was refused",
		Long: `Print a run's phases, steps, result, use of its budget, and why it was refused. With
--verify-gate the chain of decisions of the run's task is checked (hashes, policies,
answers, signature), and each trust decision is made again from the stored evidence; the
command exits with 1 when something is not as it was stored, or comes out another way.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.URL != "" {
				return showRemote(cmd.Context(), p, &e, args[0], verify)
			}
			return withControl(cmd.Context(), p, func(c *control.Control, db *store.DB) error {
				shown, err := readRun(cmd.Context(), c, db, args[0], verify)
				if err != nil {
					return err
				}
				return showRun(p, shown)
			})
		},
	}
	e.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&verify, "verify-gate", false,
		"check the chain of decisions, and make the trust decisions again from the stored evidence")
	p.JSONFlag(cmd.Flags(), "print one JSON object")
	return cmd
}

// readRun reads a run by its id or its task's. Of a task it is the root run. With verify all decisions are checked in
// one call, because there is no timeout of a server. repute.ErrNotFound when the id is neither a task's nor a run's.
func readRun(ctx context.Context, c *control.Control, db *store.DB, id string, verify bool) (shown shownRun,
	err error) {
	t, err := rundb.Task(ctx, db, id)
	switch {
	case err == nil:
		id = t.Run
	case !errors.Is(err, repute.ErrNotFound):
		return shown, err
	}
	if shown.Run, err = c.Run(ctx, id); err != nil || !verify {
		return shown, err
	}
	check, err := c.VerifyGate(ctx, id, 0, math.MaxInt)
	shown.Gate = &check
	return shown, err
}

// showRemote prints a run of a remote orchestrator.
func showRemote(ctx context.Context, p *cli.Program, e *remoteClient, id string, verify bool) error {
	var shown shownRun
	id, err := e.rootRun(ctx, id)
	if err != nil {
		return err
	}
	if err := e.Call(ctx, http.MethodGet, runPath(id, ""), nil, &shown.Run); err != nil {
		return err
	}
	if verify {
		if shown.Gate, err = e.verifyGate(ctx, id); err != nil {
			return err
		}
	}
	return showRun(p, shown)
}

// mostDecisions bounds how many decisions verifyGate collects from a server. A server that is broken or hostile could
// send pages without end.
const mostDecisions = 100_000

// verifyGate joins the pages of a check of a run's decisions. The faults, the head and the note are those of the last
// page: each page has them of the whole chain. A cursor that repeats, and more than mostDecisions decisions, are
// repute.ErrLimited.
func (e *remoteClient) verifyGate(ctx context.Context, id string) (*control.GateCheck, error) {
	var all control.GateCheck
	for cursor := ""; ; {
		var page control.GateCheck
		if err := e.Call(ctx, http.MethodGet, runPath(id, "/gate:verify?limit=50"+cursor), nil, &page); err != nil {
			return nil, err
		}
		page.Decisions = append(all.Decisions, page.Decisions...)
		page.Verified = page.Verified && (cursor == "" || all.Verified)
		all = page
		switch next := "&cursor=" + url.QueryEscape(page.Next); {
		case page.Next == "":
			return &all, nil
		case next == cursor || len(all.Decisions) > mostDecisions:
			return nil, fmt.Errorf("the server's pages of decisions do not end: %w", repute.ErrLimited)
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

// showRun prints a run as text or JSON.
func showRun(p *cli.Program, r shownRun) error {
	err := p.Show(r, func(w io.Writer) error {
		_, err := io.WriteString(w, r.text())
		return err
	})
	if err == nil && r.Gate != nil && !r.Gate.Verified {
		return cli.ExitError{Code: 1,
			Text: "the decisions are not as they were stored, or do not follow from what is stored"}
	}
	return err
}

// awaited adds the lines about open approvals, with the command that answers them.
func (r shownRun) awaited(line func(name, format string, args ...any)) {
	for _, a := range r.Awaited {
		line("asks", "%s", a.Subject)
		for _, reason := range a.Reasons {
			line("reason", "%s: %s", reason.ID, reason.Text)
		}
		line("answer", "%s", answerLine(r.ID, a.Subject))
	}
}

// answerLine returns the command that answers an open approval. Subjects have ids of steps, which a planner chose: one
// that cannot be shown whole gets no command.
func answerLine(run, subject string) string {
	line := shell.Line("repute", "task", "approve", run, "--subject", subject)
	if line == "" {
		return "no command is offered: the subject is too long for a command line, or has characters that cannot be seen; " +
			"POST /v1/runs/" + run + "/approval takes it as JSON"
	}
	return line + " [--deny] [--reason …]"
}

// gateLines adds the lines about the check of decisions.
func gateLines(g *control.GateCheck, line func(name, format string, args ...any)) {
	for _, v := range g.Decisions {
		line("gate", "decision %d of run %s, phase %s: verified %v %s", v.Number, v.RunID, v.Phase, v.Verified,
			v.Differs)
	}
	for _, f := range g.Faults {
		line("fault", "decision %d of run %s %s: %s", f.Number, f.Run, f.Kind, f.Why)
	}
	if g.Note != "" {
		line("note", "%s", g.Note)
	}
}

// text returns the run as text. Every line passes liner, which makes untrusted texts safe: no value can begin a line of
// its own.
func (r shownRun) text() string {
	var b strings.Builder
	line := liner(&b)
	line("run", "%s of task %s, attempt %d", r.ID, r.TaskID, r.Attempt)
	line("agent", "%s", r.Agent)
	line("goal", "%.200s", r.Goal)
	line("status", "%s %s", r.Status, r.Awaiting)
	if r.Awaiting != "" {
		r.awaited(line)
	}
	if r.Error != "" {
		line("error", "%s", r.Error)
	}
	if u := r.Used; u != nil {
		line("used", "%d of %d steps, %d of %d tool calls, %d of %d writes, %d of %d ms", u.Steps, r.Limits.Steps,
			u.ToolCalls, r.Limits.ToolCalls,
			u.Writes, r.Limits.Writes, u.RuntimeMS, r.Limits.RuntimeMS)
	}
	for _, ph := range r.Phases {
		line("phase", "%d %-9s %-8s %d ms  %s", ph.Attempt, ph.Phase, ph.Status,
			ph.Ended.Sub(ph.Started).Milliseconds(),
			ph.Error)
	}
	for _, s := range r.Steps {
		line("step", "%s %s %s", s.ID, s.Status, s.Error)
	}
	r.result(line)
	if v := r.GateDecision; v != nil {
		line("trust", "%s: %s, score %g (%g to %g), tier %d, at block %d", v.Effect, v.Status, v.Score, v.Low, v.High,
			v.Tier, v.Pin.Block)
		for _, reason := range v.Reasons {
			line("reason", "%s: %s (has %s, needs %s)", reason.ID, reason.Text, reason.Have, reason.Need)
		}
	}
	line("head", "decision %d %s", r.Head.Count, r.Head.Hash)
	if r.Head.Signer != nil {
		line("signed", "by %s", r.Head.Signer)
	}
	if r.Gate != nil {
		gateLines(r.Gate, line)
	}
	return b.String()
}
