package trust

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Manifest is what a score follows from besides events, run and parameters. Its
// canonical bytes are kept by their sha256.
type Manifest struct {
	// Validations is the sha256 of the list of validation contracts whose answers count; nil
	// for runs from before it was kept.
	Validations *common.Hash `json:"validations,omitempty"`

	Kin      []ManifestKin     `json:"kin,omitempty"`
	Payments []ManifestPayment `json:"payments,omitempty"`
	// Identity is absent where no gate of the parameters asks for it.
	Identity *Identity `json:"identity,omitempty"`
}

// ManifestKin is a Kin, in thousandths of a point.
type ManifestKin struct {
	Token  string         `json:"token"` // of the same registry, decimal
	Score  int64          `json:"score"`
	High   int64          `json:"high"`
	Tier   int            `json:"tier"`
	Holder common.Address `json:"holder"`
	Role   Role           `json:"role"`
}

// ManifestPayment is what was paid for one rating, in units of 2^-32 US dollars.
type ManifestPayment struct {
	Rater common.Address `json:"rater"`
	Index uint64         `json:"index"`
	Paid  int64          `json:"paid"`
}

// ManifestOf lists what evidence holds of that.
func ManifestOf(e *Evidence) Manifest {
	m := Manifest{Identity: e.Identity}
	if e.Validations != (common.Hash{}) {
		m.Validations = &e.Validations
	}
	for _, k := range e.Kin {
		m.Kin = append(m.Kin, ManifestKin{k.Agent.TokenID.Dec(), int64(k.Score), int64(k.High), k.Tier, k.Holder, k.Role})
	}
	for i := range e.Rows {
		if r := &e.Rows[i]; r.Paid != 0 {
			m.Payments = append(m.Payments, ManifestPayment{r.Rater, r.Index, int64(r.Paid)})
		}
	}
	slices.SortFunc(m.Payments, func(a, b ManifestPayment) int {
		return cmp.Or(bytes.Compare(a.Rater[:], b.Rater[:]), cmp.Compare(a.Index, b.Index))
	})
	return m
}

// Encode gives the canonical bytes.
func (m Manifest) Encode() []byte { return canonical(m) }

// DecodeManifest reads what Encode wrote.
func DecodeManifest(body []byte) (m Manifest, err error) { return m, readCanonical(body, &m) }

// Apply makes evidence hold what the manifest lists and nothing else of that.
func (m Manifest) Apply(e *Evidence) error {
	e.Kin, e.Validations, e.Identity = nil, common.Hash{}, m.Identity
	if m.Validations != nil {
		e.Validations = *m.Validations
	}
	for _, k := range m.Kin {
		kin := Kin{Agent: e.Agent, Score: Points(k.Score), High: Points(k.High), Tier: k.Tier, Holder: k.Holder, Role: k.Role}
		var err error
		if kin.Agent.TokenID, err = repute.ParseTokenID(k.Token); err != nil {
			return err
		}
		e.Kin = append(e.Kin, kin)
	}
	type rating struct {
		rater common.Address
		index uint64
	}
	paid := map[rating]Fixed{}
	for _, p := range m.Payments {
		paid[rating{p.Rater, p.Index}] = Fixed(p.Paid)
	}
	for i := range e.Rows {
		e.Rows[i].Paid = paid[rating{e.Rows[i].Rater, e.Rows[i].Index}]
	}
	return nil
}
