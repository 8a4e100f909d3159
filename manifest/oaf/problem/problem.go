// Package problem has the problems of agents of the Open Agent Format: their codes, what they mean and how to mend
// them.
//
// A List collects the problems of one agent. Its Profile decides how strict it is: in the strict one a warning whose
// code is marked so becomes an error with the same number. A list is bounded, with bounds of their own for errors and
// for the rest, and has each problem once. Control characters in messages, which quote the files of strangers, are
// escaped.
package problem

import "repute"

// Problem is one defect of an agent, a skill or an archive.
type Problem struct {
	repute.Problem        // Path is a JSON pointer into the file, "" for the file as a whole
	File           string // relative to the checked directory; "" for the directory as a whole
	Line           int    // from 1; 0 where no line is at fault
	Hint           string // what to write instead
}

// Profile says how an agent is judged.
type Profile int

// Profiles. Lenient is for readers: what published agents get wrong and readers understand is a warning. Strict is for
// publishers: the text of the format counts.
const (
	Lenient Profile = iota
	Strict
)
