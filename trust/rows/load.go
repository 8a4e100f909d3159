package rows

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rating"
)

// mostChanged is the part of all agents, and of all ratings, that is read again before everything is: a half. Beyond
// it, sorting changed agents into the list and keeping two copies of ratings costs more than a fresh pass.
const mostChanged = 2

// load reads everything. The agents have no ratings before arrange, which needs no transaction: a large chain takes
// longer to sort than the database lets a transaction wait.
//
// The counts come first and only set the capacity of slices: they are of the newest state and not of the block, so that
// they may be too large or too small. boundGarbage comes before the large allocations, or the heap could double while
// they are made. The tags' texts come last, when all of their keys are known.
func (s *Store) load(ctx context.Context, from *trustdb.Snapshot) error {
	s.data = data{registry: from.Chain().Identity, numbers: newNumbers()}
	agents, ratings, err := from.Size(ctx)
	if err != nil {
		return err
	}
	boundGarbage(ratings)
	r := reading{data: &s.data, from: from, index: make(map[string]uint32, agents)}
	s.agents = make([]agent, 0, agents)
	if err := r.readAgents(ctx, nil); err != nil {
		return err
	}
	all := loaded{make([]rating.PackedRow, 0, ratings), make([]uint32, 0, ratings)}
	if err = r.readRatings(ctx, nil, -1, &all); err != nil {
		return err
	}
	s.unsorted, s.ratings = all, len(all.rows)
	return s.numbers.readTags(ctx, from)
}

// arrange gives the agents the ratings that load read. After an update there is nothing unsorted, and each agent keeps
// its ratings.
func (s *Store) arrange() {
	s.divide(s.agents, s.unsorted)
	s.unsorted = loaded{}
}

// divide orders ratings by agent, in the memory that they are in, and gives each agent its own. It takes no second
// array: ratings are exchanged along the cycles of the permutation, and each exchange brings at least one of them to
// its agent. The slices that agents get have a capacity of their length, so that an append by accident copies instead
// of overwriting the next agent's ratings.
func (s *Store) divide(agents []agent, all loaded) {
	first := make([]uint32, len(agents)+1)
	for _, a := range all.agents {
		first[a+1]++
	}
	for a := range agents {
		first[a+1] += first[a]
	}
	next := slices.Clone(first[:len(agents)])
	for a := range agents { // each exchange brings one rating to its place
		for at := next[a]; at < first[a+1]; at = next[a] {
			of := all.agents[at]
			to := next[of]
			next[of]++
			all.rows[at], all.rows[to] = all.rows[to], all.rows[at]
			all.agents[at], all.agents[to] = all.agents[to], of
		}
	}
	flow.Parallel(len(agents), func(low, high int) {
		for i := low; i < high; i++ {
			rows := all.rows[first[i]:first[i+1]:first[i+1]]
			if len(rows) == 0 {
				continue
			}
			slices.SortFunc(rows, inChain)
			undated := slices.ContainsFunc(rows, func(r rating.PackedRow) bool { return r.Time == 0 })
			agents[i].ratings, agents[i].undated = rows, agents[i].undated || undated
		}
	})
}

// reading reads agents and ratings from one snapshot into data. It serves a pass over everything and one over changed
// agents alike; for the latter, data is a part that merge adds to the store afterwards, with the store's numbers.
type reading struct {
	*data
	from  *trustdb.Snapshot
	index map[string]uint32 // of agents in data, by their token ids in binary form
	odd   []repute.TokenID  // agents that need a subject
}

// readAgents reads agents, those of tokens or all for nil, and appends them to data in order.
//
// A plain agent is described by one state; one that ever had another owner, another wallet or an approved address is
// odd, and so is one that somebody acted for. For odd agents the whole history is read by readSubjects. The states of
// one agent follow each other, so that it is enough to keep the last one; end is called when the next agent begins, and
// after the last one.
func (r *reading) readAgents(ctx context.Context, tokens []repute.TokenID) error {
	begin := len(r.agents)
	var raw []byte
	var owner common.Address // the first one of the last agent
	isOdd := false
	end := func() {
		if isOdd {
			r.odd = append(r.odd, r.agents[len(r.agents)-1].token)
		}
		isOdd = false
	}
	err := r.from.States(ctx, tokens, func(state *trustdb.SnapshotState) error {
		if len(r.agents) == begin || string(raw) != string(state.Token) {
			end()
			raw = append(raw[:0], state.Token...)
			token, err := r.from.DecodeToken(raw)
			if err != nil {
				return fmt.Errorf("token id: %w", err)
			}
			r.index[string(raw)] = uint32(len(r.agents))
			r.agents = append(r.agents, agent{token: token, owner: r.numbers.addresses.Add(state.Owner),
				isOwn: state.Wallet == state.Owner, from: state.From, began: state.Time, undated: state.Time == 0})
			owner = state.Owner
		}
		a := &r.agents[len(r.agents)-1]
		a.undated = a.undated || state.Time == 0
		isOdd = isOdd || state.Owner != owner || state.Approved != (common.Address{}) ||
			state.Wallet != (common.Address{}) && !a.isOwn || a.isOwn && state.Wallet != owner
		return nil
	})
	if err != nil {
		return fmt.Errorf("states: %w", err)
	}
	if len(r.agents) > begin {
		end()
	}
	acted, err := r.from.Acted(ctx, tokens)
	if err != nil {
		return fmt.Errorf("actions: %w", err)
	}
	return r.readSubjects(ctx, append(r.odd, acted...))
}

// readSubjects sets the subjects of agents. Operators are left out, because they belong to the owner and may change
// without an event of the agent: subjectOf adds those that readShared read. The owner of a subject gets a number here,
// because a former state may have set the one in agent.
func (r *reading) readSubjects(ctx context.Context, tokens []repute.TokenID) error {
	slices.SortFunc(tokens, func(a, b repute.TokenID) int { return a.Cmp(&b) })
	tokens = slices.Compact(tokens)
	const most = 4096
	for part := range slices.Chunk(tokens, most) {
		list, err := r.from.Subjects(ctx, part)
		if err != nil {
			return err
		}
		for i := range list {
			if a := r.find(list[i].Agent.TokenID); a != nil {
				a.subject = &list[i]
				a.subject.Operators = nil
				r.numbers.addresses.Add(a.subject.Owner)
			}
		}
	}
	return nil
}

// readRatings appends the ratings after a block, all for -1, of agents that are in index to all. The order is that of
// the tables; divide sorts by agent and chain order.
func (r *reading) readRatings(ctx context.Context, tokens []repute.TokenID, after int64, all *loaded) error {
	err := r.from.Ratings(ctx, tokens, after, func(row *trustdb.SnapshotRating) error {
		i, known := r.index[string(row.Token)]
		if !known {
			return nil // nobody registered the agent
		}
		one, err := r.numbers.ratingOf(r.from, row)
		all.rows, all.agents = append(all.rows, one), append(all.agents, i)
		return err
	})
	if err != nil {
		err = fmt.Errorf("ratings: %w", err)
	}
	return err
}

// update reads the agents again that changed since the store's block. kept is false when everything must be read.
//
// Everything is read again when the store is empty, of a later block, or of another registry; when the database no
// longer has the store's block has got events from before it since, or learned who paid for a rating; when more than
// half of the agents changed; when so many ratings were read again that half of the first array is unused; and when the
// counts differ at the end. The last is a check against mistakes of this package: a store that differs from the
// database MUST NOT score anybody. Agents with a block of unknown time are read again each time, as the time may be
// known by now.
func (s *Store) update(ctx context.Context, from *trustdb.Snapshot, block repute.Block) (kept bool, err error) {
	if s.at.Hash == (common.Hash{}) || s.at.Number > block.Number || s.registry != from.Chain().Identity {
		return false, nil
	}
	if kept, err = from.Continues(ctx, s.at, s.run); !kept || err != nil {
		return false, err
	}
	changed, err := from.Changed(ctx, s.at.Number)
	if err != nil {
		return false, err
	}
	for i := range s.agents {
		if s.agents[i].undated {
			changed = append(changed, s.agents[i].token)
		}
	}
	if len(changed) > len(s.agents)/mostChanged {
		return false, nil
	}
	if len(changed) > 0 {
		if err := s.replace(ctx, from, changed); err != nil {
			return false, err
		}
	}
	if s.reread > s.ratings/mostChanged {
		return false, nil
	}
	return s.counts(ctx, from, block)
}

// replace reads agents again. Of those that it has it reads only the ratings since, and removes revoked ones. An agent
// is read from the beginning when it is new, when a block of it had no known time, or when a rating was revoked that
// the store does not have, which shows that the store's copy is not complete. divide is called twice, since the two
// lists of ratings have no memory in common; the first call gives the grown agents their later ratings, to which
// prepend adds the earlier ones.
func (s *Store) replace(ctx context.Context, from *trustdb.Snapshot, tokens []repute.TokenID) error {
	slices.SortFunc(tokens, func(a, b repute.TokenID) int { return a.Cmp(&b) })
	tokens = slices.Compact(tokens)
	part := data{numbers: s.numbers}
	r := reading{data: &part, from: from, index: make(map[string]uint32, len(tokens))}
	if err := r.readAgents(ctx, tokens); err != nil {
		return err
	}
	revoked, err := from.Revoked(ctx, s.at.Number)
	if err != nil {
		return fmt.Errorf("revoked ratings: %w", err)
	}
	anew, grown := []repute.TokenID{}, []repute.TokenID{}
	for _, token := range tokens {
		if was := s.find(token); was == nil || was.undated || !was.has(revoked[token]) {
			anew = append(anew, token)
		} else {
			grown = append(grown, token)
		}
	}
	var all, since loaded
	if err := r.readRatings(ctx, anew, -1, &all); err != nil {
		return err
	}
	if err := r.readRatings(ctx, grown, int64(s.at.Number), &since); err != nil {
		return err
	}
	s.numbers = part.numbers
	if err := s.numbers.readTags(ctx, from); err != nil {
		return err
	}
	s.divide(part.agents, since)
	s.prepend(part.agents, grown, revoked)
	s.divide(part.agents, all)
	s.reread += len(all.rows)
	s.merge(part.agents)
	return nil
}

// prepend adds the ratings that the store has of some agents, but for revoked ones, to their later ones. The append
// copies a part of the list of all, which has no spare capacity, and may write into the spare capacity of an array that
// an earlier call made: readers of earlier blocks do not see it, because their slices end before. For the same reason
// nobody else may append to the memory of an agent's ratings. An agent whose ratings leave the list of all for the
// first time counts in reread, because its part of the list stays allocated.
func (s *Store) prepend(agents []agent, grown []repute.TokenID, revoked map[repute.TokenID][]trustdb.LogAt) {
	part := data{agents: agents}
	for _, token := range grown {
		was, now := s.find(token), part.find(token)
		if now == nil {
			continue
		}
		gone := revoked[token]
		moves := len(now.ratings)+len(gone) > 0
		if !was.isMoved && moves {
			s.reread += len(was.ratings)
		}
		now.isMoved = was.isMoved || moves
		now.ratings = append(was.without(gone), now.ratings...)
	}
}

// has reports whether the agent has ratings at these places. An agent without the rating that was revoked was read
// before the rating was found.
func (a *agent) has(ratings []trustdb.LogAt) bool {
	for _, at := range ratings {
		if _, found := a.search(at); !found {
			return false
		}
	}
	return true
}

// search returns the index of the rating at a place in the chain. Block and log index name one event of a chain.
func (a *agent) search(at trustdb.LogAt) (i int, found bool) {
	return slices.BinarySearchFunc(a.ratings, at, func(r rating.PackedRow, at trustdb.LogAt) int {
		return cmp.Or(cmp.Compare(uint64(r.Block), at.Block), cmp.Compare(r.Log, at.LogIndex))
	})
}

// without returns the ratings of the agent but for those at some places, in memory of their own unless there are none.
func (a *agent) without(gone []trustdb.LogAt) []rating.PackedRow {
	if len(gone) == 0 {
		return a.ratings
	}
	removed := make(map[int]bool, len(gone))
	for _, at := range gone {
		if i, found := a.search(at); found {
			removed[i] = true
		}
	}
	out := make([]rating.PackedRow, 0, len(a.ratings))
	for i, r := range a.ratings {
		if !removed[i] {
			out = append(out, r)
		}
	}
	return out
}

// merge replaces agents and adds those that are new. Both lists are in order. A replaced agent keeps its place. New
// ones are moved in from the end of the list, so that every agent is moved at most once, and without a second list.
func (s *Store) merge(changed []agent) {
	added := 0
	for i := range changed {
		if known := s.find(changed[i].token); known != nil {
			*known = changed[i]
			continue
		}
		changed[added] = changed[i]
		added++
	}
	changed = changed[:added]
	old := len(s.agents)
	s.agents = append(s.agents, changed...)
	for to := len(s.agents) - 1; len(changed) > 0 && to >= 0; to-- { // from the end, as they are in one list
		last := &changed[len(changed)-1]
		if old > 0 && s.agents[old-1].token.Cmp(&last.token) > 0 {
			s.agents[to] = s.agents[old-1]
			old--
			continue
		}
		s.agents[to] = *last
		changed = changed[:len(changed)-1]
	}
}

// counts reports whether agents and ratings are as many as the database counts among agents without a later event. The
// database counts rows of the newest state, which is that of the block only for agents that no later event touched; the
// others are taken off both sides.
func (s *Store) counts(ctx context.Context, from *trustdb.Snapshot, block repute.Block) (bool, error) {
	later, err := from.Changed(ctx, block.Number)
	if err != nil {
		return false, err
	}
	agents, ratings := int64(len(s.agents)), int64(0)
	for i := range s.agents {
		ratings += int64(len(s.agents[i].ratings))
	}
	for _, token := range later {
		if a := s.find(token); a != nil {
			agents, ratings = agents-1, ratings-int64(len(a.ratings))
		}
	}
	wantAgents, wantRatings, err := from.Counts(ctx)
	return agents == wantAgents && ratings == wantRatings, err
}
