package webhookdb

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"repute"
	"repute/store"
	"repute/store/changedata"
)

// Filter selects the changes that a webhook is sent. The zero value selects all, as soon as the index has them.
type Filter struct {
	// Agent is one agent, {chainId}:{tokenId}; empty: all.
	Agent string `json:"agent,omitempty"`
	// Chain is one chain; 0: all.
	Chain uint64 `json:"chain,omitempty"`
	// Kinds are kinds of changes; empty: all, or those of scores with Below, Above or Tier.
	Kinds []string `json:"kinds,omitempty"`
	// Below and Above select changes of scores whose old and new score lie on different sides of a bound in points, and
	// Tier those that change the tier. With several of them a change is selected by any. They look at provisional
	// scores, or at final ones with Finality finalized.
	Below *float64 `json:"below,omitempty"`
	Above *float64 `json:"above,omitempty"`
	Tier  bool     `json:"tier,omitempty"`
	// Finality is latest, or finalized for changes that no reorganization undoes; empty: latest.
	Finality repute.Finality `json:"finality,omitempty"`
}

// byScore reports whether the filter looks at scores.
func (f *Filter) byScore() bool { return f.Below != nil || f.Above != nil || f.Tier }

// Check returns repute.ErrInvalid with the field that is wrong.
func (f *Filter) Check() error {
	for _, k := range f.Kinds {
		if !slices.Contains(changedata.Kinds(), k) {
			return repute.Invalid("kinds", fmt.Sprintf("%.60q is not a kind of change", k),
				"of "+strings.Join(changedata.Kinds(), ", "))
		}
	}
	if f.byScore() && len(f.Kinds) > 0 && !slices.Equal(f.Kinds, []string{changedata.KindScore}) {
		return repute.Invalid("kinds", "contradict below, above or tier, which select changes of scores",
			"no kinds, or a webhook of its own for scores")
	}
	for name, bound := range map[string]*float64{"below": f.Below, "above": f.Above} {
		if bound != nil && (math.IsNaN(*bound) || math.Abs(*bound) > 100) {
			return repute.Invalid(name, "is no score", "-100 to 100")
		}
	}
	switch f.Finality {
	case "", repute.Latest, repute.Finalized:
	default:
		return repute.Invalid("finality", "not a view of the feed", "latest or finalized")
	}
	_, err := f.Feed()
	return err
}

// Feed returns the part of the filter that the feed applies. repute.ErrInvalid: Agent is no agent, or of another chain.
func (f *Filter) Feed() (store.ChangeFilter, error) {
	out := store.ChangeFilter{ChainID: f.Chain, Kinds: f.Kinds, Final: f.Finality == repute.Finalized}
	if f.byScore() {
		out.Kinds = []string{changedata.KindScore}
	}
	if f.Agent == "" {
		return out, nil
	}
	ref, err := repute.ParseAgentRef(f.Agent)
	switch {
	case err != nil || ref.ChainID == 0:
		return out, repute.Invalid("agent", "not an agent id", "{chainId}:{tokenId}, e.g. 8453:22")
	case f.Chain != 0 && f.Chain != ref.ChainID:
		return out, repute.Invalid("agent", "is of another chain than chain", "one of both")
	}
	out.ChainID, out.TokenID = ref.ChainID, &ref.TokenID
	return out, nil
}

// Selects reports whether a change that Feed selected is sent. The error says that its data cannot be read.
func (f *Filter) Selects(c *store.Change) (bool, error) {
	if !f.byScore() {
		return true, nil
	}
	s, err := changedata.ScoreOf(c)
	if err != nil || s == nil {
		return false, err
	}
	mode := changedata.Provisional
	if f.Finality == repute.Finalized {
		mode = changedata.Final
	}
	return s.Mode == mode && (f.Below != nil && s.CrossesBelow(*f.Below) ||
		f.Above != nil && s.CrossesAbove(*f.Above) ||
		f.Tier && s.ChangesTier()), nil
}
