package read

import "repute"

// pace is how many blocks endpoints are asked for at once. It begins with any number, is halved where an endpoint
// refuses, and is doubled again where logs become fewer.
type pace struct {
	size     uint64 // blocks; 0: any number
	answers  int    // since size changed
	patience int    // answers before size is doubled
}

const (
	// minPatience and maxPatience bound how many answers come before a longer span is tried. Each refusal doubles the
	// number, so that an endpoint with a fixed limit refuses at most one request of 64.
	minPatience = 4
	maxPatience = 64
)

// span returns the first span of a range.
func (p *pace) span(from, to uint64) repute.BlockRange {
	if p.size > 0 && to-from >= p.size {
		to = from + p.size - 1
	}
	return repute.BlockRange{From: from, To: to}
}

// answered notes that an endpoint answered for a span.
func (p *pace) answered(r repute.BlockRange) {
	if p.size == 0 || r.To-r.From+1 < p.size {
		return
	}
	if p.answers++; p.answers >= p.patience {
		p.size, p.answers = p.size*2, 0
	}
}

// refused notes that an endpoint refused a span. hint is how many blocks it takes, 0 where it did not say.
func (p *pace) refused(r repute.BlockRange, hint uint64) {
	p.size = max(1, (r.To-r.From+1)/2)
	if hint > 0 {
		p.size = min(p.size, hint)
	}
	p.answers, p.patience = 0, min(maxPatience, max(minPatience, p.patience*2))
}
