package source

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// logEvent is a compiled Event. indexed has an entry for each value, so that a place in values leads to a topic; topics
// count from 1, behind the hash of the declaration.
type logEvent struct {
	contract string
	topic    common.Hash
	values   []value // as in a plan: the first one is not of the event
	indexed  []int   // of each value its topic, 0 for none
	rater    int     // places in values; person is 0 for none
	person   int
	revoked  bool
	holds    []condition
}

// events are those that name the attestations of an EAS source without an indexer.
func (e *EAS) events() []Event {
	if !e.Logs {
		return nil
	}
	event := func(name, means string) Event {
		return Event{Contract: "registry", Rater: "recipient", Person: "uid", Means: means,
			Event: name +
				"(address indexed recipient, address indexed attester, bytes32 uid, bytes32 indexed schemaUID)",
			Holds: []Condition{{Value: "attester", Equals: e.attesters()},
				{Value: "schemaUID", Equals: []string{e.Schema.ID.Hex()}}}}
	}
	return []Event{event("Attested", Issued), event("Revoked", Revoked)}
}

// maxEvents bounds the kinds of logs of one source.
const maxEvents = 8

// listen compiles the events of a method. Sources with calls may date credentials by logs; the time of issue MUST then
// have one origin only.
func (p *plan) listen(field string, m *Method) error {
	if len(m.Events) > maxEvents {
		return repute.Invalid(field+".events", fmt.Sprintf("%d kinds", len(m.Events)),
			fmt.Sprintf("at most %d", maxEvents))
	}
	for i := range m.Events {
		e, err := newEvent(fmt.Sprintf("%s.events[%d]", field, i), &m.Events[i])
		if err != nil {
			return err
		}
		p.events = append(p.events, *e)
	}
	if m.EAS == nil && len(p.events) > 0 && p.issued >= 0 {
		return repute.Invalid(field+".issued", "is named beside events", "one of them")
	}
	if len(p.events) > 0 && !slices.ContainsFunc(p.events, func(e logEvent) bool { return !e.revoked }) {
		return repute.Invalid(field+".events", "has none that means issued", "the event of the issue")
	}
	return nil
}

// newEvent compiles an event. The error is repute.ErrInvalid and names a field below field. It compiles the conditions
// by a plan of its own, in which nothing but the values of the event has a name: an event cannot refer to what calls
// returned.
func newEvent(field string, text *Event) (*logEvent, error) {
	names := &plan{values: []value{{}}}
	e := &logEvent{contract: text.Contract, indexed: []int{0}, revoked: text.Means == Revoked}
	if text.Means != Issued && text.Means != Revoked {
		return nil, repute.Invalid(field+".means", fmt.Sprintf("%.40q is not known", text.Means), "issued or revoked")
	}
	values, err := e.parse(text.Event)
	if err == nil {
		err = names.declare(field+".event", values)
	}
	if err != nil {
		return nil, repute.Invalid(field+".event", err.Error(),
			"e.g. Transfer(address indexed from, address indexed to, uint256 indexed tokenId)")
	}
	e.values = names.values
	e.rater = names.place(text.Rater)
	if e.rater < 1 || e.indexed[e.rater] == 0 || e.values[e.rater].wordType.name != "address" {
		return nil, repute.Invalid(field+".rater", fmt.Sprintf("%.40q is no indexed address of the event", text.Rater),
			"the name of one")
	}
	if text.Person != "" {
		if e.person = names.place(text.Person); e.person < 1 {
			return nil, repute.Invalid(field+".person", fmt.Sprintf("%.40q is no value of the event", text.Person),
				"the name of one")
		}
	}
	held := step{}
	for i := range text.Holds {
		at := fmt.Sprintf("%s.holds[%d]", field, i)
		if text.Holds[i].Future {
			return nil, repute.Invalid(at+".future", "is set for an event", "notZero, atLeast or equals")
		}
		if err := names.condition(at, &text.Holds[i], &held); err != nil {
			return nil, err
		}
	}
	e.holds = held.holds
	return e, nil
}

// parse reads the declaration of an event. Only types of one word are accepted, so that every indexed value is its own
// topic and not a hash. An event has three indexed values at most, because the first of four topics is its hash.
func (e *logEvent) parse(text string) (values []value, err error) {
	parts := regexp.MustCompile(`^(\w+)\(([^()]+)\)$`).FindStringSubmatch(text)
	if parts == nil || len(text) > maxSignature {
		return nil, errors.New("is no declaration of an event")
	}
	var names []string
	topics := 0
	for part := range strings.SplitSeq(parts[2], ",") {
		words := strings.Fields(part)
		indexed := len(words) == 3 && words[1] == "indexed"
		if !indexed && len(words) != 2 {
			return nil, fmt.Errorf("has %q where a type with a name is wanted", part)
		}
		t, err := parseType(words[0])
		if err != nil {
			return nil, err
		}
		topic := 0
		if indexed {
			topics++
			topic = topics
		}
		e.indexed = append(e.indexed, topic)
		values, names = append(values, value{words[len(words)-1], t}), append(names, t.name)
	}
	if topics > 3 {
		return nil, errors.New("has more than three indexed values")
	}
	e.topic = crypto.Keccak256Hash([]byte(parts[1] + "(" + strings.Join(names, ",") + ")"))
	return values, nil
}

// ByLogs reports whether logs alone tell which raters may have a credential. Otherwise they only date those that calls
// found.
func (s *Source) ByLogs() bool {
	return len(s.plan.events) > 0 && (s.Read.EAS != nil || len(s.plan.steps) == 0)
}

// ByEvents reports whether logs tell since when a rater has a credential. An attestation of EAS has its own time of
// issue.
func (s *Source) ByEvents() bool { return len(s.plan.events) > 0 && s.Read.EAS == nil }

// Filter asks for logs of one contract by topics as a node's filter does: an empty position is any.
type Filter struct {
	Contract common.Address
	Topics   [][]common.Hash
}

// Filters ask for all logs of the source at a home that are about any of some raters; without raters, about anybody.
// Events of one contract that ask for the same topics share a filter, which halves the requests for an issue and its
// revocation.
func (s *Source) Filters(home *Home, raters []common.Address) (out []Filter) {
	var about []common.Hash
	for _, r := range raters {
		about = append(about, common.BytesToHash(r[:]))
	}
	for i := range s.plan.events {
		e := &s.plan.events[i]
		f := Filter{home.Contracts[e.contract].Address, append([][]common.Hash{{e.topic}}, e.wanted(about)...)}
		same := slices.IndexFunc(out, func(o Filter) bool {
			return o.Contract == f.Contract && slices.EqualFunc(o.Topics[1:], f.Topics[1:], slices.Equal)
		})
		if same >= 0 {
			if !slices.Contains(out[same].Topics[0], e.topic) {
				out[same].Topics[0] = append(out[same].Topics[0], e.topic)
			}
			continue
		}
		out = append(out, f)
	}
	return out
}

// wanted are the topics behind the first. Conditions on indexed values that are literals become topics, so that the
// node leaves out logs of other schemas and attesters; Signs checks all conditions again. Empty positions at the end
// are left out.
func (e *logEvent) wanted(about []common.Hash) [][]common.Hash {
	last := 0
	topics := make([][]common.Hash, 3)
	if len(about) > 0 {
		last = e.indexed[e.rater]
		topics[last-1] = about
	}
	for _, h := range e.holds {
		at := e.indexed[h.place]
		if at == 0 || len(h.equals) == 0 || h.place == e.rater || slices.ContainsFunc(h.equals, argument.named) {
			continue
		}
		for _, a := range h.equals {
			topics[at-1] = append(topics[at-1], a.literal)
		}
		last = max(last, at)
	}
	return topics[:last]
}

// named reports whether the argument is a value that is known only once others were read.
func (a argument) named() bool { return a.place >= 0 }

// Sign is what one log says of a rater's credential. It is comparable.
type Sign struct {
	Rater   common.Address
	Key     common.Hash // tells the credentials of one rater apart; zero where there is one
	Revoked bool
	Block   uint64
	Index   uint // of the log in the block
}

// Compare orders signs as the chain has them. Signs of one log are ordered by all that they say, so that equal ones,
// which two filters found, are neighbors.
func (s Sign) Compare(o Sign) int {
	revoked := 0
	if s.Revoked != o.Revoked {
		if revoked = 1; o.Revoked {
			revoked = -1
		}
	}
	return cmp.Or(cmp.Compare(s.Block, o.Block), cmp.Compare(s.Index, o.Index), s.Rater.Cmp(o.Rater), s.Key.Cmp(o.Key),
		revoked)
}

// Signs reads a log of the source's contracts; none where it is another one. A log that both takes a credential from a
// rater and gives it to the same says nothing. The error means that the contract writes other logs than declared. One
// log may match several events, such as a transfer, which is the issue for the receiver and the revocation for the
// sender.
func (s *Source) Signs(home *Home, l *types.Log) (out []Sign, err error) {
	for i := range s.plan.events {
		e := &s.plan.events[i]
		if home.Contracts[e.contract].Address != l.Address || len(l.Topics) == 0 || l.Topics[0] != e.topic {
			continue
		}
		values, err := e.decode(l)
		if err != nil {
			return nil, fmt.Errorf("a log of contract %s in block %d: %w", e.contract, l.BlockNumber, err)
		}
		if slices.ContainsFunc(e.holds, func(c condition) bool { return !c.met(values, 0) }) {
			continue
		}
		sign := Sign{Rater: common.BytesToAddress(values[e.rater][:]), Key: values[e.person], Revoked: e.revoked,
			Block: l.BlockNumber, Index: l.Index}
		opposite := sign
		opposite.Revoked = !sign.Revoked
		if at := slices.Index(out, opposite); at >= 0 {
			out = slices.Delete(out, at, at+1)
			continue
		}
		out = append(out, sign)
	}
	return out, nil
}

// decode returns the values of a log, the first one zero. Words that are not indexed follow each other in the data. A
// log with more data or topics than declared is refused.
func (e *logEvent) decode(l *types.Log) ([]common.Hash, error) {
	values := make([]common.Hash, len(e.values))
	data, topics := l.Data, 1
	for i := 1; i < len(values); i++ {
		switch at := e.indexed[i]; {
		case at > 0 && at < len(l.Topics):
			values[i] = l.Topics[at]
			topics++
		case at == 0 && len(data) >= wordSize:
			values[i], data = common.Hash(data[:wordSize]), data[wordSize:]
		default:
			return nil, fmt.Errorf("%w: it has %d topics and %d bytes", errEncoding, len(l.Topics), len(l.Data))
		}
		if !e.values[i].valid(values[i]) {
			return nil, fmt.Errorf("%w: %s is no %s", errEncoding, values[i], e.values[i].wordType.name)
		}
	}
	if len(data) > 0 || topics != len(l.Topics) {
		return nil, fmt.Errorf("%w: it has %d topics and %d bytes", errEncoding, len(l.Topics), len(l.Data))
	}
	return values, nil
}
