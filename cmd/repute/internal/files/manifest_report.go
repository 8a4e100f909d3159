package files

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/internal/jsonwalk"
	"repute/manifest"
	"repute/manifest/agentjson"
	"repute/manifest/schemas"
)

// Report is the result of manifest check, and its JSON output. Its JSON is read by scripts and documented: members are
// added, and never renamed.
type Report struct {
	Source   string              `json:"source"`
	Kind     repute.DocumentKind `json:"kind"`
	Name     string              `json:"name,omitempty"`
	URI      string              `json:"uri,omitempty"` // of an agent
	Bytes    int64               `json:"bytes"`
	SHA256   string              `json:"sha256"`
	Link     repute.LinkResult   `json:"link,omitempty"` // of an agent
	Errors   int                 `json:"errors"`
	Warnings int                 `json:"warnings"`
	Infos    int                 `json:"infos"`
	Problems []manifestProblem   `json:"problems"`
	Manifest *ManifestReport     `json:"manifest,omitempty"` // of an agent.json
}

// manifestProblem is a problem with its fix.
type manifestProblem struct {
	Code     string          `json:"code"`
	Severity repute.Severity `json:"severity"`
	Path     string          `json:"path"`
	Line     int             `json:"line,omitempty"` // from 1; 0 where the file is not at hand
	Column   int             `json:"column,omitempty"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint"`
}

// newReport returns a report that counts problems by severity and lists them in the given order. The list is never nil,
// so that its JSON is [].
func newReport(source string, kind repute.DocumentKind, problems []repute.Problem) Report {
	r := Report{Source: source, Kind: kind, Problems: []manifestProblem{}}
	for _, p := range problems {
		switch p.Severity {
		case repute.SeverityError:
			r.Errors++
		case repute.SeverityWarning:
			r.Warnings++
		case repute.SeverityInfo:
			r.Infos++
		}
		r.Problems = append(r.Problems, manifestProblem{Code: p.Code, Severity: p.Severity, Path: p.Path,
			Message: p.Message,
			Hint:    hint(p.Code)})
	}
	return r
}

// hint returns the fix for a problem of any kind of document.
func hint(code string) string {
	switch {
	case code == schemas.CodeSchema || code == schemas.CodeNoJSON:
		return schemas.Hint
	case agentjson.Hint(code) != "":
		return agentjson.Hint(code)
	}
	return manifest.Hint(code)
}

// locate adds to each problem the line and the column of the place that its pointer names in the document. A problem
// whose pointer leads to nothing, such as a missing member, keeps line 0.
func (r *Report) locate(b []byte) {
	for i := range r.Problems {
		if offset, ok := jsonwalk.Find(b, r.Problems[i].Path); ok {
			r.Problems[i].Line, r.Problems[i].Column = jsonwalk.Position(b, offset)
		}
	}
}

// write prints the report as text: the source, the problems by severity, a count.
func (r Report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", cli.Visible(r.Source))
	fmt.Fprintf(&b, "  kind    %s, %d bytes, sha256 %s\n", r.Kind, r.Bytes, r.SHA256)
	for _, line := range []struct{ label, text string }{{"name", r.Name}, {"uri", r.URI}, {"link", r.linkText()}} {
		if line.text != "" {
			fmt.Fprintf(&b, "  %-7s %s\n", line.label, cli.Visible(line.text))
		}
	}
	r.Manifest.write(&b)
	if r.Kind == repute.ValidationDocument {
		b.WriteString("  Validation files have no standard form: there is nothing to check.\n")
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

// linkText returns the sentence for the relation of the file and the agent, "" for a document that was not checked as
// an agent's.
func (r Report) linkText() string {
	switch r.Link {
	case repute.LinkLinked:
		return "linked: the file names this agent"
	case repute.LinkUnlinked:
		return "unlinked: the file names no agent"
	case repute.LinkOther:
		return "other: the file names other agents"
	}
	return ""
}

// place returns where the problem is: member, line and column.
func (p *manifestProblem) place() string {
	place := cmp.Or(p.Path, "(document)")
	if p.Line > 0 && p.Path != "" {
		place += fmt.Sprintf(" (line %d, column %d)", p.Line, p.Column)
	}
	return place
}
