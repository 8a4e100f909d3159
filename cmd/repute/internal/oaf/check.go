package oaf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/agent/llm/oafagent"
	"repute/cmd/repute/internal/cli"
	format "repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
	"repute/resolver"
)

// Report is the result of oaf check, and its JSON output. It has the form of the report of manifest check. Source is
// what the caller named, and Kind is always oaf.
type Report struct {
	Source   string    `json:"source"`
	Kind     string    `json:"kind"`
	Agents   []Checked `json:"agents"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Infos    int       `json:"infos"`
	Problems []Problem `json:"problems"`
}

// Checked is one agent of a report. The lists are names as the agent's files have them, which strangers wrote, and
// never null.
type Checked struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Skills  []string `json:"skills"`
	Servers []string `json:"mcpServers"`
	Agents  []string `json:"agents"` // sub-agents whose directories were found
}

// Problem is a problem with its fix.
type Problem struct {
	Code     string          `json:"code"`
	Severity repute.Severity `json:"severity"`
	File     string          `json:"file"`
	Line     int             `json:"line,omitempty"` // from 1; 0 where no line is at fault
	Path     string          `json:"path,omitempty"` // JSON pointer into the file
	Message  string          `json:"message"`
	Hint     string          `json:"hint"`
}

// asking says how the MCP servers of a checked agent are asked for their tools.
type asking struct {
	servers  bool
	programs bool     // also servers that are programs of the agent
	env      []string // variables that the agent's files may use
	hosts    []string // private ones that may be asked
}

// askTime bounds the questions to all servers of an agent. A program that is started first may need most of it.
const askTime = time.Minute

// check refuses flags that have no effect without --ask-servers. A flag without effect would let its user believe that
// servers were asked.
func (a *asking) check() error {
	for _, f := range []struct {
		name string
		set  bool
	}{{"programs", a.programs}, {"env", len(a.env) > 0}, {"allow-host", len(a.hosts) > 0}} {
		if f.set && !a.servers {
			return repute.Invalid(f.name, "has no effect: no server is asked", "add --ask-servers")
		}
	}
	return nil
}

// problems asks the servers of agents, and returns what their tools contradict. Places are below the directory of each
// agent where the agents are those of an archive. Each agent has the whole time for itself, and a server that does not
// answer is one of the problems.
func (a *asking) problems(ctx context.Context, agents []*format.Agent, how problem.Profile,
	packed bool) (out []problem.Problem) {
	if !a.servers {
		return nil
	}
	from := a.lister()
	for _, one := range agents {
		limited, cancel := context.WithTimeout(ctx, askTime)
		for _, p := range format.CheckTools(limited, one, from, how) {
			if packed {
				p.File = path.Join(one.Dir, p.File)
			}
			out = append(out, p)
		}
		cancel()
	}
	return out
}

// lister returns what asks servers within the rights that the flags give.
func (a *asking) lister() lister {
	guard := resolver.NewGuard(resolver.GuardOptions{AllowHosts: a.hosts, HeaderTimeout: askTime})
	return lister{guard: guard, asks: oafagent.Lister{Options: oafagent.Options{Getenv: os.Getenv, Env: a.env,
		Programs: a.programs, Client: guard.Client(askTime)}}}
}

// lister asks the servers of agents. What it may not do becomes an error whose hint is the flag that allows it.
type lister struct {
	guard *resolver.Guard
	asks  oafagent.Lister
}

// ListTools implements format.ToolLister.
func (l lister) ListTools(ctx context.Context, s format.Server) ([]string, error) {
	if at, err := url.Parse(s.Connection.URL); err == nil && at.Host != "" {
		if err := l.guard.Check(at); err != nil {
			return nil, repute.Invalid("connection.url", err.Error(),
				"add --allow-host "+at.Host+" if the server is yours")
		}
	}
	names, err := l.asks.ListTools(ctx, s)
	var wrong *repute.InputError
	if !errors.As(err, &wrong) {
		return names, err
	}
	hint := wrong.Hint
	switch {
	case s.Connection.Type == format.TransportStdio && !l.asks.Programs:
		hint = "add --programs to start it: no limits bind it"
	case strings.Contains(wrong.Reason, "variable"):
		hint = "set the variable, and add --env with its name"
	}
	return nil, repute.Invalid(wrong.Field, wrong.Reason, hint)
}

// checkCommand returns `repute oaf check`.
func checkCommand(p *cli.Program) *cobra.Command {
	var strict bool
	var ask asking
	cmd := &cobra.Command{
		Use:   "check DIR|ZIP",
		Short: "list what is wrong with an agent of the Open Agent Format",
		Long: `List what is wrong with an agent of the Open Agent Format (1.2.0 and the later 0.8.0):
a directory with AGENTS.md, or an archive of agents. Every problem has a code, a file and a
fix, and a line where a part of the file is at fault. Without --strict, what published
agents get wrong and readers understand is a warning. With --ask-servers its MCP servers are
asked for the tools that it selects: those over HTTP, and with --programs also those that it
starts on this computer.

Exits with 0 when there are no errors, 1 when there are, 2 when nothing could be read.`,
		Example: "  repute oaf check ./code-reviewer\n  repute oaf check team-1.0.0.oaf --strict --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ask.check(); err != nil {
				return err
			}
			report, err := check(cmd.Context(), args[0], profile(strict), &ask)
			if err != nil {
				return p.Unreadable(args[0], err)
			}
			if err := p.Show(report, report.write); err != nil || report.Errors == 0 {
				return err
			}
			return cli.ExitError{Code: cli.CodeFailed, Text: cli.Count(report.Errors, "error") + " in " +
				cli.Visible(report.Source)}
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false,
		"judge by the text of the format, as a publisher wants it, not as a reader does")
	p.JSONFlag(cmd.Flags(), "print one JSON object")
	cmd.Flags().BoolVar(&ask.servers, "ask-servers", false, "ask the agent's MCP servers for the tools that it selects")
	cmd.Flags().BoolVar(&ask.programs, "programs", false,
		"with --ask-servers, also start servers that are programs: no limits bind them")
	cmd.Flags().StringArrayVar(&ask.env, "env", nil,
		"with --ask-servers, a variable that the agent's files may use; may be repeated")
	cmd.Flags().StringArrayVar(&ask.hosts, "allow-host", nil,
		"with --ask-servers, a private host:port that may be asked; may be repeated")
	return cmd
}

// check judges a directory or an archive. A problem is never an error: an error says that nothing could be judged.
func check(ctx context.Context, name string, how problem.Profile, ask *asking) (Report, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Report{}, repute.Invalid("source", err.Error(), "the directory of an agent, or an archive of agents")
	}
	if info.IsDir() {
		agent, problems, err := oafagent.Load(name, how)
		if err != nil {
			return Report{}, err
		}
		var agents []*format.Agent
		if agent != nil {
			agents = append(agents, agent)
		}
		return newReport(name, agents, append(problems, ask.problems(ctx, agents, how, false)...)), nil
	}
	b, err := readArchive(name)
	if err != nil {
		return Report{}, err
	}
	pack, problems := format.LoadZip(b, how)
	return newReport(name, pack.Agents, append(problems, ask.problems(ctx, pack.Agents, how, true)...)), nil
}

// readArchive reads an archive. Any other file is refused with what to name instead. A zip file begins with PK, also an
// empty one.
func readArchive(name string) ([]byte, error) {
	b, err := readFile(name, "an archive of agents")
	if err != nil || bytes.HasPrefix(b, []byte("PK")) {
		return b, err
	}
	hint := "an archive that repute oaf pack wrote, or the directory of an agent"
	if filepath.Base(name) == format.ManifestName {
		hint = "the directory that it is in: " + filepath.Dir(name)
	}
	return nil, repute.Invalid("file", name+" is no archive", hint)
}

// readFile reads a file up to the largest size of an archive, and one byte more, by which a larger one is found. what
// is the kind of file that is wanted.
func readFile(name, what string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, repute.Invalid("file", err.Error(), what)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, repute.Invalid("file", name+" is a directory", what)
	}
	b, err := io.ReadAll(io.LimitReader(file, tree.MaxArchive+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// newReport returns a report on agents. A problem without a file is of the source as a whole.
func newReport(source string, agents []*format.Agent, problems []problem.Problem) Report {
	r := Report{Source: source, Kind: "oaf", Agents: []Checked{}, Problems: []Problem{},
		Errors:   repute.CountSeverity(problems, repute.SeverityError),
		Warnings: repute.CountSeverity(problems, repute.SeverityWarning),
		Infos:    repute.CountSeverity(problems, repute.SeverityInfo)}
	for _, a := range agents {
		r.Agents = append(r.Agents, checked(a))
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, Problem{Code: p.Code, Severity: p.Severity,
			File: cmp.Or(p.File, filepath.Base(source)), Line: p.Line, Path: p.Path, Message: p.Message, Hint: p.Hint})
	}
	return r
}

// checked returns what a report says of an agent. Sub-agents without a directory are left out.
func checked(a *format.Agent) Checked {
	c := Checked{ID: a.ID(), Name: a.Name, Version: a.Version, Skills: []string{}, Servers: []string{},
		Agents: []string{}}
	for _, s := range a.LocalSkills {
		c.Skills = append(c.Skills, s.Name)
	}
	for _, s := range a.Servers {
		c.Servers = append(c.Servers, s.Name)
	}
	for _, ref := range a.Agents {
		if ref.Local != nil {
			c.Agents = append(c.Agents, ref.Local.ID())
		}
	}
	return c
}

// write prints the report as text: the agents, the problems by severity, a count.
func (r Report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", cli.Visible(r.Source))
	for _, a := range r.Agents {
		fmt.Fprintf(&b, "  agent   %s\n", cli.Visible(strings.TrimSpace(cmp.Or(a.ID, a.Name)+" "+a.Version)))
		for _, line := range []struct {
			label string
			names []string
		}{{"skills", a.Skills}, {"servers", a.Servers}, {"agents", a.Agents}} {
			if len(line.names) > 0 {
				fmt.Fprintf(&b, "  %-7s %s\n", line.label, cli.Visible(strings.Join(line.names, ", ")))
			}
		}
	}
	lines := make([]cli.ProblemLine, len(r.Problems))
	for i, p := range r.Problems {
		lines[i] = cli.ProblemLine{Severity: p.Severity, Code: p.Code, Place: p.place(), Message: p.Message,
			Hint: p.Hint}
	}
	cli.WriteProblems(&b, lines)
	_, err := io.WriteString(w, b.String())
	return err
}

// place returns where the problem is: file, line and member.
func (p *Problem) place() string {
	place := p.File
	if p.Line > 0 {
		place += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		place += " " + path.Clean(p.Path)
	}
	return place
}
