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
	// listedRange is the largest range, in blocks, of which a refusal may mean that the query
	// names no address. A refusal of a longer range first shortens the range.
	listedRange = 16
	// listedFor is how long a source is asked for listed contracts only after it refused a query
	// without addresses.
	listedFor = time.Hour
	// listedTwice is how often an unrecognized error must repeat, while the query with addresses is
	// answered, before it counts as a refusal of the query without. listedPause is the pause
	// before each repetition.
	listedTwice = 2
	listedPause = 50 * time.Millisecond
)

// unlisted decides whether validations of contracts that are not listed are asked for.
type unlisted struct {
	topics []common.Hash // empty: not wanted
	again  time.Time     // while off, they are not asked for until then
	off    bool          // the source refused a query without addresses
	// known are contracts that were found before the source refused; they are still asked for.
	known []common.Address
}

// knownMost bounds how many addresses are added to a query.
const knownMost = 100

// newUnlisted returns what is asked for in addition to the listed contracts: validation events of
// any contract, or nothing.
func newUnlisted(wanted bool) unlisted {
	if !wanted {
		return unlisted{}
	}
	return unlisted{topics: contracts.TopicsOf(repute.KindValidationRequest, repute.KindValidationResponse)}
}

// topicsNow returns the topics to ask for at any address, nil when they are not asked for.
func (a *unlisted) topicsNow() []common.Hash {
	if a.off && time.Now().Before(a.again) {
		return nil
	}
	return a.topics
}

// retryListed repeats a refused query with the addresses of known contracts only, if the refusal was
// about missing addresses. Some providers refuse such queries with an error that is not recognized:
// it must repeat while the query with addresses is answered. A single failure proves nothing, and
// would lose the validations that the query without addresses finds.
func (f *Follower) retryListed(ctx context.Context, q node.Query, refused error) (*piece, bool) {
	named := needsAddress(refused)
	if len(q.AnyAddress) == 0 || ctx.Err() != nil ||
		!named && (q.To-q.From >= listedRange || jsonrpc.IsTransient(refused)) {
		return nil, false
	}
	known, err := query.ValidationContracts(ctx, f.db, f.chain.ID, knownMost)
	if err != nil {
		return nil, false
	}
	narrow := q
	narrow.AnyAddress, narrow.Addresses = nil, f.decoder.With(known)
	for tries := 0; ; tries++ {
		p, err := f.tryFetch(ctx, narrow)
		if err != nil {
			return nil, false
		}
		if named || tries == listedTwice {
			p.listed = true
			return p, true
		}
		repute.Pause(ctx, listedPause)
		wide, err := f.tryFetch(ctx, q)
		if err == nil {
			return wide, true
		}
		if named = needsAddress(err); !named && jsonrpc.IsTransient(err) {
			return nil, false
		}
	}
}

// needsAddress reports whether an error is how a known provider refuses queries without addresses.
func needsAddress(err error) bool { return strings.Contains(err.Error(), "specify an address") }

// noteListed records how a piece was answered. After an answer for listed contracts only, unlisted ones
// are not asked for during listedFor.
func (f *Follower) noteListed(p *piece) {
	switch {
	case p.listed:
		if !f.unlisted.off {
			f.log.Warn("the endpoint answers for listed contracts only: validations of others are not indexed", "again",
				listedFor)
			f.sizer = f.newSizer() // what was refused was not the size
		}
		f.unlisted.off, f.unlisted.again = true, time.Now().Add(listedFor)
		f.unlisted.known = p.q.Addresses[len(f.decoder.Addresses):]
		f.status.set(&f.status.limited, repute.Warning+
			"validations: listed: the endpoint refuses questions for contracts of any address")
	case f.unlisted.off && len(p.q.AnyAddress) > 0:
		f.log.Info("validations of any contract are indexed again")
		f.unlisted.off, f.unlisted.known = false, nil
		f.status.set(&f.status.limited, "")
	}
}
