// Package judge checks one file as readers of agents read it: a registration file, a feedback file, an agent card, an
// agent.json or an AGENTS.md of the Open Agent Format. It says what is wrong, where, and what to write instead, with
// the lines around each problem. It is what the check of the API and of the dashboard shows.
//
// The parsers of the kinds judge (manifest, agentjson, oaf); this package only finds out the kind, and the line and
// column that each problem's JSON pointer names. It is pure, and bounded because strangers send the files: at most
// MaxBytes are read, once for all problems, and a report has at most a hundred problems and some hundred short lines.
package judge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"repute"
	"repute/internal/jsonwalk"
	"repute/manifest"
	"repute/manifest/agentjson"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
)

// Kind is what a file is judged as.
type Kind string

// Kinds of files.
const (
	// Auto is the kind that the content shows.
	Auto         Kind = "auto"
	Registration Kind = "registration"
	Feedback     Kind = "feedback"
	Card         Kind = "card"
	AgentJSON    Kind = "agentJson"
	// OAF is an AGENTS.md without the other files of its directory.
	OAF Kind = "oaf"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Auto, Registration, Feedback, Card, AgentJSON, OAF} }

const (
	// MaxBytes bounds a file. A larger one is repute.ErrInvalid.
	MaxBytes = 256 << 10
	// maxProblems bounds the problems of a report.
	maxProblems = 100
)

// Problem is what is wrong with a file.
type Problem struct {
	repute.Problem
	// Hint is what to write instead; "" where nothing helps.
	Hint string
	// Line and Column are from 1; 0 where the problem is about the file as a whole.
	Line, Column int
}

// Report is what a file is, and what is wrong with it.
type Report struct {
	Kind   Kind
	Name   string // that the file gives the agent; "" where it has none
	Size   int    // bytes
	SHA256 [sha256.Size]byte
	// Errors, Warnings and Infos count all problems by severity.
	Errors, Warnings, Infos int
	// Problems are the first hundred, by their place in the file.
	Problems []Problem
	// Lines are those with a problem and the ones around them.
	Lines []Line
}

// File judges bytes as a kind. A file of more than MaxBytes and an unknown kind are repute.ErrInvalid.
func File(b []byte, kind Kind) (Report, error) {
	if len(b) > MaxBytes {
		return Report{}, repute.Invalid("content", "has more than 256 KiB",
			"readers take no more than 1 MiB, this check 256 KiB: shorten it")
	}
	if !slices.Contains(Kinds(), kind) {
		return Report{}, repute.Invalid("kind", "is none", "auto, registration, feedback, card, agentJson or oaf")
	}
	if kind == Auto {
		kind = detect(b)
	}
	r := Report{Kind: kind, Size: len(b), SHA256: sha256.Sum256(b)}
	r.Name, r.Problems = problemsOf(b, kind)
	r.Errors = repute.CountSeverity(r.Problems, repute.SeverityError)
	r.Warnings = repute.CountSeverity(r.Problems, repute.SeverityWarning)
	r.Infos = repute.CountSeverity(r.Problems, repute.SeverityInfo)
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	r.Problems = r.Problems[:min(len(r.Problems), maxProblems)]
	r.Lines = linesOf(b, r.Problems)
	return r, nil
}

// detect returns the kind that the content shows, a registration file where it shows none.
func detect(b []byte) Kind {
	text := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(text, []byte("---")):
		return OAF
	case agentjson.Detect(b) == agentjson.FormatAgentJSON:
		return AgentJSON
	}
	switch manifest.Detect(b) {
	case repute.FeedbackDocument:
		return Feedback
	case repute.CardDocument:
		return Card
	}
	return Registration
}

// problemsOf reads bytes as a kind, and returns the name in them and their problems with places.
func problemsOf(b []byte, kind Kind) (name string, out []Problem) {
	var list []repute.Problem
	hint := manifest.Hint
	switch kind {
	case OAF:
		return oafProblems(b)
	case AgentJSON:
		var m agentjson.Manifest
		m, list = agentjson.Parse(b, agentjson.Options{})
		name, hint = m.DisplayName, agentjson.Hint
	case Feedback:
		_, list = manifest.ParseFeedback(b)
	case Card:
		var card repute.AgentCard
		card, list = manifest.ParseCard(b)
		name = card.Name
	default:
		var reg repute.Registration
		reg, list = manifest.Parse(b)
		name = reg.Name
	}
	return name, placed(b, list, hint)
}

// oafProblems reads an AGENTS.md.
func oafProblems(b []byte) (name string, out []Problem) {
	agent, list := oaf.ParseManifest(b, problem.Lenient)
	if agent != nil {
		name = agent.Name
	}
	for _, p := range list {
		out = append(out, Problem{Problem: p.Problem, Hint: p.Hint, Line: p.Line, Column: min(p.Line, 1)})
	}
	return name, out
}

// placed returns problems with the line and column of what their JSON pointers name: those of what is no JSON for the
// pointer to the whole, zeros for the file as a whole. The text is checked and read once for all of them, because
// strangers send it.
func placed(b []byte, list []repute.Problem, hint func(code string) string) (out []Problem) {
	pointers := make([]string, 0, len(list))
	for _, p := range list {
		pointers = append(pointers, p.Path)
	}
	places := jsonwalk.FindAll(b, pointers)
	line, column := broken(b)
	for i, p := range list {
		one := Problem{Problem: p, Hint: hint(p.Code)}
		switch {
		case p.Path == "":
			one.Line, one.Column = line, column
		case places[i].Found:
			one.Line, one.Column = jsonwalk.Position(b, places[i].Offset)
		}
		out = append(out, one)
	}
	return out
}

// broken returns the line and column where text ceases to be JSON; zeros for JSON.
func broken(b []byte) (line, column int) {
	var whole json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(b, &whole), &syntax) {
		return jsonwalk.Position(b, int(syntax.Offset)-1)
	}
	return 0, 0
}
