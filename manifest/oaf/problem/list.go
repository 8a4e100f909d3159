package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"repute"
)

// maxProblems bounds the errors of a list, and its warnings and infos: a hostile directory could make millions. Each
// has a bound of its own, so that warnings never hide an error.
// A list has at most maxProblems errors, as many others, and two infos that say what was left out.
const maxProblems = 500

// Place says where a problem is.
type Place struct {
	File string // relative to the checked directory
	Path string // JSON pointer into the file
	Line int    // from 1; 0 for the file as a whole
}

// List collects problems by one profile. The zero value is an empty list of the lenient profile.
// One goroutine uses it. Profile MUST be set before the first problem.
type List struct {
	Profile  Profile
	problems []Problem
	seen     map[Problem]bool // those of problems
	errors   int              // errors that Add got, also those beyond the bound
	others   int              // warnings and infos that Add got, also those beyond the bound
}

// Add appends a problem unless the list has it already. In the strict profile a code that explains itself as strict
// becomes an error: its first letter changes, its number stays. Beyond the bound of its kind, the first problem is
// replaced by an info that says so, and later ones are left out.
func (l *List) Add(code string, at Place, format string, args ...any) {
	l.Suggest(code, at, Hint(code), format, args...)
}

// Suggest is Add with a hint for this problem alone.
//
// A problem is the same if all of its fields are, the hint included. A problem beyond the bound is compared before it
// is counted, so that repeats of listed problems use up nothing.
func (l *List) Suggest(code string, at Place, hint, format string, args ...any) {
	if l.Profile == Strict && explain(code).strict {
		code = "E" + code[1:]
	}
	p := made(code, at, hint, fmt.Sprintf(format, args...))
	if l.seen[p] {
		return
	}
	count, kind := &l.others, "warnings and infos"
	if p.Severity == repute.SeverityError {
		count, kind = &l.errors, "errors"
	}
	if *count++; *count > maxProblems+1 {
		return
	}
	if *count > maxProblems {
		p = made(CodeMore, Place{}, Hint(CodeMore), fmt.Sprintf("more than %d %s", maxProblems, kind))
	}
	if l.seen == nil {
		l.seen = map[Problem]bool{}
	}
	l.seen[p] = true
	l.problems = append(l.problems, p)
}

// made returns a problem.
func made(code string, at Place, hint, message string) Problem {
	return Problem{
		Problem: repute.Problem{Code: code, Severity: repute.SeverityOf(code), Path: at.Path,
			Message: escaped(message)},
		File: at.File, Line: at.Line, Hint: escaped(hint),
	}
}

// escaped returns a message whose control characters, such as the tab that an error of YAML quotes, are written as
// escapes: a terminal would show them as white space, or obey them.
func escaped(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Append adds the problems of another list as they are.
// They are neither counted nor compared: the other list has bounded them, and has judged them by its own profile.
func (l *List) Append(problems []Problem) { l.problems = append(l.problems, problems...) }

// HasError reports whether a file has an error already, so that its absence is not reported as well.
func (l *List) HasError(file string) bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool {
		return p.File == file && p.Severity == repute.SeverityError
	})
}

// Len returns the number of problems so far.
func (l *List) Len() int { return len(l.problems) }

// Problems returns all problems ordered by file and line.
// It orders the list in place, and returns it and no copy. Problems of one line stay in the order in which they were
// found.
func (l *List) Problems() []Problem {
	slices.SortStableFunc(l.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return l.problems
}
