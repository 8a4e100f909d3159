package source

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Limits of a file of sources.
const (
	maxDays    = 3650   // of every duration, ten years
	maxSources = 200    // entries of sources
	maxRelays  = 10_000 // addresses of all relays together
)

// unpriced is the highest weight of a credential without a published price. A quarter is what a credential of 25
// dollars would give.
const unpriced = fixed.One / 4

// check validates the whole file, compiles the plan of each source and fills the lookup of relays. Parse calls it once.
// The order matters: bounds of all sources come before those of classes, and these before those of sources, because
// each is compared with the one around it. Sources come before defaults, which name their ids.
func (p *Policy) check() error {
	switch {
	case p.Version != "1":
		return repute.Invalid("version", fmt.Sprintf("%.40q is not known", p.Version), `"1"`)
	case p.Multicall == common.Address{}:
		return repute.Invalid("multicall", "is missing", "the address of Multicall3")
	case p.Budget.Agents <= 0 || p.Budget.Days <= 0 || p.Budget.Days > maxDays:
		return repute.Invalid("budget", "is missing or out of range", "agents above 0 and days from 1 to 3650")
	case len(p.Sources) > maxSources:
		return repute.Invalid("sources", "are too many", fmt.Sprintf("at most %d", maxSources))
	}
	if err := p.All.check("all", Bounds{fixed.Int(1000), fixed.Int(1000)}); err != nil {
		return err
	}
	if err := p.checkClasses(); err != nil {
		return err
	}
	for i := range p.Sources {
		if err := p.checkSource(fmt.Sprintf("sources[%d]", i), i); err != nil {
			return err
		}
	}
	if err := p.checkDefaults(); err != nil {
		return err
	}
	return p.checkRelays()
}

// checkClasses requires valid rules for exactly the classes A, B and C.
func (p *Policy) checkClasses() error {
	for _, class := range []Class{ClassA, ClassB, ClassC} {
		field := "classes." + string(class)
		rule, given := p.Classes[class]
		if !given {
			return repute.Invalid(field, "is missing", "weight, praise and blame")
		}
		if rule.Weight <= 0 || rule.Weight > fixed.One {
			return repute.Invalid(field+".weight", "out of range", "above 0, at most 1")
		}
		if err := rule.check(field, p.All); err != nil {
			return err
		}
	}
	if len(p.Classes) != 3 {
		return repute.Invalid("classes", "has an unknown class", "A, B and C")
	}
	return nil
}

// check refuses bounds that are not above zero, and bounds above those of within, the next larger group. Bounds of a
// group MUST NOT be above those of the group around it, or LiftPrice would compute too low a price.
func (b Bounds) check(field string, within Bounds) error {
	if b.Praise <= 0 || b.Praise > within.Praise {
		return repute.Invalid(field+".praise", "out of range", "above 0, at most "+within.Praise.Decimal(1))
	}
	if b.Blame <= 0 || b.Blame > within.Blame {
		return repute.Invalid(field+".blame", "out of range", "above 0, at most "+within.Blame.Decimal(1))
	}
	return nil
}

// checkSource validates the i-th source and compiles its plan. KeepDays is at most 30, because a credential that is
// kept may have been revoked meanwhile. maturityDays is never 0: a credential that is bought for one rating would count
// at once.
func (p *Policy) checkSource(field string, i int) (err error) {
	s := &p.Sources[i]
	rule, known := p.Classes[s.Class]
	for _, c := range []struct {
		member string
		ok     bool
		hint   string
	}{
		{"id", regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`).MatchString(s.ID),
			"small letters, digits and hyphens, at most 40"},
		{"id", p.Source(s.ID) == s, "an id that no other source has"},
		{"version", s.Version > 0, "1 or more"},
		{"name", s.Name != "", "a name for people"},
		{"issuer", s.Issuer != "", "who gives the credential"},
		{"meaning", s.Meaning != "", "what a credential says of an address"},
		{"class", known, "A, B or C"},
		{"maturityDays", s.MaturityDays > 0 && s.MaturityDays <= maxDays, "1 to 3650"},
		{"ageDays", s.AgeDays == 0 || s.AgeDays > s.MaturityDays && s.AgeDays <= maxDays, "0, or above maturityDays"},
		{"keepDays", s.KeepDays >= 0 && s.KeepDays <= 30, "0 to 30"},
		{"carryDays", s.CarryDays >= 0 && s.CarryDays <= 365, "0 to 365"},
		{"homes", (len(s.Homes) > 0) == (s.Read.Payments == nil), "one chain or more, none with read.payments"},
	} {
		if !c.ok {
			return repute.Invalid(field+"."+c.member, "is missing or out of range", c.hint)
		}
	}
	if err := s.checkWeight(field, rule.Weight); err != nil {
		return err
	}
	if err := s.Bounds.check(field+".bounds", rule.Bounds); err != nil {
		return err
	}
	if s.plan, err = newPlan(field+".read", &s.Read); err != nil {
		return err
	}
	switch {
	case s.AgeDays > 0 && !s.Dated():
		return repute.Invalid(field+".ageDays", "is set where the source does not tell when a credential was issued",
			"0, or name the value in read.issued or the logs in read.events")
	case s.CarryDays > 0 && s.Dated():
		return repute.Invalid(field+".carryDays", "is set where the source tells when a credential was issued",
			"leave it out: nothing is lost")
	case s.Read.Payments != nil && s.AgeDays == 0:
		return repute.Invalid(field+".ageDays", "is 0 where payments are read", "how many days of payments count")
	case s.Read.Payments != nil && s.KeepDays > 0:
		return repute.Invalid(field+".keepDays", "is set where payments are read", "0: the index always answers")
	}
	return s.checkHomes(field)
}

// Dated reports whether the contracts or logs of the source give the time at which a credential was issued. plan.issued
// is -1 where the source names no value.
func (s *Source) Dated() bool {
	return s.plan.issued >= 0 || len(s.plan.events) > 0 || s.Read.Payments != nil
}

// checkWeight refuses a weight above that of the class (most), and one above price / $100 rounded to 0.05, because one
// unit of weight is meant to cost about 100 dollars.
func (s *Source) checkWeight(field string, most fixed.Fixed) error {
	if s.Price == nil {
		most = min(most, unpriced)
	} else {
		twentieths := s.Price.USD.Scaled(1, 5).Round(1)
		most = min(most, fixed.Ratio(twentieths, 20))
		_, err := time.Parse(time.DateOnly, s.Price.Date)
		if err != nil || s.Price.USD <= 0 || s.Price.Reference == "" {
			return repute.Invalid(field+".price", "is incomplete", "usd above 0, date as 2006-01-02, and reference")
		}
	}
	if s.Weight <= 0 || s.Weight > most {
		return repute.Invalid(field+".weight", "out of range",
			"above 0, at most "+most.Decimal(2)+" by its class and price")
	}
	return nil
}

// checkHomes requires that each home lists exactly the contracts that the plan calls or reads logs of. A contract that
// is listed and not used is an error, since the author expected it to be checked.
func (s *Source) checkHomes(field string) error {
	asked := map[string]bool{}
	for _, step := range s.plan.steps {
		for _, name := range step.among {
			asked[name] = true
		}
		if step.contract != "" {
			asked[step.contract] = true
		}
	}
	for _, e := range s.plan.events {
		asked[e.contract] = true
	}
	for i, h := range s.Homes {
		at := fmt.Sprintf("%s.homes[%d]", field, i)
		if h.Chain == 0 || s.Home(h.Chain) != &s.Homes[i] {
			return repute.Invalid(at+".chain", "is missing or given twice", "a chain id, once")
		}
		for name := range asked {
			if _, given := h.Contracts[name]; !given {
				return repute.Invalid(at+".contracts."+name, "is missing", "its address on this chain")
			}
		}
		for name, c := range h.Contracts {
			if err := c.check(at+".contracts."+name, asked[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// check validates a contract of a home. asked says that the plan uses it. It does not ask the chain: whether the
// address has code is found by the reading.
func (c Contract) check(field string, asked bool) error {
	if !asked {
		return repute.Invalid(field, "is not used by read", "leave it out")
	}
	if c.Address == (common.Address{}) {
		return repute.Invalid(field+".address", "is missing", "0x and 40 hex digits")
	}
	for i, text := range c.Implementations {
		if text != FirstSeen && !common.IsHexAddress(text) {
			return repute.Invalid(fmt.Sprintf("%s.implementations[%d]", field, i),
				fmt.Sprintf("%.60q is no address", text),
				"an address, or "+FirstSeen)
		}
	}
	return nil
}

// checkDefaults validates defaults and others, which list the sources of each chain.
func (p *Policy) checkDefaults() error {
	for i, d := range p.Defaults {
		field := fmt.Sprintf("defaults[%d]", i)
		first := slices.IndexFunc(p.Defaults, func(e ChainDefault) bool { return e.Chain == d.Chain })
		if d.Chain == 0 || first != i {
			return repute.Invalid(field+".chain", "is missing or given twice", "a chain id, once")
		}
		if err := p.checkIDs(field+".sources", d.Sources); err != nil {
			return err
		}
	}
	return p.checkIDs("others", p.Others)
}

// checkIDs refuses an id of no source and an id that is listed twice.
func (p *Policy) checkIDs(field string, ids []string) error {
	for i, id := range ids {
		if p.Source(id) == nil || slices.Index(ids, id) != i {
			return repute.Invalid(fmt.Sprintf("%s[%d]", field, i),
				fmt.Sprintf("%.60q is no source, or named twice", id),
				"ids of sources of this file")
		}
	}
	return nil
}

// checkRelays validates the relays and fills the lookup of their addresses. Many people send from the address of a
// relay, so that a credential of it says nothing about any of them.
func (p *Policy) checkRelays() error {
	p.relays = map[common.Address]string{}
	for i, r := range p.Relays {
		field := fmt.Sprintf("relays[%d]", i)
		if r.Name == "" || r.Reference == "" || len(r.Addresses) == 0 {
			return repute.Invalid(field, "is incomplete", "name, reference and addresses")
		}
		for j, a := range r.Addresses {
			if a == (common.Address{}) || p.relays[a] != "" {
				return repute.Invalid(fmt.Sprintf("%s.addresses[%d]", field, j), "is missing or listed twice",
					"an address, once")
			}
			p.relays[a] = r.Name
		}
	}
	if len(p.relays) > maxRelays {
		return repute.Invalid("relays", "are too many", fmt.Sprintf("at most %d addresses", maxRelays))
	}
	return nil
}
