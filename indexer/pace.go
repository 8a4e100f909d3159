package indexer

// pace chooses how many blocks to ask for at once. It aims at ranges of a certain
// number of logs and bytes, judging by what earlier ranges held, doubles until the
// first refusal and grows by steps after it. A refusal that a shorter range may
// cure brings it back to what worked, or halves it. A size that was refused is
// tried again only after many successes.
type pace struct {
	size, step, most uint64 // blocks
	good             uint64 // largest size answered since the last refusal of it, 0 when none
	ceiling          uint64 // smallest size refused, 0 when none
	calm             int    // answers since the last refusal
	swift            bool   // nothing was refused yet
	perBlock         load   // of recent ranges
	target           load   // of one range
}

// load is what a range weighs.
type load struct{ logs, bytes float64 }

// probeAfter is how many successes it takes to try a refused size again.
const probeAfter = 100

func newPace(start, most uint64, target load) pace {
	start = min(start, most)
	return pace{size: start, step: max(1, start/4), most: most, swift: true, target: target}
}

// shrink records that asked blocks were refused. hint is how many the node says
// it answers, 0 when it does not say.
func (p *pace) shrink(asked, hint uint64) {
	p.swift, p.calm = false, 0
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
func (p *pace) grow(asked uint64, held load) {
	p.weigh(asked, held)
	if p.calm++; p.calm > probeAfter {
		p.ceiling, p.calm = 0, 0
	}
	if asked >= p.size { // a range cut short proves nothing
		p.good = max(p.good, asked)
		p.size = min(p.size+p.room(), p.most)
	}
	p.size = min(p.size, p.fitting())
}

// room is by how much the size may grow: not closer to a refused size than is
// worth another refusal.
func (p *pace) room() uint64 {
	switch {
	case p.swift:
		return p.size
	case p.ceiling == 0:
		return p.step
	case p.ceiling <= p.size+p.size/8+1:
		return 0
	}
	return min(p.step, (p.ceiling-p.size)/2)
}

// weigh follows a denser range at once and a sparser one slowly: an answer too
// large costs more than one too small.
func (p *pace) weigh(asked uint64, held load) {
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

// fitting is the largest size that is likely to hold no more than the target.
func (p *pace) fitting() uint64 {
	fit := float64(p.most)
	if p.perBlock.logs > 0 {
		fit = min(fit, p.target.logs/p.perBlock.logs)
	}
	if p.perBlock.bytes > 0 {
		fit = min(fit, p.target.bytes/p.perBlock.bytes)
	}
	return max(1, uint64(fit))
}

// expect is how many bytes a range of that many blocks is likely to weigh.
func (p *pace) expect(blocks uint64) int { return int(p.perBlock.bytes * float64(blocks)) }
