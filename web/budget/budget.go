// Package budget shows the limits of a run, each with what was used of it, in the units that people read.
package budget

import (
	"strconv"

	"repute/web/format"
)

// Amounts are limits, or what was used of them.
type Amounts struct {
	Steps, ToolCalls, Writes, RuntimeMs int64
	GasWei, CostUsd                     *string
	Tokens                              *int64
}

// Line is a limit with what was used of it. Share is from 0 to 1; below 0 where there is no limit.
type Line struct {
	Name, Used, Limit string
	Share             float64
}

// Lines returns limits with what was used of each where that is counted; used is nil where nothing is. Limits that the
// run does not have are left out where nothing of their kind was used.
func Lines(limits Amounts, used *Amounts) []Line {
	var u Amounts
	if used != nil {
		u = *used
	}
	l := limits
	counted := func(name string, used, limit int64, write func(int64) string) Line {
		return Line{name, write(used), write(limit), part(float64(used), float64(limit))}
	}
	list := []Line{
		counted("Steps", u.Steps, l.Steps, format.Count),
		counted("Calls of tools", u.ToolCalls, l.ToolCalls, format.Count),
		counted("Transactions", u.Writes, l.Writes, format.Count),
		counted("Time", u.RuntimeMs, l.RuntimeMs, format.Millis),
		{"Gas", format.Wei(format.OrElse(u.GasWei, "0")), orNone(l.GasWei, format.Wei), partOf(u.GasWei, l.GasWei)},
	}
	if l.Tokens != nil || u.Tokens != nil && *u.Tokens > 0 {
		limit, share := "no limit", -1.0
		if l.Tokens != nil {
			limit, share = format.Count(*l.Tokens), part(float64(valueOf(u.Tokens)), float64(*l.Tokens))
		}
		list = append(list, Line{"Tokens of models", format.Count(valueOf(u.Tokens)), limit, share})
	}
	if l.CostUsd != nil || format.OrElse(u.CostUsd, "0") != "0" {
		list = append(list, Line{"Cost of models", format.Dollars(format.OrElse(u.CostUsd, "0")),
			orNone(l.CostUsd, format.Dollars), partOf(u.CostUsd, l.CostUsd)})
	}
	return list
}

// part returns which part of a limit is used, from 0 to 1.
func part(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return min(1, max(0, used/limit))
}

// partOf is part of decimal numbers; -1 without a limit.
func partOf(used, limit *string) float64 {
	if limit == nil {
		return -1
	}
	of := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		return f
	}
	return part(of(format.OrElse(used, "0")), of(*limit))
}

// orNone writes a limit, and says where there is none.
func orNone(text *string, write func(string) string) string {
	if text == nil {
		return "no limit"
	}
	return write(*text)
}

// valueOf returns the number that p points to, 0 for nil.
func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
