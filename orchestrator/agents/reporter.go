package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/resolver"
)

// Report requests that the reporter measures an agent and rates it by the measurement.
type Report struct {
	Agent string `json:"agent"` // chain:id or eip155:chain:registry:id
	// Endpoint is an endpoint in the agent's registration file; empty: the first.
	Endpoint string `json:"endpoint,omitempty"`
	Requests int    `json:"requests,omitempty"` // 1 to 10; 0: 5
	Tag2     string `json:"tag2,omitempty"`     // qualifies the tag, such as treasury-ops
}

// Reported describes the measurement and the posted ratings.
type Reported struct {
	Agent    string    `json:"agent"`
	Client   string    `json:"client"` // whose ratings they are
	Endpoint string    `json:"endpoint"`
	Requests []Request `json:"requests"`
	Ratings  []Rating  `json:"ratings"`
}

// Request is one request of a measurement.
type Request struct {
	Status int    `json:"status,omitempty"`
	MS     int64  `json:"ms"`
	Error  string `json:"error,omitempty"`
}

// ok reports whether the request succeeded with a 2xx status.
func (r Request) ok() bool { return r.Error == "" && r.Status >= 200 && r.Status < 300 }

// Rating is a posted rating.
type Rating struct {
	Tag1     string      `json:"tag1"`
	Tag2     string      `json:"tag2"`
	Value    int64       `json:"value"`
	Decimals uint8       `json:"valueDecimals"`
	Index    uint64      `json:"feedbackIndex"`
	URI      string      `json:"feedbackURI"`
	Hash     common.Hash `json:"feedbackHash"`
	Tx       common.Hash `json:"tx"`
}

// reporterSheet returns the reporter's part of its manifest.
func reporterSheet() sheet {
	return sheet{name: "Reporter",
		does:         "Calls an endpoint of an agent, measures success and response time, and posts both as feedback with a file and its hash.",
		capabilities: []string{"measurement", "feedback"}, categories: []string{"report"}, calls: 50, writes: 2}
}

type reporter struct {
	self   Self
	chains places
}

const (
	defaultRequests = 5
	maxRequests     = 10
)

// accept refuses to measure the reporter itself, and more requests than a run may make.
func (r *reporter) accept(o order[Report]) error {
	id, _, err := r.chains.agent("input.agent", o.In.Agent)
	switch {
	case err != nil:
		return err
	case r.self.owns(id):
		return repute.Invalid("input.agent", "is the reporter itself", "another agent")
	case o.In.Requests < 0 || o.In.Requests > maxRequests:
		return repute.Invalid("input.requests", fmt.Sprintf("is %d", o.In.Requests), fmt.Sprintf("1 to %d", maxRequests))
	case len(o.In.Tag2) > 64:
		return repute.Invalid("input.tag2", "is longer than 64 bytes", "a word")
	}
	return nil
}

// endpoint returns the endpoint to measure. It MUST be in the agent's file, because other endpoints
// say nothing about the agent.
func (r *reporter) endpoint(ctx context.Context, w World, c Chain, id repute.AgentID, want string) (string, error) {
	list, err := services(ctx, w, c, id)
	switch {
	case err != nil:
		return "", err
	case want != "" && !slices.Contains(list, want):
		return "", repute.Invalid("input.endpoint", "is none that the agent's registration file names",
			fmt.Sprintf("one of %.500q", list))
	case want != "":
		return want, nil
	case len(list) == 0:
		return "", repute.Invalid("input.agent", "names no endpoint over HTTP in its registration file", "another agent")
	}
	return list[0], nil
}

// measure calls an endpoint. at is the time of the last request.
func measure(ctx context.Context, w World, endpoint string, times int) (out []Request, at time.Time, err error) {
	for range times {
		answer, err := w.HTTP(ctx,
			outbound.HTTPRequest{URL: endpoint, Header: map[string][]string{"Accept": {"application/json, */*;q=0.5"}}})
		switch {
		case err != nil && ends(ctx, err):
			return nil, at, err
		case err != nil:
			out = append(out, Request{Error: "no answer"})
		default:
			out, at = append(out, Request{Status: answer.Status, MS: answer.ElapsedMS}), answer.At
		}
	}
	return out, at, nil
}

// ratings follow from a measurement: the share of answers, and their median time where
// there were any.
func ratings(requests []Request, tag2 string) []Rating {
	var times []int64
	for _, r := range requests {
		if r.ok() {
			times = append(times, r.MS)
		}
	}
	out := []Rating{{Tag1: "successRate", Tag2: tag2, Value: int64(10_000 * len(times) / len(requests)), Decimals: 2}}
	if len(times) > 0 {
		slices.Sort(times)
		out = append(out, Rating{Tag1: "responseTime", Tag2: tag2, Value: times[len(times)/2]})
	}
	return out
}

// feedbackFile is the file of a rating.
type feedbackFile struct {
	AgentRegistry string          `json:"agentRegistry"`
	AgentID       json.RawMessage `json:"agentId"`
	ClientAddress string          `json:"clientAddress"`
	CreatedAt     string          `json:"createdAt"`
	Value         int64           `json:"value"`
	Decimals      uint8           `json:"valueDecimals"`
	Tag1          string          `json:"tag1"`
	Tag2          string          `json:"tag2,omitempty"`
	Endpoint      string          `json:"endpoint"`
	Measurement   []Request       `json:"measurement"`
}

// file writes the file of a rating. Nothing in it differs when it is written again.
func (r *reporter) file(id repute.AgentID, endpoint string, at time.Time, requests []Request, of Rating) feedbackFile {
	return feedbackFile{AgentRegistry: fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry),
		AgentID:       json.RawMessage(id.TokenID.Dec()),
		ClientAddress: fmt.Sprintf("eip155:%d:%s", id.ChainID, r.self.Wallet), CreatedAt: stamp(at), Value: of.Value,
		Decimals: of.Decimals,
		Tag1:     of.Tag1, Tag2: of.Tag2, Endpoint: endpoint, Measurement: requests}
}

// prepare measures the agent and returns the transactions of the ratings.
func (r *reporter) prepare(ctx context.Context, w World, o order[Report], times int) (done Reported, c Chain,
	txs []transaction.Tx, err error) {
	id, c, err := r.chains.agent("input.agent", o.In.Agent)
	if err != nil {
		return done, c, nil, err
	}
	done = Reported{Agent: id.String(), Client: r.self.Wallet.Hex()}
	if done.Endpoint, err = r.endpoint(ctx, w, c, id, o.In.Endpoint); err != nil {
		return done, c, nil, err
	}
	at := o.Task.Created
	requests, last, err := measure(ctx, w, done.Endpoint, times)
	if err != nil {
		return done, c, nil, err
	}
	if !last.IsZero() {
		at = last
	}
	done.Requests, done.Ratings = requests, ratings(requests, o.In.Tag2)
	for i := range done.Ratings {
		f := &done.Ratings[i]
		if f.URI, f.Hash, err = publish(r.file(id, done.Endpoint, at, requests, *f)); err != nil {
			return done, c, nil, err
		}
		data := reputations.PackGiveFeedback(id.TokenID.ToBig(), big.NewInt(f.Value), f.Decimals, f.Tag1, f.Tag2,
			done.Endpoint, f.URI, f.Hash)
		txs = append(txs, transaction.Tx{Key: f.Tag1, ChainID: c.ID, Target: c.Reputation, Data: data,
			Purpose: fmt.Sprintf("%s of agent %s", f.Tag1, id.Short())})
	}
	return done, c, txs, nil
}

// dryRun measures with one request, and declares the ratings that it would post.
func (r *reporter) dryRun(ctx context.Context, w World, o order[Report]) (d standard.DryRun, err error) {
	done, _, txs, err := r.prepare(ctx, w, o, 1)
	if err != nil {
		return d, err
	}
	for i := range txs {
		txs[i].Placeholders = measured()
	}
	d.Calls = txs
	d.Warnings = []string{"values are of one request; those that are posted are of the whole measurement"}
	if len(done.Ratings) == 1 { // it may answer by then
		d.Warnings = append(d.Warnings, "the endpoint does not answer now")
	}
	return d, nil
}

// measured returns the arguments of giveFeedback that depend on the measurement: the value, and the
// file with its hash.
func measured() []transaction.Placeholder {
	return []transaction.Placeholder{
		{Path: "1", Type: "int128", Min: "0", Max: fmt.Sprint(max(10_000, longestAnswer.Milliseconds()))},
		{Path: "6", Type: "string", MaxLength: maxFile / 4},
		{Path: "7", Type: "bytes32"}}
}

// longestAnswer exceeds every timeout of a request.
const longestAnswer = time.Hour

// do measures the endpoint, and posts success rate and response time as two ratings.
func (r *reporter) do(ctx context.Context, w World, o order[Report]) (Reported, error) {
	times := o.In.Requests
	if times == 0 {
		times = defaultRequests
	}
	done, c, txs, err := r.prepare(ctx, w, o, times)
	if err != nil {
		return done, err
	}
	for i, tx := range txs {
		sent, err := w.Send(ctx, tx)
		if err != nil {
			return done, err
		}
		event, err := logOf(sent, c.Reputation, reputations.UnpackNewFeedbackEvent)
		if err != nil {
			return done, err
		}
		done.Ratings[i].Index, done.Ratings[i].Tx, done.Client = event.FeedbackIndex, sent.Hash, event.ClientAddress.Hex()
	}
	return done, nil
}

// verify reads the ratings from the registry, and computes them again from the measurements in
// their files.
func (r *reporter) verify(ctx context.Context, w World, o order[Report], done Reported) (out []standard.Check,
	err error) {
	id, c, err := r.chains.agent("input.agent", o.In.Agent)
	if err != nil {
		return nil, err
	}
	out = append(out, check("agent", done.Agent, id.String()))
	want := ratings(append(done.Requests, Request{Error: "none"})[:max(len(done.Requests), 1)], o.In.Tag2)
	out = append(out, check("ratings", len(done.Ratings), len(want)))
	for i, f := range done.Ratings[:min(len(done.Ratings), len(want))] {
		stored, err := view(ctx, w, c.ID, c.Reputation,
			reputations.PackReadFeedback(id.TokenID.ToBig(), common.HexToAddress(done.Client), f.Index),
			reputations.UnpackReadFeedback)
		if err != nil {
			out = append(out, standard.Check{Name: f.Tag1 + " on the chain", Details: err.Error()})
			continue
		}
		onChain := Rating{Tag1: stored.Tag1, Tag2: stored.Tag2, Value: stored.Value.Int64(), Decimals: stored.ValueDecimals}
		out = append(out, check(f.Tag1+" on the chain", onChain, want[i]), check(f.Tag1+" counts", stored.IsRevoked, false),
			fileIs(f, done.Requests))
	}
	return out, nil
}

// fileIs checks that the file of a rating has its hash and contains the measurement.
func fileIs(f Rating, requests []Request) standard.Check {
	c := standard.Check{Name: f.Tag1 + " file"}
	body, err := resolver.Inline(f.URI, maxFile)
	var file feedbackFile
	switch {
	case err != nil:
		c.Details = err.Error()
	case crypto.Keccak256Hash(body) != f.Hash:
		c.Details = "is not the one of the hash"
	case json.Unmarshal(body, &file) != nil || file.Value != f.Value || file.Tag1 != f.Tag1 ||
		!slices.Equal(file.Measurement, requests):
		c.Details = "says something else than was measured"
	default:
		c.Passed = true
	}
	return c
}

// summary describes the measurement and the ratings.
func (r *reporter) summary(_ order[Report], done Reported) (s standard.Summary) {
	answered := 0
	for _, q := range done.Requests {
		if q.ok() {
			answered++
		}
	}
	s.Text = fmt.Sprintf("%s answered %d of %d requests; agent %s is rated by that.", done.Endpoint, answered,
		len(done.Requests), done.Agent)
	for _, f := range done.Ratings {
		s.KeyActions = append(s.KeyActions, fmt.Sprintf("posted %s %d (%d decimals) as feedback %d", f.Tag1, f.Value,
			f.Decimals, f.Index))
		s.Receipts = append(s.Receipts, f.Tx.Hex())
	}
	return s
}
