package agentjson

import (
	"math/big"
)

// reward reads a bounty or an incentive. Only bounties have splits.
func (o *object) reward(name string) *Reward {
	c := o.child(name)
	if c == nil {
		return nil
	}
	r := &Reward{
		Type:     c.requiredChoice("type", "cpa"),
		Rate:     c.requiredDecimal("rate"),
		Currency: c.requiredChoice("currency", "USDC"),
	}
	if name == "bounty" {
		r.Splits = c.splits()
	}
	c.unknown(nil)
	return r
}

// splits reads how a bounty is divided. Shares that do not add up are dropped, because nobody can tell which is wrong.
func (o *object) splits() *Splits {
	c := o.child("splits")
	if c == nil {
		return nil
	}
	s := &Splits{c.share("orchestrator"), c.share("platform"), c.share("referrer")}
	c.unknown(nil)
	sum := new(big.Rat)
	for _, share := range []Decimal{s.Orchestrator, s.Platform, s.Referrer} {
		sum.Add(sum, share.rat())
	}
	off := sum.Sub(sum, big.NewRat(1, 1))
	if off.Abs(off).Cmp(big.NewRat(1, 1000)) > 0 {
		o.r.add(CodeSplits, o.at("splits"), "the shares are off 1 by %s", off.FloatString(3))
		return nil
	}
	return s
}

// share reads a part of 1.
func (o *object) share(name string) Decimal {
	d := o.decimal(name)
	if d.Cmp("1") > 0 {
		o.r.add(CodeNumber, o.at(name), "%.*s is more than 1", maxQuotedValue, d)
		return ""
	}
	return d
}
