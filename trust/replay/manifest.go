package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// Manifest is what a score follows from besides events, run and parameters. Its
// canonical bytes are kept by their sha256.
type Manifest struct {
	// Validations is the sha256 of the list of validation contracts whose answers count; nil
	// for runs from before it was kept.
	Validations *common.Hash `json:"validations,omitempty"`

	Related []ManifestRelated `json:"related,omitempty"`
	// Paid is absent where nothing was paid. Payments is the list that older manifests have
	// instead: of those each payment made another manifest as long as all payments.
	Paid     *ManifestPaid     `json:"paid,omitempty"`
	Payments []ManifestPayment `json:"payments,omitempty"`
	// Identity is absent where no gate of the parameters asks for it.
	Identity *trust.Identity `json:"identity,omitempty"`
}

// ManifestRelated is a RelatedAgent, in thousandths of a point.
type ManifestRelated struct {
	Token  string         `json:"token"` // of the same registry, decimal
	Score  int64          `json:"score"`
	High   int64          `json:"high"`
	Tier   int            `json:"tier"`
	Holder common.Address `json:"holder"`
	Role   trust.Role     `json:"role"`
	Share  int64          `json:"share"` // units of 2^-32
}

// ManifestPaid names what was paid for an agent's ratings: the ledger of payments tells it.
type ManifestPaid struct {
	Count  int         `json:"count"`  // ratings that something was paid for
	Digest common.Hash `json:"sha256"` // of the canonical list of their ManifestPayment, by rater and index
}

// ManifestPayment is what was paid for one rating, in units of 2^-32 US dollars.
type ManifestPayment struct {
	Rater common.Address `json:"rater"` // its client
	Index uint64         `json:"index"`
	Paid  int64          `json:"paid"`
}

// ManifestOf lists what evidence holds of that.
func ManifestOf(e *trust.Evidence) Manifest {
	m := Manifest{Identity: e.Identity}
	if e.Validations != (common.Hash{}) {
		m.Validations = &e.Validations
	}
	for _, k := range e.Related {
		m.Related = append(m.Related, ManifestRelated{k.Agent.TokenID.Dec(), int64(k.Score), int64(k.High), k.Tier,
			k.Holder, k.Role, int64(k.Share)})
	}
	m.Paid = paidOf(e)
	return m
}

// paymentsOf lists what evidence holds of payments, by rater and index.
func paymentsOf(e *trust.Evidence) (list []ManifestPayment) {
	for i := range e.Rows {
		if r := &e.Rows[i]; r.Paid != 0 {
			list = append(list, ManifestPayment{r.Client(), r.Index, int64(r.Paid)})
		}
	}
	slices.SortFunc(list, func(a, b ManifestPayment) int {
		return cmp.Or(a.Rater.Cmp(b.Rater), cmp.Compare(a.Index, b.Index))
	})
	return list
}

// paidOf is the hash of the payments that evidence names, nil for none.
func paidOf(e *trust.Evidence) *ManifestPaid {
	list := paymentsOf(e)
	if len(list) == 0 {
		return nil
	}
	return &ManifestPaid{len(list), HashInput(canonical(list))}
}

// is reports whether the evidence holds exactly these payments.
func (p *ManifestPaid) is(e *trust.Evidence) bool {
	now := paidOf(e)
	return now != nil && *now == *p
}

// Rebuild returns the manifest of evidence in the form that m has.
func (m Manifest) Rebuild(e *trust.Evidence) Manifest {
	n := ManifestOf(e)
	if m.Paid == nil {
		n.Paid, n.Payments = nil, paymentsOf(e)
	}
	return n
}

// Encode gives the canonical bytes.
func (m Manifest) Encode() []byte { return canonical(m) }

// DecodeManifest reads what Encode wrote.
func DecodeManifest(body []byte) (m Manifest, err error) { return m, readCanonical(body, &m) }

// Apply makes evidence hold what the manifest lists and nothing else of that. ledger is
// asked where the evidence holds other payments: a *PrunedError where it does not tell those
// of the manifest.
func (m Manifest) Apply(e *trust.Evidence, ledger func() ([]repute.RatingPayment, error)) error {
	e.Related, e.Validations, e.Identity = nil, common.Hash{}, m.Identity
	if m.Validations != nil {
		e.Validations = *m.Validations
	}
	for _, k := range m.Related {
		related := trust.RelatedAgent{Agent: e.Agent, Score: trust.Points(k.Score), High: trust.Points(k.High),
			Tier:   k.Tier,
			Holder: k.Holder, Role: k.Role, Share: fixed.Fixed(k.Share)}
		var err error
		if related.Agent.TokenID, err = repute.ParseTokenID(k.Token); err != nil {
			return err
		}
		e.Related = append(e.Related, related)
	}
	if m.Paid == nil {
		paid := map[ratingKey]fixed.Fixed{}
		for _, p := range m.Payments {
			paid[ratingKey{p.Rater, p.Index}] = fixed.Fixed(p.Paid)
		}
		for i := range e.Rows {
			e.Rows[i].Paid = paid[ratingKey{e.Rows[i].Client(), e.Rows[i].Index}]
		}
		return nil
	}
	if m.Paid.is(e) {
		return nil
	}
	entries, err := ledger()
	if err == nil && !m.Paid.restore(e, entries) {
		err = &PrunedError{fmt.Sprintf("the %d payments with sha256 %s", m.Paid.Count, m.Paid.Digest)}
	}
	return err
}

// ratingKey identifies a rating among those of an agent.
type ratingKey struct {
	rater common.Address
	index uint64
}

// restore goes back along the ledger until what counted then is what the manifest names.
func (p *ManifestPaid) restore(e *trust.Evidence, ledger []repute.RatingPayment) bool {
	rows := make(map[ratingKey]*rating.Row, len(e.Rows))
	for i := range e.Rows {
		r := &e.Rows[i]
		r.Paid = 0
		rows[ratingKey{r.Client(), r.Index}] = r
	}
	count := 0
	pay := func(r *rating.Row, paid fixed.Fixed) (before fixed.Fixed) {
		before, r.Paid = r.Paid, paid
		if before != 0 {
			count--
		}
		if paid != 0 {
			count++
		}
		return before
	}
	type entry struct {
		row    *rating.Row
		before fixed.Fixed
	}
	var known []entry
	for _, l := range ledger {
		if r := rows[ratingKey{l.Client, l.Index}]; r != nil {
			known = append(known, entry{r, pay(r, rating.Dollars(l.Paid))})
		}
	}
	for n := len(known); ; n-- {
		if count == p.Count && p.is(e) {
			return true
		}
		if n == 0 {
			return false
		}
		pay(known[n-1].row, known[n-1].before)
	}
}

// PrunedError is something that a score follows from and that is not stored any more.
type PrunedError struct{ What string }

// Error reads "input pruned: what".
func (e *PrunedError) Error() string { return "input pruned: " + e.What }

// Unwrap makes every PrunedError a repute.ErrGone.
func (e *PrunedError) Unwrap() error { return repute.ErrGone }
