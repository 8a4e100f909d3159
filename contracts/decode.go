package contracts

import (
	"errors"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Why a log has no event. Decode wraps exactly one of them.
var (
	// ErrForeign: the first topic is no registry event's, or there is none.
	ErrForeign = errors.New("not a registry event")
	// ErrLegacy: an event of an ABI from before the current one; see LegacyError.
	ErrLegacy = errors.New("event of a superseded ABI")
	// ErrMalformed: a registry event's topic, but arguments the registries
	// cannot have emitted.
	ErrMalformed = errors.New("malformed event")
)

// LegacyError names the superseded event a log carries.
type LegacyError struct{ Signature string }

// Error returns the event's signature.
func (e *LegacyError) Error() string { return ErrLegacy.Error() + ": " + e.Signature }

// Unwrap makes every LegacyError an ErrLegacy.
func (e *LegacyError) Unwrap() error { return ErrLegacy }

// Decode reads one log as an event of the three registries, their proxies, a feedback gateway or a treasury. The
// log's address is not looked at: whether the contract is followed is the
// caller's to know. Strings are the log's bytes as they are, and the event holds
// no reference to the log.
//
// It accepts what the ABI admits, also values the registries would have refused
// (decimals above 18, a response above 100), because validation contracts of
// other authors emit the same events. It never panics. Errors wrap ErrForeign,
// ErrLegacy or ErrMalformed.
func Decode(l types.Log) (repute.Event, error) {
	if len(l.Topics) == 0 {
		return nil, fmt.Errorf("%w: anonymous", ErrForeign)
	}
	if isTicket(&l) {
		return decodeTicket(&l)
	}
	if isTreasuryEvent(&l) {
		return decodeTreasury(&l), nil
	}
	s, ok := shapeOf[l.Topics[0]]
	if !ok {
		return nil, unknown(&l)
	}
	a, err := newArgs(s, &l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.kind, err)
	}
	event := s.decode(&a)
	if a.err != nil {
		return nil, fmt.Errorf("%s: %w", s.kind, a.err)
	}
	return event, nil
}

// Read is Decode for logs of contracts that are followed, where nothing may be
// left out: a log of a superseded ABI, or one that the registries cannot have
// emitted, is a repute.Undecoded event. The only error is ErrForeign.
func Read(l types.Log) (repute.Event, error) {
	e, err := Decode(l)
	switch {
	case errors.Is(err, ErrForeign):
		return nil, err
	case errors.Is(err, ErrLegacy):
		return repute.Undecoded{Reason: repute.LegacyEvent}, nil
	case err != nil, !possible(e):
		return repute.Undecoded{Reason: repute.MalformedEvent}, nil
	}
	return e, nil
}

// possible reports whether a registry can have counted to a feedback number.
func possible(e repute.Event) bool {
	var index uint64
	switch e := e.(type) {
	case repute.NewFeedback:
		index = e.Index
	case repute.FeedbackRevoked:
		index = e.Index
	case repute.ResponseAppended:
		index = e.Index
	default:
		return true
	}
	return index > 0 && index <= math.MaxInt64
}

// unknown is the error of a topic that no current event has.
func unknown(l *types.Log) error {
	if signature, ok := legacyOf[l.Topics[0]]; ok {
		return &LegacyError{Signature: signature}
	}
	return fmt.Errorf("%w: topic %s", ErrForeign, l.Topics[0])
}

// The decoders read arguments in two runs, topics and data, each in the order of
// the event's declaration. Go evaluates the calls in a composite literal from the
// left, so that the order of its members is the order of reading: a decoder MUST NOT
// reorder them. What is read after a failure is worthless, and Decode drops the event.

func transfer(a *args) repute.Event {
	return repute.Transfer{
		From:    a.address(a.topic()),
		To:      a.address(a.topic()),
		TokenID: a.token(a.topic()),
	}
}

func registered(a *args) repute.Event {
	return repute.Registered{
		TokenID: a.token(a.topic()),
		Owner:   a.address(a.topic()),
		URI:     a.string(),
	}
}

func uriUpdated(a *args) repute.Event {
	return repute.URIUpdated{
		TokenID:   a.token(a.topic()),
		UpdatedBy: a.address(a.topic()),
		URI:       a.string(),
	}
}

func metadataSet(a *args) repute.Event {
	token, hash := a.token(a.topic()), a.topic()
	e := repute.MetadataSet{TokenID: token, Key: a.string(), Value: a.bytes()}
	a.hashed(hash, e.Key)
	return e
}

func metadataUpdate(a *args) repute.Event {
	return repute.MetadataUpdate{TokenID: a.token(a.word())}
}

func batchMetadataUpdate(a *args) repute.Event {
	return repute.BatchMetadataUpdate{From: a.token(a.word()), To: a.token(a.word())}
}

func approval(a *args) repute.Event {
	return repute.Approval{
		Owner:    a.address(a.topic()),
		Approved: a.address(a.topic()),
		TokenID:  a.token(a.topic()),
	}
}

func approvalForAll(a *args) repute.Event {
	return repute.ApprovalForAll{
		Owner:    a.address(a.topic()),
		Operator: a.address(a.topic()),
		Approved: a.bool(a.word()),
	}
}

func newFeedback(a *args) repute.Event {
	token, client, hash := a.token(a.topic()), a.address(a.topic()), a.topic()
	e := repute.NewFeedback{
		TokenID:      token,
		Client:       client,
		Index:        a.uint64(a.word()),
		Value:        a.int128(a.word()),
		Decimals:     a.uint8(a.word()),
		Tag1:         a.string(),
		Tag2:         a.string(),
		Endpoint:     a.string(),
		URI:          a.string(),
		FeedbackHash: a.word(),
	}
	a.hashed(hash, e.Tag1)
	return e
}

func feedbackRevoked(a *args) repute.Event {
	return repute.FeedbackRevoked{
		TokenID: a.token(a.topic()),
		Client:  a.address(a.topic()),
		Index:   a.uint64(a.topic()),
	}
}

func responseAppended(a *args) repute.Event {
	return repute.ResponseAppended{
		TokenID:      a.token(a.topic()),
		Client:       a.address(a.topic()),
		Responder:    a.address(a.topic()),
		Index:        a.uint64(a.word()),
		URI:          a.string(),
		ResponseHash: a.word(),
	}
}

func validationRequest(a *args) repute.Event {
	return repute.ValidationRequest{
		Validator:   a.address(a.topic()),
		TokenID:     a.token(a.topic()),
		RequestHash: a.topic(),
		URI:         a.string(),
	}
}

func validationResponse(a *args) repute.Event {
	return repute.ValidationResponse{
		Validator:    a.address(a.topic()),
		TokenID:      a.token(a.topic()),
		RequestHash:  a.topic(),
		Response:     a.uint8(a.word()),
		URI:          a.string(),
		ResponseHash: a.word(),
		Tag:          a.string(),
	}
}

func upgraded(a *args) repute.Event {
	return repute.Upgraded{Implementation: a.address(a.topic())}
}

func initialized(a *args) repute.Event {
	return repute.Initialized{Version: a.uint64(a.word())}
}

func ownershipTransferred(a *args) repute.Event {
	return repute.OwnershipTransferred{Previous: a.address(a.topic()), New: a.address(a.topic())}
}

func eip712DomainChanged(*args) repute.Event { return repute.EIP712DomainChanged{} }
