package orchestrator

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Kinds of events of tokens.
const (
	eventTransfer       = "transfer"
	eventApproval       = "approval"
	eventApprovalForAll = "approval_for_all"
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

// eventForms say where an event has the holder among its arguments; the other address is the
// next, and an amount or an id the one behind.
var eventForms = map[common.Hash]struct {
	kind string
	from int
}{
	transferred:    {eventTransfer, 0},
	transferredOne: {eventTransfer, 1},
	crypto.Keccak256Hash([]byte("TransferBatch(address,address,address,uint256[],uint256[])")): {eventTransfer, 1},
	approved: {eventApproval, 0},
	crypto.Keccak256Hash([]byte("ApprovalForAll(address,address,bool)")): {eventApprovalForAll, 0},
}

// The events of ERC-20 and ERC-721, whose third argument is an amount or an id.
var (
	transferred = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	approved    = crypto.Keccak256Hash([]byte("Approval(address,address,uint256)"))
)

// transferredOne is the event of ERC-1155 whose arguments behind the receiver are id and amount.
var transferredOne = crypto.Keccak256Hash([]byte("TransferSingle(address,address,address,uint256,uint256)"))

// tokenEvent is what a token says that it did.
type tokenEvent struct {
	kind     string
	from, to common.Address
	// amount is nil where what it is about has none, as an NFT; of an approval for all it is 1
	// where it is given and 0 where it is taken.
	amount *big.Int
	id     *big.Int // of an NFT or of one kind of a multi-token, nil for other tokens
	count  *big.Int // of that kind, nil for an NFT
}

// tokenEventOf reads an event of a token. Which of the arguments are topics differs among old
// tokens; four topics are those of an NFT.
func tokenEventOf(l *types.Log) (e tokenEvent, known bool) {
	if len(l.Topics) == 0 {
		return e, false
	}
	form, known := eventForms[l.Topics[0]]
	if !known {
		return e, false
	}
	var args []byte
	for _, t := range l.Topics[1:] {
		args = append(args, t[:]...)
	}
	args = append(args, l.Data...)
	from, ok1 := word(args, form.from)
	to, ok2 := word(args, form.from+1)
	if !ok1 || !ok2 {
		return e, false
	}
	e = tokenEvent{kind: form.kind, from: common.BigToAddress(from), to: common.BigToAddress(to)}
	fungible := l.Topics[0] == transferred || l.Topics[0] == approved
	switch third, _ := word(args, form.from+2); { // nil where it is cut off
	case fungible && len(l.Topics) <= 3 || form.kind == eventApprovalForAll:
		e.amount = third
	case fungible:
		e.id = third
	case l.Topics[0] == transferredOne:
		e.id = third
		e.count, _ = word(args, form.from+3)
	}
	return e, true
}

// events are the transfers and approvals that a simulation emits, approvals first, and how many
// more there are than are shown.
func (d *describer) events(chainID uint64, treasury common.Address, logs []types.Log) (out []ShownEvent, omitted int) {
	out = []ShownEvent{}
	for i := range logs {
		said, known := tokenEventOf(&logs[i])
		if !known {
			continue
		}
		units := ""
		if said.amount != nil {
			units = said.amount.String()
		}
		shown := ShownEvent{Kind: said.kind, From: said.from.Hex(), To: said.to.Hex(),
			ShownAmount: d.amount(chainID, logs[i].Address, units), outflow: said.from == treasury &&
				(treasury != common.Address{})}
		shown.Bound = shown.rank() > 0
		if said.id != nil {
			shown.TokenID = said.id.String()
			shown.Text = countOf(said.count) + " of number " + shown.TokenID + " of " + shown.Token
		}
		if said.kind == eventApprovalForAll {
			shown.Decimals, shown.Text = nil,
				map[bool]string{true: "everything of ", false: "nothing any more of "}[units != "0"]+cmp.Or(shown.Symbol,
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
	case s.Kind != eventTransfer:
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
