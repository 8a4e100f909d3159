package oaf

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
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

// Report is the result of oaf check, and its JSON output.
type Report struct {
	Source   string    `json:"source"`
	Kind     string    `json:"kind"`
	Agents   []Checked `json:"agents"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Infos    int       `json:"infos"`
	Problems []Problem `json:"problems"`
}

// Checked is one agent of a report.
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

// askTime bounds the questions to all servers of an agent.
const askTime = time.Minute

// problems asks the servers of agents, and returns what their tools contradict.
func (a *asking) problems(ctx context.Context, agents []*format.Agent, how problem.Profile) (out []problem.Problem) {
	if !a.servers {
		return nil
	}
	client := resolver.NewGuard(resolver.GuardOptions{AllowHosts: a.hosts, HeaderTimeout: askTime}).Client(askTime)
	lister := oafagent.Lister{Options: oafagent.Options{Getenv: os.Getenv, Env: a.env, Programs: a.programs, Client: client}}
	for _, one := range agents {
		limited, cancel := context.WithTimeout(ctx, askTime)
		out = append(out, format.CheckTools(limited, one, lister, how)...)
		cancel()
	}
	return out
}

func checkCommand(p *cli.Program) *cobra.Command {
	var strict, asJSON bool
	var ask asking
	cmd := &cobra.Command{
		Use:   "check DIR|ZIP",
		Short: "list what is wrong with an agent of the Open Agent Format",
		Long: `List what is wrong with an agent of the Open Agent Format (1.2.0 and the later 0.8.0):
a directory with AGENTS.md, or an archive of agents. Every problem has a code, a file, a
line and a fix. Without --strict, what published agents get wrong and readers understand is
a warning. With --ask-servers its MCP servers are asked for the tools that it selects: those
over HTTP, and with --programs also those that it starts on this computer.

Exits with 0 when there are no errors, 1 when there are, 2 when nothing could be read.`,
		Example: "  repute oaf check ./code-reviewer\n  repute oaf check team-1.0.0.oaf --strict --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := check(cmd.Context(), args[0], profile(strict), &ask)
			if err != nil {
				return cli.ExitError{Code: codeUnreadable, Text: cli.Visible(err.Error())}
			}
			if asJSON {
				err = p.PrintJSON(report)
			} else {
				_, err = io.WriteString(p.Stdout, report.text())
			}
			if err == nil && report.Errors > 0 {
				return cli.ExitError{Code: codeDefective, Text: cli.Count(report.Errors, "error") +
					" in " + cli.Visible(report.Source)}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false,
		"judge by the text of the format, as a publisher wants it, not as a reader does")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&ask.servers, "ask-servers", false, "ask the agent's MCP servers for the tools that it selects")
	cmd.Flags().BoolVar(&ask.programs, "programs", false, "with --ask-servers, also start servers that are programs: no limits bind them")
	cmd.Flags().StringArrayVar(&ask.env, "env", nil, "with --ask-servers, a variable that the agent's files may use; may be repeated")
	cmd.Flags().StringArrayVar(&ask.hosts, "allow-host", nil, "with --ask-servers, a private host:port that may be asked; may be repeated")
	return cmd
}

// check judges a directory or an archive.
func check(ctx context.Context, name string, how problem.Profile, ask *asking) (Report, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Report{}, err
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
		return newReport(name, agents, append(problems, ask.problems(ctx, agents, how)...)), nil
	}
	b, err := readArchive(name)
	if err != nil {
		return Report{}, err
	}
	pack, problems := format.LoadZip(b, how)
	return newReport(name, pack.Agents, append(problems, ask.problems(ctx, pack.Agents, how)...)), nil
}

// readArchive reads an archive up to the largest size that is opened, and one byte more, by which a larger one is
// found.
func readArchive(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, repute.Invalid("file", err.Error(), "an archive of agents")
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, tree.MaxArchive+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// newReport returns a report on agents.
func newReport(source string, agents []*format.Agent, problems []problem.Problem) Report {
	r := Report{Source: source, Kind: "oaf", Agents: []Checked{}, Problems: []Problem{},
		Errors:   repute.CountSeverity(problems, repute.SeverityError),
		Warnings: repute.CountSeverity(problems, repute.SeverityWarning),
		Infos:    repute.CountSeverity(problems, repute.SeverityInfo)}
	for _, a := range agents {
		r.Agents = append(r.Agents, checked(a))
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, Problem{Code: p.Code, Severity: p.Severity, File: p.File, Line: p.Line, Path: p.Path,
			Message: p.Message, Hint: problem.Hint(p.Code)})
	}
	return r
}

// checked returns what a report says of an agent. Sub-agents without a directory are left out.
func checked(a *format.Agent) Checked {
	c := Checked{ID: a.ID(), Name: a.Name, Version: a.Version, Skills: []string{}, Servers: []string{}, Agents: []string{}}
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

// text returns the report as text: the agents, the problems by severity, a count.
func (r Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", cli.Visible(r.Source))
	for _, a := range r.Agents {
		fmt.Fprintf(&b, "  agent   %s %s\n", cli.Visible(a.ID), cli.Visible(a.Version))
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
		lines[i] = cli.ProblemLine{Severity: p.Severity, Code: p.Code, Place: p.place(), Message: p.Message, Hint: p.Hint}
	}
	cli.WriteProblems(&b, lines)
	return b.String()
}

// place returns where the problem is: file, line and member.
func (p *Problem) place() string {
	place := cmp.Or(p.File, "(all)")
	if p.Line > 0 {
		place += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		place += " " + path.Clean(p.Path)
	}
	return place
}
