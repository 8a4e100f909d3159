package judge

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

const (
	// around is how many lines are shown before and after one with a problem.
	around = 2
	// maxLines bounds the lines of a report.
	maxLines = 400
	// maxLine bounds a line of a report, in characters. A longer line is shown around its first problem.
	maxLine = 240
)

// Line is a line of the file.
type Line struct {
	Number int // from 1
	// Text is the line, or the part of it around its first problem.
	Text string
	// Cut reports that Text is not the whole line.
	Cut bool
}

// linesOf returns the lines with a problem and those around them, in order. problems are ordered by line and column.
func linesOf(b []byte, problems []Problem) []Line {
	out := []Line{}
	all := bytes.Split(b, []byte("\n"))
	next := 1 // the first line that is not taken yet
	for i, p := range problems {
		if p.Line == 0 || p.Line > len(all) {
			continue
		}
		for n := max(next, p.Line-around); n <= min(len(all), p.Line+around) && len(out) < maxLines; n++ {
			out = append(out, lineOf(all[n-1], n, columnOf(problems[i:], n)))
			next = n + 1
		}
	}
	return out
}

// columnOf returns the column of the first problem in a line; 1 without one.
func columnOf(problems []Problem, line int) int {
	for _, p := range problems {
		if p.Line == line {
			return max(p.Column, 1)
		}
	}
	return 1
}

// lineOf returns a line, cut to the part around a column.
func lineOf(raw []byte, number, column int) Line {
	text := []rune(strings.ToValidUTF8(strings.TrimSuffix(string(raw), "\r"), string(utf8.RuneError)))
	if len(text) <= maxLine {
		return Line{Number: number, Text: string(text)}
	}
	from := min(max(column-1-maxLine/4, 0), len(text))
	to := min(len(text), from+maxLine)
	shown := string(text[from:to])
	if from > 0 {
		shown = "…" + shown
	}
	if to < len(text) {
		shown += "…"
	}
	return Line{Number: number, Text: shown, Cut: true}
}
