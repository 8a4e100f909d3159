package problem

import (
	"cmp"
	"fmt"
	"slices"

	"repute"
)

// maxProblems bounds a list: a hostile directory could make millions.
const maxProblems = 500

// Place says where a problem is.
type Place struct {
	File string // relative to the checked directory
	Path string // JSON pointer into the file
	Line int    // from 1; 0 for the file as a whole
}

// List collects problems by one profile. The zero value is an empty list of the lenient profile.
type List struct {
	Profile  Profile
	problems []Problem
	full     bool
}

// Add appends a problem. In the strict profile a code that explains itself as strict becomes an error: its first letter
// changes, its number stays.
func (l *List) Add(code string, at Place, format string, args ...any) {
	if l.full {
		return
	}
	if len(l.problems) == maxProblems {
		l.full = true
		code, at, format, args = CodeMore, Place{}, "more than %d problems", []any{maxProblems}
	}
	if l.Profile == Strict && explain(code).strict {
		code = "E" + code[1:]
	}
	l.problems = append(l.problems, Problem{
		Problem: repute.Problem{Code: code, Severity: repute.SeverityOf(code), Path: at.Path,
			Message: fmt.Sprintf(format, args...)},
		File: at.File, Line: at.Line,
	})
}

// Append adds the problems of another list as they are.
func (l *List) Append(problems []Problem) { l.problems = append(l.problems, problems...) }

// Len returns the number of problems so far.
func (l *List) Len() int { return len(l.problems) }

// Problems returns all problems ordered by file and line.
func (l *List) Problems() []Problem {
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return l.problems
}
