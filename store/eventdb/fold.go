package eventdb

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/docdb"
	"repute/store/hourdb"
	"repute/store/pgcopy"
)

// agentState holds the columns of agent_states.
type agentState struct {
	// Zero addresses mean none.
	owner, wallet, approved common.Address
	// claimed says that the owner is known from Registered only: no Transfer was seen.
	claimed bool
	// uri is the id of the interned URI.
	uri int64
}

// foldAgent is the state of one agent that a batch names, whether it exists or not.
type foldAgent struct {
	id repute.TokenID
	// exists says that the agent exists at the current record.
	exists bool
	// stored says that the agent has rows in the database from before the batch.
	stored bool
	// cached says that its state came from the cache of rows.
	cached bool
	agentState
	// registered and updated are the positions of its registration and of the newest event with an
	// effect.
	registered, updated chaindb.Point
	counts              repute.AgentCounts

	// At the end of the block before the current one.
	before  agentState
	existed bool
	// open is the index of the open history row in Delta.states, -1 when that row is stored or
	// there is none.
	open int
	// inBlock is the last block that named the agent.
	inBlock uint64

	tx txState
}

// txState is what the current transaction did to an agent.
type txState struct {
	hash         common.Hash
	last         repute.EventKind // the newest event of the agent
	uriUpdated   bool             // a URIUpdated was seen
	walletSet    bool             // the wallet was set, cleared or dropped by a transfer
	ignoreWallet bool             // the next wallet event lies: see registered
}

// pairKey identifies a client's ratings of one agent.
type pairKey struct {
	token  repute.TokenID
	client common.Address
}

// foldPair is the state of one client's ratings of one agent.
type foldPair struct {
	pairKey
	last   uint64 // newest feedback index
	live   int64
	fresh  bool // nothing of it is stored yet
	cached bool // known without a look into the database
	first  bool // the batch begins with its feedback number 1
}

// ratingKey identifies one rating.
type ratingKey struct {
	pairKey
	index uint64
}

// foldRating is the state of a rating that the batch revokes.
type foldRating struct {
	revoked bool
	row     *feedbackRow // nil when stored before the batch
	// value and decimals are what a rating that was stored before the batch says.
	value    *big.Int
	decimals uint8
}

// operatorKey identifies an ERC-721 approval for all agents of an owner.
type operatorKey struct{ owner, operator common.Address }

// foldOperator is the state of such an approval.
type foldOperator struct {
	approved bool // now
	before   bool // at the end of the block before
	open     int  // index in delta.operators, -1 when stored
	inBlock  uint64
}

// requestKey identifies a validation request.
type requestKey struct {
	contract common.Address
	hash     common.Hash
}

// foldRequest is the state of a validation request that the batch names.
type foldRequest struct {
	// known says that the request exists, and at where: a refold may meet a request that was made
	// only later.
	known bool
	at    chaindb.Point
	// answered says that it has a response.
	answered  bool
	token     repute.TokenID
	validator common.Address
}

// metadataKey identifies a metadata key of an agent; hash is the sha256 of the key.
type metadataKey struct {
	token repute.TokenID
	hash  [32]byte
}

// fold applies records to the state that they name and collects the rows to be written. Its maps
// have an entry for everything the records name; load fills them from the database.
type fold struct {
	// chain is the locked row of the chain.
	chain *chaindb.ChainRow
	// parent is the last block whose rows load reads: the transaction may have stored later ratings.
	parent uint64
	// ids are the interned strings of the records.
	ids docdb.Interned
	// quiet says that no changes for readers of the feed are collected.
	quiet bool
	// careful says that state which follows from how the registry counts is read as well: see
	// storeBatch.
	careful bool

	agents    map[repute.TokenID]*foldAgent
	pairs     map[pairKey]*foldPair
	ratings   map[ratingKey]*foldRating
	operators map[operatorKey]*foldOperator
	requests  map[requestKey]*foldRequest
	// metadata holds the index of the open row in Delta.metadata.
	metadata map[metadataKey]int
	sums     map[sumKey]*sumRow
	votes    map[voteKey]*voteRow

	// block is the block of the current record.
	block uint64
	// agentsInBlock and operatorsInBlock were named in the current block and may differ at its end.
	agentsInBlock    []*foldAgent
	operatorsInBlock []operatorKey
	// out collects the rows to be written.
	out Delta
}

// sumKey identifies a row of sums.
type sumKey struct {
	pair       *foldPair
	tag1, tag2 int64
	decimals   uint8
}

// voteKey identifies a row of votes.
type voteKey struct {
	pair *foldPair
	tag1 int64
}

// Reasons of pending events that contradict stored ones. No other event is missing, so they do not
// make the chain incomplete.
const (
	ignoredRevoked   = "already_revoked"
	ignoredDuplicate = "duplicate_request"
	ignoredMismatch  = "request_mismatch"
	ignoredRange     = "out_of_range"
)

// run applies the records, closes the last block and encodes the rows to be written.
func (f *fold) run(records []repute.Record) error {
	for i := range records {
		r := &records[i]
		if r.Log.BlockNumber != f.block {
			f.endBlock()
			f.block = r.Log.BlockNumber
		}
		if err := f.apply(r); err != nil {
			return err
		}
	}
	f.endBlock()
	f.out.takeCurrent(f)
	f.out.encode(f.chain.ID)
	return nil
}

// apply applies one record, or notes why it has no effect.
func (f *fold) apply(r *repute.Record) error {
	if err := checkAddress(f.chain, r); err != nil {
		return err
	}
	if k := r.Event.Kind(); k == repute.KindTicketConsumed || k == repute.KindTreasuryEvent {
		return nil // Delta.attribute reads the first, EncodeEvents decodes the second
	}
	at := chaindb.PointOf(&r.Log)
	a := f.agentOf(r)
	reason := f.dispatch(r, a, at)
	if a == nil {
		f.wait(nil, at, reason)
		return nil
	}
	f.wait(&a.id, at, reason)
	if reason == "" && !withoutEffect(r.Event.Kind()) {
		a.updated = at
	}
	a.tx.last = r.Event.Kind()
	return nil
}

// withoutEffect reports whether events of a kind change nothing of an agent.
func withoutEffect(k repute.EventKind) bool {
	return k == repute.KindMetadataUpdate || k == repute.KindBatchMetadataUpdate
}

// LastEffect returns the SQL of the newest event that changed something of an agent of chain $1,
// among those that meet a condition. Events without effect, which anybody can emit about any agent,
// do not make it look active.
func LastEffect(token, condition string) string {
	return fmt.Sprintf(`
		(select block, log_index from events e where chain_id = $1 and token_id = %s and %s and kind not in (%d, %d, %d)
			and not exists (select from pending p where (p.chain_id, p.block, p.log_index) = (e.chain_id, e.block, e.log_index))
			order by block desc, log_index desc limit 1) e`, token, condition, repute.KindMetadataUpdate, repute.KindBatchMetadataUpdate,
		repute.KindTicketConsumed)
}

// wait stores a reason why an event has no effect; "" stores nothing.
func (f *fold) wait(id *repute.TokenID, at chaindb.Point, reason string) {
	if reason != "" {
		f.out.Pending = append(f.out.Pending, pendingRow{id, at, reason})
	}
}

// agentOf returns the agent that a record names, nil for none, and marks it as named in the block.
func (f *fold) agentOf(r *repute.Record) *foldAgent {
	id, ok := repute.AgentOf(r.Event)
	if !ok {
		return nil
	}
	a := f.agents[id]
	if a.tx.hash != r.Log.TxHash {
		a.tx = txState{hash: r.Log.TxHash}
	}
	if a.inBlock != f.block {
		a.inBlock = f.block
		f.agentsInBlock = append(f.agentsInBlock, a)
	}
	return a
}

// dispatch applies one event. It returns why the event has no effect; "" when it had one or needs
// none.
func (f *fold) dispatch(r *repute.Record, a *foldAgent, at chaindb.Point) string {
	switch e := r.Event.(type) {
	case repute.Transfer:
		return f.transfer(e, a, at)
	case repute.Registered:
		return f.registered(e, a, at)
	case repute.URIUpdated:
		return f.uriUpdated(e, a, at)
	case repute.MetadataSet:
		return f.metadataSet(e, a, at)
	case repute.Approval:
		return f.approval(e, a, at)
	case repute.ApprovalForAll:
		f.approvalForAll(e, at)
	case repute.NewFeedback:
		return f.newFeedback(e, a, at)
	case repute.FeedbackRevoked:
		return f.feedbackRevoked(e, a, at)
	case repute.ResponseAppended:
		return f.responseAppended(e, a, at)
	case repute.ValidationRequest:
		return f.validationRequest(r.Log.Address, e, a, at)
	case repute.ValidationResponse:
		return f.validationResponse(r.Log.Address, e, a, at)
	case repute.Undecoded:
		return string(e.Reason)
	}
	return ""
}

// checkAddress refuses a registry event of a contract that is not the chain's registry. Only
// validations may come from any contract.
func checkAddress(c *chaindb.ChainRow, r *repute.Record) error {
	if r.Event == nil {
		return fmt.Errorf("log %d of block %d is not decoded", r.Log.Index, r.Log.BlockNumber)
	}
	want := c.Identity
	switch kind := r.Event.Kind(); {
	case kind >= repute.KindNewFeedback && kind <= repute.KindResponseAppended:
		want = c.Reputation
	case kind >= repute.KindValidationRequest:
		return nil
	}
	if r.Log.Address != want {
		return fmt.Errorf("log %d of block %d: %s of %s, not of registry %s: %w",
			r.Log.Index, r.Log.BlockNumber, r.Event.Kind(), r.Log.Address, want, repute.ErrConflict)
	}
	return nil
}

// Delta holds the rows that a batch adds or changes.
type Delta struct {
	// Rows of the histories that the batch opens, and the stored rows that it closes.
	states       []stateRow
	closedStates []closedState
	metadata     []metadataRow
	closedKeys   []closedKey
	operators    []operatorRow
	closedSpans  []operatorRow
	// Rows of feedback that the batch adds, and stored rows that it revokes. guessed are the rows that its prefetch
	// stored: a superset of feedback, none of them revoked, or nil when it stored none.
	feedback    []*feedbackRow
	guessed     []*feedbackRow
	revocations []revocation
	responses   []responseRow
	requests    []requestRow
	answers     []answerRow
	// Pending are the events without effect.
	Pending []pendingRow
	// Changes of the current rows; withdrawn are revoked ratings, to be taken out of sums and
	// votes.
	sums      []*sumRow
	votes     []*voteRow
	withdrawn []ratingKey  // ratings to be taken out of sums and votes
	agents    []*foldAgent // rows to be replaced
	// changes are for readers of the feed.
	changes []ChangeRow
	// hours are the events of the batch that hours count.
	hours *hourdb.Hours
	// gateways are the feedback gateways of the chain, nil when none of them wrote one of the ratings.
	gateways [][]byte

	// added are the encoded rows that are new, replaced those of agents, which replace stored ones.
	added    []*pgcopy.Buffer
	replaced *pgcopy.Buffer // the agents
}

// stateRow is a row of agent_states; to is 0 while it is open.
type stateRow struct {
	id       repute.TokenID
	from, to uint64
	agentState
}

// closedState closes the stored open row of an agent.
type closedState struct {
	id repute.TokenID
	to uint64
}

// metadataRow is a row of metadata; to is 0 while it is open.
type metadataRow struct {
	metadataKey
	key, value []byte
	at         chaindb.Point
	to         uint64
}

// closedKey closes the stored open row of a metadata key.
type closedKey struct {
	metadataKey
	to uint64
}

// operatorRow is a row of operators; to is 0 while it is open. As a closing of a stored row, from
// is not set.
type operatorRow struct {
	operatorKey
	from, to uint64
}

// feedbackRow is a row of feedback; tag1, tag2 and uri are ids of interned strings.
type feedbackRow struct {
	repute.NewFeedback
	at, revoked     chaindb.Point
	tag1, tag2, uri int64
}

// revocation marks a stored rating as revoked.
type revocation struct {
	ratingKey
	at chaindb.Point
}

// responseRow is a row of responses.
type responseRow struct {
	repute.ResponseAppended
	at  chaindb.Point
	uri int64
}

// requestRow is a row of validation_requests.
type requestRow struct {
	contract common.Address
	repute.ValidationRequest
	at  chaindb.Point
	uri int64
}

// answerRow is a row of validation_responses.
type answerRow struct {
	contract common.Address
	repute.ValidationResponse
	at       chaindb.Point
	uri, tag int64
}

// pendingRow is a row of pending.
type pendingRow struct {
	id     *repute.TokenID // nil when the event names no agent
	At     chaindb.Point
	reason string
}

// sumRow is what a batch adds to a row of sums.
type sumRow struct {
	sumKey
	n   int64
	sum *big.Int
}

// voteRow is a client's newest rating of a tag.
type voteRow struct {
	voteKey
	index    uint64
	value    *big.Int
	decimals uint8
}
