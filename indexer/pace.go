package indexer

// pace chooses how many blocks to ask for: halved by every failure that a
// shorter range may cure, growing by steps otherwise. A size that failed is
// approached again only after many successes.
type pace struct {
	size, step, most uint64
	ceiling          uint64 // smallest size that failed, 0 when none
	calm             int    // successes since
}

// probeAfter is how many successes it takes to try a refused size again.
const probeAfter = 100

func newPace(start, most uint64) pace {
	start = min(start, most)
	return pace{size: start, step: max(1, start/4), most: most}
}

// shrink records that asked blocks were too many.
func (p *pace) shrink(asked uint64) {
	p.size = max(1, asked/2)
	p.ceiling, p.calm = asked, 0
}

// grow records a success.
func (p *pace) grow() {
	if p.calm++; p.calm > probeAfter {
		p.ceiling, p.calm = 0, 0
	}
	next := min(p.size+p.step, p.most)
	if p.ceiling > 0 {
		next = min(next, max(p.size, p.ceiling-1))
	}
	p.size = next
}
