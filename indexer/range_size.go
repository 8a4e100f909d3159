package indexer

// rangeSizer chooses how many blocks to ask for at once. It aims at ranges of a certain number of logs
// and bytes, estimated from earlier ranges. The size doubles until the first refusal and grows by
// steps after it. A refusal that a shorter range may cure sets the size back to the largest that was
// answered, or halves it. A refused size is tried again after probeAfter answers.
type rangeSizer struct {
	size, step, most uint64 // blocks
	good             uint64 // largest size answered since the last refusal of it, 0 when none
	ceiling          uint64 // smallest size refused, 0 when none
	answers          int    // since the last refusal
	unrefused        bool   // nothing was refused yet
	perBlock         load   // of recent ranges
	target           load   // of one range
}

// load is the content of a range, or of one block on average.
type load struct{ logs, bytes float64 }

// probeAfter is how many successes it takes to try a refused size again.
const probeAfter = 100

// newRangeSizer returns sizes that begin at start and grow up to most until an answer approaches
// target.
func newRangeSizer(start, most uint64, target load) rangeSizer {
	start = min(start, most)
	return rangeSizer{size: start, step: max(1, start/4), most: most, unrefused: true, target: target}
}

// shrink records that asked blocks were refused. hint is how many the node says
// it answers, 0 when it does not say.
func (p *rangeSizer) shrink(asked, hint uint64) {
	p.unrefused, p.answers = false, 0
	if p.ceiling == 0 || asked < p.ceiling {
		p.ceiling = asked
	}
	next := max(1, asked/2)
	if asked <= p.good {
		p.good = 0 // other blocks, other answers
	}
	if p.good > 0 {
		next = p.good
	}
	if hint > 0 && hint < asked {
		p.ceiling, next = min(p.ceiling, hint+1), hint
	}
	p.size = min(p.size, next)
}

// grow records that asked blocks were answered, and what they held.
func (p *rangeSizer) grow(asked uint64, held load) {
	p.observe(asked, held)
	if p.answers++; p.answers > probeAfter {
		p.ceiling, p.answers = 0, 0
	}
	if asked >= p.size { // an answer to a shorter range does not show that the size works
		p.good = max(p.good, asked)
		p.size = min(p.size+p.growth(), p.most)
	}
	p.size = min(p.size, p.largestFit())
}

// growth returns by how much the size may grow. It stays so far below a refused size that the gain is
// worth the risk of another refusal.
func (p *rangeSizer) growth() uint64 {
	switch {
	case p.unrefused:
		return p.size
	case p.ceiling == 0:
		return p.step
	case p.ceiling <= p.size+p.size/8+1:
		return 0
	}
	return min(p.step, (p.ceiling-p.size)/2)
}

// observe updates the estimate: to that of a denser range at once, to that of a sparser one slowly,
// because an answer that is too large costs more than one that is too small.
func (p *rangeSizer) observe(asked uint64, held load) {
	follow := func(mean *float64, now float64) {
		if now /= float64(asked); now > *mean {
			*mean = now
		} else {
			*mean += (now - *mean) / 4
		}
	}
	follow(&p.perBlock.logs, held.logs)
	follow(&p.perBlock.bytes, held.bytes)
}

// largestFit returns the largest size that is likely to hold no more than the target.
func (p *rangeSizer) largestFit() uint64 {
	fit := float64(p.most)
	if p.perBlock.logs > 0 {
		fit = min(fit, p.target.logs/p.perBlock.logs)
	}
	if p.perBlock.bytes > 0 {
		fit = min(fit, p.target.bytes/p.perBlock.bytes)
	}
	return max(1, uint64(fit))
}

// expectedBytes returns how many bytes a range of that many blocks is likely to hold.
func (p *rangeSizer) expectedBytes(blocks uint64) int { return int(p.perBlock.bytes * float64(blocks)) }
