package treasury

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/operate"
	"repute/store"
	"repute/store/walletdb"
)

// TreasuryEvent is an event that a treasury emitted.
type TreasuryEvent struct {
	ChainID     uint64      `json:"chainId"`
	Treasury    string      `json:"treasury"`
	Kind        string      `json:"event" doc:"NativeExecuted, ERC20Transferred, PolicySet, Paused and the like; Unreadable when it is none of the treasury's"`
	Transaction string      `json:"transaction"`
	Block       uint64      `json:"block"`
	BlockHash   string      `json:"blockHash"`
	BlockTime   *time.Time  `json:"blockTime,omitempty"`
	LogIndex    uint32      `json:"logIndex"`
	Finality    string      `json:"finality" enum:"latest,finalized" doc:"latest: it may still be replaced"`
	AgentKey    string      `json:"agentKey,omitempty" doc:"keccak256 of the slug"`
	RunKey      string      `json:"runKey,omitempty" doc:"keccak256 of the run's or act's id"`
	TaskKey     string      `json:"taskKey,omitempty"`
	Fields      rest.Object `json:"fields" doc:"as the event has them: amounts decimal, purpose as whoever asked wrote it"`
}

// Encode converts an event of the treasury into the form of the API.
func Encode(e *walletdb.TreasuryEvent) TreasuryEvent {
	w := TreasuryEvent{ChainID: e.ChainID, Treasury: e.Treasury.Hex(), Kind: e.Kind, Transaction: e.Tx.Hex(),
		Block: e.Block.Number, BlockHash: e.Block.Hash.Hex(),
		BlockTime: rest.OptionalTime(e.Block.Time), LogIndex: e.LogIndex, Finality: string(repute.Latest),
		Fields: rest.ObjectOf(e.Fields)}
	if e.Final {
		w.Finality = string(repute.Finalized)
	}
	w.AgentKey, w.RunKey, w.TaskKey = keyHex(e.Agent), keyHex(e.Run), keyHex(e.Task)
	return w
}

// keyHex returns the hex text of a key, empty for the zero key.
func keyHex(key common.Hash) string {
	if (key == common.Hash{}) {
		return ""
	}
	return key.Hex()
}

// EventsOf returns the treasury's events of a run or an operator action, by its id. The contract knows only the
// id's hash. They are few, as a run is bounded.
func EventsOf(ctx context.Context, db *store.DB, id string) ([]TreasuryEvent, error) {
	list, err := walletdb.TreasuryEventsOfRun(ctx, db, crypto.Keccak256Hash([]byte(id)))
	out := make([]TreasuryEvent, 0, len(list))
	for i := range list {
		out = append(out, Encode(&list[i]))
	}
	return out, err
}

// TreasuryEventList is a page of a treasury's events.
type TreasuryEventList struct {
	Events []TreasuryEvent `json:"events"`
	Next   string          `json:"nextCursor,omitempty"`
}

// treasuryEventsInput selects the events of one agent, or of all.
type treasuryEventsInput struct {
	Agent string `query:"agent" doc:"slug"`
	rest.PageInput
}

// treasuryEvents serves GET /v1/treasury/events: of the treasury that is configured, also where events of an
// earlier one are stored.
func (s *Service) treasuryEvents(ctx context.Context,
	in *treasuryEventsInput) (*rest.Answer[TreasuryEventList], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	chain, at, err := o.Treasury()
	if err != nil {
		return nil, err
	}
	size, err := in.Size()
	if err != nil {
		return nil, err
	}
	block, index, err := eventPlace(in.Cursor)
	if err != nil {
		return nil, err
	}
	if err := rest.Known("agent", in.Agent); err != nil {
		return nil, err
	}
	var agent common.Hash
	if in.Agent != "" {
		agent = crypto.Keccak256Hash([]byte(in.Agent))
	}
	list, err := walletdb.TreasuryEvents(ctx, s.db, chain, at, agent, block, index, size+1)
	if err != nil {
		return nil, err
	}
	out := TreasuryEventList{Events: []TreasuryEvent{}}
	if len(list) > size {
		list = list[:size]
		out.Next = fmt.Sprintf("%d-%d", list[size-1].Block.Number, list[size-1].LogIndex)
	}
	for i := range list {
		out.Events = append(out.Events, Encode(&list[i]))
	}
	return rest.Say(&out), nil
}

// eventPlace reads a cursor; the newest place when it is empty. The cursor is the place of an event in the chain,
// and not bound to its list as other cursors are: a place has the same meaning with every filter, and no order but
// one.
func eventPlace(text string) (block uint64, index uint32, err error) {
	if text == "" {
		return math.MaxInt64, 0, nil
	}
	first, second, found := strings.Cut(text, "-")
	block, err1 := strconv.ParseUint(first, 10, 62)
	n, err2 := strconv.ParseUint(second, 10, 31)
	if !found || err1 != nil || err2 != nil {
		return 0, 0, repute.Invalid("cursor", "is none of ours", "nextCursor of the page before")
	}
	return block, uint32(n), nil
}

// TreasuryNow is the treasury's status and the state of its index.
type TreasuryNow struct {
	operate.TreasuryStatus
	Index *TreasuryIndex `json:"index,omitempty" doc:"absent before its events are followed"`
}

// TreasuryIndex describes the indexed events of a treasury.
type TreasuryIndex struct {
	From      uint64 `json:"fromBlock"`
	To        uint64 `json:"toBlock"`
	Finalized uint64 `json:"finalizedBlock"`
	Reorgs    int64  `json:"reorgs"`
	Missing   int64  `json:"missing" doc:"confirmed transactions of this service of which no event is stored"`
	// Compared is absent if NotCompared gives a reason.
	Compared    *operate.TreasuryCompared `json:"compared,omitempty" doc:"the treasury's own books against its indexed events"`
	NotCompared string                    `json:"notCompared,omitempty" doc:"why they could not be compared now"`
}

// treasuryStatus serves GET /v1/treasury/status, with the state of the index. The comparison of the books is part
// of it, as it shows events that an endpoint held back; that it cannot be made at the moment is no error of the
// status.
func (s *Service) treasuryStatus(ctx context.Context, _ *struct{}) (*rest.Answer[TreasuryNow], error) {
	o, err := s.operator()
	if err != nil {
		return nil, err
	}
	status, err := o.TreasuryStatus(ctx)
	if err != nil {
		return nil, err
	}
	out := TreasuryNow{TreasuryStatus: status}
	t, err := walletdb.ReadTreasury(ctx, s.db, status.ChainID, common.HexToAddress(status.Address))
	if errors.Is(err, repute.ErrNotFound) {
		return rest.Say(&out), nil
	}
	if err != nil {
		return nil, err
	}
	missing, err := walletdb.TreasuryMissing(ctx, s.db, t)
	out.Index = &TreasuryIndex{From: t.Start, To: t.Cursor.Number, Finalized: t.Finalized, Reorgs: t.Reorgs,
		Missing: missing}
	if err != nil {
		return nil, err
	}
	compared, err := o.CompareTreasury(ctx, t)
	switch {
	case err == nil:
		out.Index.Compared = &compared
	case ctx.Err() == nil && errors.Is(err, repute.ErrUnavailable): // whose text names endpoints
		out.Index.NotCompared = fmt.Sprintf("the treasury could not be read at block %d, its blocks were replaced meanwhile, or its windows hold too many payments", t.Cursor.Number)
	default:
		return nil, err
	}
	return rest.Say(&out), nil
}
