package web

import (
	"strconv"

	"repute/web/format"
)

// Budget returns the limits of the run, each with what was used of it where that is counted.
func (r run) Budget() []budgetLine {
	var u amounts
	if r.Used != nil {
		u = *r.Used
	}
	l := r.Limits
	list := []budgetLine{
		{"Steps", format.Count(u.Steps), format.Count(l.Steps), part(float64(u.Steps), float64(l.Steps))},
		{"Calls of tools", format.Count(u.ToolCalls), format.Count(l.ToolCalls), part(float64(u.ToolCalls), float64(l.ToolCalls))},
		{"Transactions", format.Count(u.Writes), format.Count(l.Writes), part(float64(u.Writes), float64(l.Writes))},
		{"Time", format.Millis(u.RuntimeMs), format.Millis(l.RuntimeMs), part(float64(u.RuntimeMs), float64(l.RuntimeMs))},
		{"Gas", format.Wei(format.OrElse(u.GasWei, "0")), orNone(l.GasWei, format.Wei), partOf(u.GasWei, l.GasWei)},
	}
	if l.Tokens != nil || u.Tokens != nil && *u.Tokens > 0 {
		limit, share := "no limit", -1.0
		if l.Tokens != nil {
			limit, share = format.Count(*l.Tokens), part(float64(valueOf(u.Tokens)), float64(*l.Tokens))
		}
		list = append(list, budgetLine{"Tokens of models", format.Count(valueOf(u.Tokens)), limit, share})
	}
	if l.CostUsd != nil || format.OrElse(u.CostUsd, "0") != "0" {
		list = append(list, budgetLine{"Cost of models", format.Dollars(format.OrElse(u.CostUsd, "0")), orNone(l.CostUsd, format.Dollars),
			partOf(u.CostUsd, l.CostUsd)})
	}
	return list
}

// budgetLine is a limit with what was used of it. Share is from 0 to 1; below 0 where there is no limit.
type budgetLine struct {
	Name, Used, Limit string
	Share             float64
}

// part returns used of a limit, from 0 to 1.
func part(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return min(1, max(0, used/limit))
}

// partOf returns the part of a limit that is used, of decimal numbers; -1 without a limit.
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
