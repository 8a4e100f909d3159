package contracts

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// ticketSignatures are the forms of TicketConsumed. The event is a proposal, and implementations number tickets or
// identify them by hashes.
var ticketSignatures = []string{
	"TicketConsumed(bytes32,address,uint256,address,bytes32)",
	"TicketConsumed(uint256,address,uint256,address,bytes32)",
}

// ticketWords is the number of arguments of TicketConsumed, each of one word.
const ticketWords = 5

// ticketTopics are the first topics of ticketSignatures, computed once and never changed.
var ticketTopics = []common.Hash{topicOf(ticketSignatures[0]), topicOf(ticketSignatures[1])}

// GatewayTopics lists the first topics of what a feedback gateway emits. The caller may change the slice.
func GatewayTopics() []common.Hash { return slices.Clone(ticketTopics) }

// isTicket reports whether a log has a topic of TicketConsumed.
func isTicket(l *types.Log) bool { return slices.Contains(ticketTopics, l.Topics[0]) }

// decodeTicket reads TicketConsumed. Any number of leading arguments may be indexed: topics and data together hold all
// of them in the order of declaration. Bytes after the last argument are ignored, as in other events.
func decodeTicket(l *types.Log) (repute.Event, error) {
	words := slices.Clone(l.Topics[1:])
	for at := 0; at+wordSize <= len(l.Data) && len(words) < ticketWords; at += wordSize {
		words = append(words, common.Hash(l.Data[at:at+wordSize]))
	}
	if len(words) != ticketWords {
		return nil, fmt.Errorf("%s: %w", repute.KindTicketConsumed, malformed("%d arguments instead of %d", len(words),
			ticketWords))
	}
	a := args{topics: words}
	e := repute.TicketConsumed{
		TicketID:     a.topic(),
		Payer:        a.address(a.topic()),
		TokenID:      a.token(a.topic()),
		Agent:        a.address(a.topic()),
		FeedbackHash: a.topic(),
	}
	if a.err != nil {
		return nil, fmt.Errorf("%s: %w", repute.KindTicketConsumed, a.err)
	}
	return e, nil
}
