package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/outbound"
	"repute/orchestrator/quote"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/resolver"
)

// Report requests that the reporter measures an agent and rates it by the measurement.
type Report struct {
	Agent string `json:"agent"` // chain:id or eip155:chain:registry:id
	// Endpoint is an endpoint in the agent's registration file; empty: the first.
	Endpoint string `json:"endpoint,omitempty"`
	Requests int    `json:"requests,omitempty"` // 1 to 10; 0: 5, or 1 that is paid for
	Tag2     string `json:"tag2,omitempty"`     // qualifies the tag, such as treasury-ops
	// Pay pays for each answer where the endpoint demands it. The success rate then carries the last
	// payment as its proof.
	Pay bool `json:"pay,omitempty"`
	// Body is sent by POST; none: the endpoint is asked by GET.
	Body json.RawMessage `json:"body,omitempty"`
}

// request is one request of the measurement.
func (r *Report) request(endpoint string) outbound.HTTPRequest {
	q := outbound.HTTPRequest{URL: endpoint, Header: map[string][]string{"Accept": {"application/json, */*;q=0.5"}}}
	if len(r.Body) > 0 {
		q.Method, q.Body = http.MethodPost, r.Body
		q.Header["Content-Type"] = []string{"application/json"}
	}
	return q
}

// times is how many requests are asked for.
func (r *Report) times() int {
	switch {
	case r.Requests > 0:
		return r.Requests
	case r.Pay:
		return 1
	}
	return defaultRequests
}

// Reported describes the measurement and the posted ratings.
type Reported struct {
	Agent    string    `json:"agent"`
	Client   string    `json:"client"` // whose ratings they are
	Endpoint string    `json:"endpoint"`
	Requests []Request `json:"requests"`
	Ratings  []Rating  `json:"ratings"`
	// Payment is the last payment, Answer what was answered for it, at most 64 KiB of text. Nil and
	// empty where nothing was paid.
	Payment *outbound.Payment `json:"payment,omitempty"`
	Answer  string            `json:"answer,omitempty"`
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
		does:         "Calls an endpoint of an agent, paying for its answers if asked to, measures success and response time, and posts both as feedback with a file and its hash.",
		capabilities: []string{"measurement", "feedback"}, categories: []string{"report"}, calls: 50, writes: 2}
}

// reporter is the craft of the reporter.
type reporter struct {
	self   Self
	chains places
}

const (
	defaultRequests = 5
	maxRequests     = 10
	maxBody         = 64 << 10 // bytes of a request
	maxShown        = 64 << 10 // bytes of an answer that the result has
)

// Accept refuses to measure the reporter itself, and more requests than a run may make.
func (r *reporter) Accept(o order[Report]) error {
	id, _, err := r.chains.agent("input.agent", o.In.Agent)
	switch {
	case err != nil:
		return err
	case r.self.owns(id):
		return repute.Invalid("input.agent", "is the reporter itself", "another agent")
	case o.In.Requests < 0 || o.In.Requests > maxRequests:
		return repute.Invalid("input.requests", fmt.Sprintf("is %d", o.In.Requests),
			fmt.Sprintf("1 to %d", maxRequests))
	case len(o.In.Body) > maxBody:
		return repute.Invalid("input.body", "is too large", fmt.Sprintf("at most %d bytes of JSON", maxBody))
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
		return "", repute.Invalid("input.agent", "names no endpoint over HTTP in its registration file",
			"another agent")
	}
	return list[0], nil
}

// measurement is what came of the requests.
type measurement struct {
	requests []Request
	at       time.Time         // of the last request
	payment  *outbound.Payment // the last one
	answer   string            // that was paid for by it
}

// measure calls an endpoint, and pays for its answers if pay is set. That no payment is made, because
// the policy or a cap forbids it, says nothing about the agent: it is an error.
func measure(ctx context.Context, w World, q outbound.HTTPRequest, times int, pay bool) (m measurement, err error) {
	for range times {
		var answer outbound.PaidResponse
		if pay {
			answer, err = w.Pay(ctx, outbound.PaidRequest{HTTPRequest: q})
		} else {
			answer.HTTPResponse, err = w.HTTP(ctx, q)
		}
		switch {
		case err != nil && (pay || ends(ctx, err)):
			return m, err
		case err != nil:
			m.requests = append(m.requests, Request{Error: "no answer"})
			continue
		}
		m.requests = append(m.requests, Request{Status: answer.Status, MS: answer.ElapsedMS})
		m.at = answer.At
		if answer.Payment != nil {
			m.payment, m.answer = answer.Payment, shownText(answer.Body)
		}
	}
	return m, nil
}

// shownText is an answer as the result has it: text alone, which can be stored.
func shownText(body []byte) string {
	text := strings.ToValidUTF8(string(body[:min(len(body), maxShown)]), "")
	return strings.ReplaceAll(text, "\x00", "")
}

// ratings follow from a measurement: the share of answers, and their median time where there were any. requests
// MUST NOT be empty. verify computes them again from the files, so that they depend on nothing else.
func ratings(requests []Request, tag2 string) []Rating {
	var times []int64
	for _, r := range requests {
		if r.ok() {
			times = append(times, r.MS)
		}
	}
	out := []Rating{{Tag1: tagSuccess, Tag2: tag2, Value: int64(10_000 * len(times) / len(requests)), Decimals: 2}}
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
	// Proof is the payment that the rating follows from; a payment proves one rating.
	Proof *paymentProof `json:"proofOfPayment,omitempty"`
}

// paymentProof is the standard's proofOfPayment.
type paymentProof struct {
	From    string `json:"fromAddress"`
	To      string `json:"toAddress"`
	ChainID string `json:"chainId"`
	TxHash  string `json:"txHash"`
}

// proofOf is the proof of a payment; nil of none, and of one without a transaction.
func proofOf(p *outbound.Payment) *paymentProof {
	if p == nil || p.Transaction == "" {
		return nil
	}
	return &paymentProof{From: p.From, To: p.To, ChainID: strings.TrimPrefix(p.Network, "eip155:"),
		TxHash: p.Transaction}
}

// file writes the file of a rating. Nothing in it differs when it is written again.
func (r *reporter) file(id repute.AgentID, endpoint string, at time.Time, requests []Request, of Rating) feedbackFile {
	return feedbackFile{AgentRegistry: fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry),
		AgentID:       json.RawMessage(id.TokenID.Dec()),
		ClientAddress: fmt.Sprintf("eip155:%d:%s", id.ChainID, r.self.Wallet), CreatedAt: stamp(at), Value: of.Value,
		Decimals: of.Decimals,
		Tag1:     of.Tag1, Tag2: of.Tag2, Endpoint: endpoint, Measurement: requests}
}

// prepare measures the agent and returns the transactions of the ratings. Nothing is paid with dry set:
// then a demanded payment counts as an answer, because the paid request will get one.
func (r *reporter) prepare(ctx context.Context, w World, o order[Report], times int, dry bool) (done Reported, c Chain,
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
	m, err := measure(ctx, w, o.In.request(done.Endpoint), times, o.In.Pay && !dry)
	if err != nil {
		return done, c, nil, err
	}
	for i := range m.requests {
		if dry && o.In.Pay && m.requests[i].Status == http.StatusPaymentRequired {
			m.requests[i].Status = http.StatusOK
		}
	}
	if !m.at.IsZero() {
		at = m.at
	}
	done.Requests, done.Ratings, done.Payment, done.Answer = m.requests, ratings(m.requests,
		o.In.Tag2), m.payment, m.answer
	for i := range done.Ratings {
		f := &done.Ratings[i]
		file := r.file(id, done.Endpoint, at, m.requests, *f)
		if f.Tag1 == tagSuccess {
			file.Proof = proofOf(m.payment)
		}
		if f.URI, f.Hash, err = publish(file); err != nil {
			return done, c, nil, err
		}
		data := reputations.PackGiveFeedback(id.TokenID.ToBig(), big.NewInt(f.Value), f.Decimals, f.Tag1, f.Tag2,
			done.Endpoint, f.URI, f.Hash)
		txs = append(txs, transaction.Tx{Key: f.Tag1, ChainID: c.ID, Target: c.Reputation, Data: data,
			Purpose: fmt.Sprintf("%s of agent %s", f.Tag1, id.Short())})
	}
	return done, c, txs, nil
}

// DryRun measures with one request, and declares the ratings that it would post. Both ratings are declared only
// where the endpoint answers now: a rating that was not declared would be refused.
func (r *reporter) DryRun(ctx context.Context, w World, o order[Report]) (d standard.DryRun, err error) {
	done, _, txs, err := r.prepare(ctx, w, o, 1, true)
	if err != nil {
		return d, err
	}
	for i := range txs {
		txs[i].Placeholders = measured()
	}
	d.Calls = txs
	d.Warnings = []string{"values are of one request; those that are posted are of the whole measurement"}
	if o.In.Pay {
		d.Payments = []quote.Planned{{HTTPRequest: o.In.request(done.Endpoint), Times: o.In.times()}}
		d.Warnings = append(d.Warnings, fmt.Sprintf("up to %d answers are paid for, within the payments of the policy",
			o.In.times()))
	}
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

// Do measures the endpoint, and posts success rate and response time as two ratings.
func (r *reporter) Do(ctx context.Context, w World, o order[Report]) (Reported, error) {
	done, c, txs, err := r.prepare(ctx, w, o, o.In.times(), false)
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

// Verify reads the ratings from the registry, and computes them again from the measurements in
// their files.
func (r *reporter) Verify(ctx context.Context, w World, o order[Report], done Reported) (out []standard.Check,
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
		onChain := Rating{Tag1: stored.Tag1, Tag2: stored.Tag2, Value: stored.Value.Int64(),
			Decimals: stored.ValueDecimals}
		out = append(out, check(f.Tag1+" on the chain", onChain, want[i]),
			check(f.Tag1+" counts", stored.IsRevoked, false),
			fileIs(f, done))
	}
	return out, nil
}

// fileIs checks that the file of a rating has its hash and contains the measurement, and that only the
// file of the success rate claims the payment.
func fileIs(f Rating, done Reported) standard.Check {
	c := standard.Check{Name: f.Tag1 + " file"}
	body, err := resolver.Inline(f.URI, maxFile)
	var file feedbackFile
	switch {
	case err != nil:
		c.Details = err.Error()
	case crypto.Keccak256Hash(body) != f.Hash:
		c.Details = "is not the one of the hash"
	case json.Unmarshal(body, &file) != nil || file.Value != f.Value || file.Tag1 != f.Tag1 ||
		!slices.Equal(file.Measurement, done.Requests):
		c.Details = "says something else than was measured"
	case f.Tag1 == tagSuccess && !same(file.Proof, proofOf(done.Payment)) || f.Tag1 != tagSuccess && file.Proof != nil:
		c.Details = "claims another payment than was made"
	default:
		c.Passed = true
	}
	return c
}

// tagSuccess is the first tag of the rating that carries the proof of payment.
const tagSuccess = "successRate"

// same reports whether two proofs are equal or both missing.
func same(a, b *paymentProof) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// Summary describes the measurement and the ratings.
func (r *reporter) Summary(_ order[Report], done Reported) (s standard.Summary) {
	answered := 0
	for _, q := range done.Requests {
		if q.ok() {
			answered++
		}
	}
	s.Text = fmt.Sprintf("%s answered %d of %d requests; agent %s is rated by that.", done.Endpoint, answered,
		len(done.Requests), done.Agent)
	if p := done.Payment; p != nil {
		s.KeyActions = append(s.KeyActions, fmt.Sprintf("paid %s dollars for an answer", p.Dollars))
	}
	for _, f := range done.Ratings {
		s.KeyActions = append(s.KeyActions, fmt.Sprintf("posted %s %d (%d decimals) as feedback %d", f.Tag1, f.Value,
			f.Decimals, f.Index))
		s.Receipts = append(s.Receipts, f.Tx.Hex())
	}
	return s
}
