package web

import "repute/web/format"

// Budget returns the limits of the run, each with what was used of it where that is counted.
func (r run) Budget() []budgetLine {
	var u amounts
	if r.Used != nil {
		u = *r.Used
	}
	l := r.Limits
	list := []budgetLine{
		{"Steps", format.Count(u.Steps), format.Count(l.Steps), format.Part(float64(u.Steps), float64(l.Steps))},
		{"Calls of tools", format.Count(u.ToolCalls), format.Count(l.ToolCalls), format.Part(float64(u.ToolCalls), float64(l.ToolCalls))},
		{"Transactions", format.Count(u.Writes), format.Count(l.Writes), format.Part(float64(u.Writes), float64(l.Writes))},
		{"Time", format.Millis(u.RuntimeMs), format.Millis(l.RuntimeMs), format.Part(float64(u.RuntimeMs), float64(l.RuntimeMs))},
		{"Gas", format.Wei(format.OrElse(u.GasWei, "0")), format.Limit(l.GasWei, format.Wei), format.PartOf(u.GasWei, l.GasWei)},
	}
	if l.Tokens != nil || u.Tokens != nil && *u.Tokens > 0 {
		limit, share := "no limit", -1.0
		if l.Tokens != nil {
			limit, share = format.Count(*l.Tokens), format.Part(float64(valueOf(u.Tokens)), float64(*l.Tokens))
		}
		list = append(list, budgetLine{"Tokens of models", format.Count(valueOf(u.Tokens)), limit, share})
	}
	if l.CostUsd != nil || format.OrElse(u.CostUsd, "0") != "0" {
		list = append(list, budgetLine{"Cost of models", format.Dollars(format.OrElse(u.CostUsd, "0")), format.Limit(l.CostUsd, format.Dollars),
			format.PartOf(u.CostUsd, l.CostUsd)})
	}
	return list
}

// budgetLine is a limit with what was used of it. Share is from 0 to 1; below 0 where there is no limit.
type budgetLine struct {
	Name, Used, Limit string
	Share             float64
}

// valueOf returns the number that p points to, 0 for nil.
func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
