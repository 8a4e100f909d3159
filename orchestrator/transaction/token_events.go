package transaction

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Kinds of events of tokens.
const (
	EventTransfer       = "transfer"
	eventApproval       = "approval"
	EventApprovalForAll = "approval_for_all"
)

// eventForms say where an event has the holder among its arguments; the other address is the
// next, and an amount or an id the one behind.
var eventForms = map[common.Hash]struct {
	kind string
	from int
}{
	transferred:    {EventTransfer, 0},
	transferredOne: {EventTransfer, 1},
	crypto.Keccak256Hash([]byte("TransferBatch(address,address,address,uint256[],uint256[])")): {EventTransfer, 1},
	approved: {eventApproval, 0},
	crypto.Keccak256Hash([]byte("ApprovalForAll(address,address,bool)")): {EventApprovalForAll, 0},
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
	Kind     string
	From, To common.Address
	// amount is nil where what it is about has none, as an NFT; of an approval for all it is 1
	// where it is given and 0 where it is taken.
	Amount *big.Int
	Id     *big.Int // of an NFT or of one kind of a multi-token, nil for other tokens
	Count  *big.Int // of that kind, nil for an NFT
}

// ReadTokenEvent reads an event of a token. Which of the arguments are topics differs among old
// tokens; four topics are those of an NFT.
func ReadTokenEvent(l *types.Log) (e tokenEvent, known bool) {
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
	e = tokenEvent{Kind: form.kind, From: common.BigToAddress(from), To: common.BigToAddress(to)}
	fungible := l.Topics[0] == transferred || l.Topics[0] == approved
	switch third, _ := word(args, form.from+2); { // nil where it is cut off
	case fungible && len(l.Topics) <= 3 || form.kind == EventApprovalForAll:
		e.Amount = third
	case fungible:
		e.Id = third
	case l.Topics[0] == transferredOne:
		e.Id = third
		e.Count, _ = word(args, form.from+3)
	}
	return e, true
}
