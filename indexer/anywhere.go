package indexer

import (
	"context"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/store/query"
)

const (
	// listedRange is up to how many blocks a refusal may be one of the question for
	// any address and not of the range.
	listedRange = 16
	// listedFor is how long a source is not asked for logs of any address after it
	// refused to.
	listedFor = time.Hour
	// listedTwice is how often words that nobody knows must come again, while the
	// narrower question is answered, to be taken for a refusal of the wider one, and
	// listedPause the pause before each.
	listedTwice = 2
	listedPause = 50 * time.Millisecond
)

// anywhere is whether validations of contracts that nobody listed are asked for.
type anywhere struct {
	topics []common.Hash // empty: not wanted
	again  time.Time     // not asked for until then
	off    bool
	// known are contracts that were found while it was asked for: they stay.
	known []common.Address
}

// mostKnown bounds how many addresses are added to a question.
const mostKnown = 100

func newAnywhere(wanted bool) anywhere {
	if !wanted {
		return anywhere{}
	}
	return anywhere{topics: []common.Hash{contracts.Topic(repute.KindValidationRequest),
		contracts.Topic(repute.KindValidationResponse)}}
}

// now gives the topics to ask for whatever the address.
func (a *anywhere) now() []common.Hash {
	if a.off && time.Now().Before(a.again) {
		return nil
	}
	return a.topics
}

// listed asks a refused question again, naming addresses only where that is what
// was refused. Some providers refuse all others, in their own words: those must
// come again and again while the narrower question is answered. One failure in
// between says nothing, and would lose what the wider question finds.
func (f *Follower) listed(ctx context.Context, q node.Query, refused error) (*piece, bool) {
	named := refusesAnywhere(refused)
	if len(q.Anywhere) == 0 || ctx.Err() != nil || !named && (q.To-q.From >= listedRange || jsonrpc.IsTransient(refused)) {
		return nil, false
	}
	known, err := query.ValidationContracts(ctx, f.db, f.chain.ID, mostKnown)
	if err != nil {
		return nil, false
	}
	narrow := q
	narrow.Anywhere, narrow.Addresses = nil, f.decoder.With(known)
	for tries := 0; ; tries++ {
		p, err := f.tryFetch(ctx, narrow)
		if err != nil {
			return nil, false
		}
		if named || tries == listedTwice {
			p.listed = true
			return p, true
		}
		node.Pause(ctx, listedPause)
		wide, err := f.tryFetch(ctx, q)
		if err == nil {
			return wide, true
		}
		if named = refusesAnywhere(err); !named && jsonrpc.IsTransient(err) {
			return nil, false
		}
	}
}

// refusesAnywhere knows the words of a provider that wants addresses named.
func refusesAnywhere(err error) bool { return strings.Contains(err.Error(), "specify an address") }

// learn takes over how a piece was answered: without the question for any address
// that question is not asked for some time.
func (f *Follower) learn(p *piece) {
	switch {
	case p.listed:
		if !f.anywhere.off {
			f.log.Warn("the endpoint answers for listed contracts only: validations of others are not indexed", "again", listedFor)
			f.pace = f.newPace() // what was refused was not the size
		}
		f.anywhere.off, f.anywhere.again = true, time.Now().Add(listedFor)
		f.anywhere.known = p.q.Addresses[len(f.decoder.Addresses):]
		f.notes.limit(repute.Warning + "validations: listed: the endpoint refuses questions for contracts of any address")
	case f.anywhere.off && len(p.q.Anywhere) > 0:
		f.log.Info("validations of any contract are indexed again")
		f.anywhere.off, f.anywhere.known = false, nil
		f.notes.limit("")
	}
}
