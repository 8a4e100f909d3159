package approval

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/orchestrator/transaction"
)

// ShownEvent is a transfer or an approval of a token that a simulation emits, in the token's
// own words.
type ShownEvent struct {
	Kind string `json:"kind" enum:"transfer,approval,approval_for_all"`
	From string `json:"from" doc:"holder"`
	To   string `json:"to" doc:"receiver of a transfer, or who may move what is approved"`
	ShownAmount
	TokenID string `json:"tokenId,omitempty" doc:"of an NFT or of one kind of a multi-token, decimal"`
	Bound   bool   `json:"bound" doc:"an answer holds for this very amount. false: it may be another one when it is sent, as what an exchange pays out"`
	outflow bool   // it leaves the treasury
}

// maxShownEvents bounds how many events a person is shown.
const maxShownEvents = 64

// events are the transfers and approvals that a simulation emits, approvals first, and how many
// more there are than are shown.
func (d *Describer) events(chainID uint64, treasury common.Address, logs []types.Log) (out []ShownEvent, omitted int) {
	out = []ShownEvent{}
	for i := range logs {
		said, known := transaction.ReadTokenEvent(&logs[i])
		if !known {
			continue
		}
		units := ""
		if said.Amount != nil {
			units = said.Amount.String()
		}
		shown := ShownEvent{Kind: said.Kind, From: said.From.Hex(), To: said.To.Hex(),
			ShownAmount: d.amount(chainID, logs[i].Address, units), outflow: said.From == treasury &&
				(treasury != common.Address{})}
		shown.Bound = shown.rank() > 0
		if said.Id != nil {
			shown.TokenID = said.Id.String()
			shown.Text = countOf(said.Count) + " of number " + shown.TokenID + " of " + shown.Token
		}
		if said.Kind == transaction.EventApprovalForAll {
			shown.Decimals, shown.Text = nil,
				map[bool]string{true: "everything of ", false: "nothing any more of "}[units != "0"]+
					cmp.Or(shown.Symbol,
						shown.Token)
		}
		out = append(out, shown)
	}
	slices.SortStableFunc(out, func(a, b ShownEvent) int { return cmp.Compare(b.rank(), a.rank()) })
	omitted = max(0, len(out)-maxShownEvents)
	return out[:len(out)-omitted], omitted
}

// countOf is how many of one kind of a multi-token; an NFT is one.
func countOf(n *big.Int) string {
	if n == nil {
		return "1"
	}
	return n.String()
}

// rank orders events by how much a person must see them.
func (s *ShownEvent) rank() int {
	switch {
	case s.Kind != transaction.EventTransfer:
		return 2
	case s.outflow:
		return 1
	}
	return 0
}

// forget leaves out the amount of a transfer that does not leave the treasury.
func (s *ShownEvent) forget() {
	if s.rank() == 0 {
		s.Units, s.Text = "", ""
	}
}
