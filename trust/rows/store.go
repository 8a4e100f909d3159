package rows

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust/rating"
)

// Store has the agents and the live ratings of a chain as of a block. It is safe for concurrent use: At and Graph hold
// the lock for a whole pass, and readers try the read lock and do without the store while they cannot have it.
type Store struct {
	db    *store.DB
	chain uint64

	mu sync.RWMutex
	data
}

// data is the content of a Store.
type data struct {
	// registry is the Identity Registry of the chain. A store of another one is read again.
	registry common.Address
	at       repute.Block // the zero block when nothing is loaded
	run      uint64       // newest run when it was read
	agents   []agent      // in order of their token ids
	numbers  numbers
	// operators are those of each owner. They are of the whole chain and read anew by every pass, like answers: there
	// are few of both.
	operators map[common.Address][]common.Address
	// answers are the latest answers of the validation contracts, by agent.
	answers map[repute.TokenID][]rating.Row
	// reread counts the ratings that were read again since everything was read: as many rows of the first reading are
	// not used any more.
	reread, ratings int
	unsorted        loaded    // all ratings between load and arrange
	read            *readings // nil before Graph
}

// agent is an agent with its ratings in chain order.
type agent struct {
	token   repute.TokenID
	owner   uint32 // number in numbers
	isOwn   bool   // the owner is the verified wallet too; otherwise there is none, unless subject says so
	undated bool   // the time of some block is unknown, and may become known
	isMoved bool   // ratings has memory of its own instead of a part of a list of all
	// from is the block of the registration, or of the first known state.
	from  uint64
	began int64 // time of block from in Unix seconds, 0 when unknown
	// ratings is a part of the list of all agents' ratings unless isMoved. It is never changed in place once readers
	// may have it.
	ratings []rating.PackedRow
	// subject is set for agents that had several owners or wallets, another wallet than the owner, or an approved
	// address, or that somebody acted for. It has neither operators nor rows.
	subject *trustdb.Subject
}

// loaded are live ratings, with the index of the agent of each. Writer and Kind are numbers in numbers, and Content is
// the key of a row in uris.
type loaded struct {
	rows   []rating.PackedRow
	agents []uint32
}

// inChain orders ratings of one agent as the chain does: by block, and in a block by log index.
func inChain(a, b rating.PackedRow) int {
	if a.Block != b.Block {
		return cmp.Compare(a.Block, b.Block)
	}
	return cmp.Compare(a.Log, b.Log)
}

// New returns an empty Store of a chain. It reads nothing before the first call of At or Graph.
func New(db *store.DB, chain uint64) *Store { return &Store{db: db, chain: chain} }

// At makes the store that of a block, with the answers of these validation contracts. With anew it reads everything
// again. It is for callers that need agents and no graph. The ratings of Evidence are then not packed. A block before
// the store's own is possible, but reads everything.
func (s *Store) At(ctx context.Context, block repute.Block, validations []common.Address, anew bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moveTo(ctx, block, validations, anew)
}

// moveTo is At under the lock. arrange is called after the transaction has ended: see load. The block is set before
// readShared, which is harmless because an error empties the store.
func (s *Store) moveTo(ctx context.Context, block repute.Block, validations []common.Address, anew bool) error {
	err := trustdb.ReadSnapshot(ctx, s.db, s.chain, block.Number,
		func(ctx context.Context, from *trustdb.Snapshot) error {
			kept := false
			if !anew {
				var err error
				if kept, err = s.update(ctx, from, block); err != nil {
					return fmt.Errorf("changed agents: %w", err)
				}
			}
			if !kept {
				if err := s.load(ctx, from); err != nil {
					return fmt.Errorf("all agents: %w", err)
				}
			}
			s.at, s.run, s.read = block, from.Run, nil
			return s.readShared(ctx, from, validations)
		})
	if err != nil {
		s.data = data{}
		return err
	}
	s.arrange()
	return nil
}

// readShared reads what does not belong to one agent: operators and answers. Without validation contracts that count
// there are no answers, and none are asked for.
func (s *Store) readShared(ctx context.Context, from *trustdb.Snapshot, validations []common.Address) (err error) {
	if s.operators, err = from.Operators(ctx); err != nil {
		return fmt.Errorf("operators: %w", err)
	}
	s.answers = map[repute.TokenID][]rating.Row{}
	if len(validations) == 0 {
		return nil
	}
	return from.Answers(ctx, validations, func(token repute.TokenID, r trustdb.Row) {
		row := RowOf(r)
		row.Writer = s.numbers.addresses.Add(row.Rater) + 1
		s.answers[token] = append(s.answers[token], row)
	})
}

// find returns the agent with a token id, nil when there is none.
func (d *data) find(token repute.TokenID) *agent {
	i, found := d.search(token)
	if !found {
		return nil
	}
	return &d.agents[i]
}

// search returns the index of the first agent whose token id is at least token, and whether it has this token id.
func (d *data) search(token repute.TokenID) (at int, found bool) {
	low, high := 0, len(d.agents)
	for low < high { // slices.BinarySearchFunc would copy an agent for each comparison
		middle := int(uint(low+high) / 2)
		if d.agents[middle].token.Cmp(&token) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(d.agents) && d.agents[low].token == token
}

// subjectOf returns the agent without its ratings. The copy shares the slices of the stored subject. Holders of a plain
// agent are made of its one state, so that callers need not tell plain agents from others.
func (d *data) subjectOf(a *agent, chain uint64) trustdb.Subject {
	if a.subject != nil {
		out := *a.subject
		out.Operators = d.operators[out.Owner]
		return out
	}
	owner := d.numbers.addresses.At(a.owner)
	out := trustdb.Subject{Agent: repute.AgentID{ChainID: chain, Registry: d.registry, TokenID: a.token}, Owner: owner,
		Operators: d.operators[owner]}
	if a.isOwn {
		out.Wallet = owner
	}
	out.Holders = []trustdb.Holder{{From: a.from, Owner: owner, Wallet: out.Wallet}}
	if a.began != 0 {
		out.Holders[0].Time = time.Unix(a.began, 0).UTC()
	}
	return out
}
