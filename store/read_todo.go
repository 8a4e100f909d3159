package store

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

func (db *DB) Chains(ctx context.Context) ([]repute.ChainStatus, error) { return nil, errTODO }
func (db *DB) ResolveAgent(ctx context.Context, ref repute.AgentRef, defaultChain uint64) (repute.AgentID, error) {
	return repute.AgentID{}, errTODO
}
func (db *DB) Agent(ctx context.Context, id repute.AgentID, at repute.At) (repute.Agent, repute.AsOf, error) {
	return repute.Agent{}, repute.AsOf{}, errTODO
}
func (db *DB) Agents(ctx context.Context, f AgentFilter) (Page[repute.Agent], error) {
	return Page[repute.Agent]{}, errTODO
}
func (db *DB) AgentsByID(ctx context.Context, ids []repute.AgentID) (map[repute.AgentID]repute.Agent, error) {
	return nil, errTODO
}
func (db *DB) Feedback(ctx context.Context, id repute.AgentID, f FeedbackFilter) (Page[repute.Feedback], error) {
	return Page[repute.Feedback]{}, errTODO
}
func (db *DB) FeedbackByAgents(ctx context.Context, ids []repute.AgentID, limit int) (map[repute.AgentID][]repute.Feedback, error) {
	return nil, errTODO
}
func (db *DB) Validations(ctx context.Context, id repute.AgentID, f ValidationFilter) (Page[repute.Validation], error) {
	return Page[repute.Validation]{}, errTODO
}
func (db *DB) ValidationsByAgents(ctx context.Context, ids []repute.AgentID, limit int) (map[repute.AgentID][]repute.Validation, error) {
	return nil, errTODO
}
func (db *DB) Summary(ctx context.Context, id repute.AgentID, clients []common.Address, tag1, tag2 string, at repute.At) (repute.Summary, repute.AsOf, error) {
	return repute.Summary{}, repute.AsOf{}, errTODO
}
func (db *DB) Tags(ctx context.Context, id repute.AgentID, at repute.At) ([]repute.TagSummary, repute.AsOf, error) {
	return nil, repute.AsOf{}, errTODO
}
func (db *DB) Reputation(ctx context.Context, id repute.AgentID, q ReputationQuery) (Reputation, error) {
	return Reputation{}, errTODO
}
func (db *DB) SummariesByAgents(ctx context.Context, ids []repute.AgentID) (map[repute.AgentID]repute.Summary, error) {
	return nil, errTODO
}
func (db *DB) DueHosts(ctx context.Context, limit int) ([]string, error) { return nil, errTODO }
func (db *DB) DueURIs(ctx context.Context, host string, limit int) ([]URI, error) {
	return nil, errTODO
}
func (db *DB) URIStats(ctx context.Context) (URIStats, error) { return URIStats{}, errTODO }

type FetchResult struct {
	URIID              int64
	Body               []byte
	MediaType, Source  string
	ETag, LastModified string
	FetchedAt          time.Time
	ParserVersion      int
	Registration       *repute.Registration
	Problems           []repute.Problem
	Reason, Detail     string
	NextDue            time.Time
}

func (db *DB) SaveDocument(ctx context.Context, r FetchResult) error { return errTODO }
