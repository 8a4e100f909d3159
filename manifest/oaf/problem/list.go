package problem

import (
	"cmp"
	"fmt"
	"slices"

	"repute"
)

// maxProblems bounds the errors of a list, and its warnings and infos: a hostile directory could make millions. Each
// has a bound of its own, so that warnings never hide an error.
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
	errors   int // errors that Add got, also those beyond the bound
	others   int // warnings and infos that Add got, also those beyond the bound
}

// Add appends a problem. In the strict profile a code that explains itself as strict becomes an error: its first letter
// changes, its number stays. Beyond the bound of its kind, the first problem is replaced by an info that says so, and
// later ones are left out.
func (l *List) Add(code string, at Place, format string, args ...any) {
	if l.Profile == Strict && explain(code).strict {
		code = "E" + code[1:]
	}
	count, kind := &l.others, "warnings and infos"
	if repute.SeverityOf(code) == repute.SeverityError {
		count, kind = &l.errors, "errors"
	}
	if *count++; *count > maxProblems+1 {
		return
	}
	if *count > maxProblems {
		code, at, format, args = CodeMore, Place{}, "more than %d %s", []any{maxProblems, kind}
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
