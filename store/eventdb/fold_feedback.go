package eventdb

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/docdb"
	"repute/store/hourdb"
)

// newFeedback adds a rating. The indexes of a client's ratings of an agent count from 1, so a
// missing one means that a log is missing.
func (f *fold) newFeedback(e repute.NewFeedback, a *foldAgent, at chaindb.Point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	switch {
	case !a.exists:
		return chaindb.WaitsForAgent
	case e.Index != p.last+1:
		return chaindb.WaitsForIndex
	case e.Decimals > repute.MaxDecimals:
		return ignoredRange
	}
	row := newFeedbackRow(e, at, f.ids)
	f.out.feedback = append(f.out.feedback, row)
	if f.chain.Gateways[e.Client] && f.out.gateways == nil {
		f.out.gateways = f.chain.GatewayBytes()
	}
	if rating := f.ratings[ratingKey{p.pairKey, e.Index}]; rating != nil {
		rating.row = row
	}
	p.last = e.Index
	if p.live++; p.live == 1 {
		a.counts.Clients++
	}
	a.counts.Feedback++
	f.addUp(p, row)
	f.count(at, hourdb.Event{Series: hourdb.Ratings, Token: a.id, Value: e.Value, Decimals: e.Decimals})
	if !f.quiet {
		f.change(changedata.KindFeedback, at, &a.id, feedbackDataOf(&row.NewFeedback))
	}
	return ""
}

// newFeedbackRow returns the row of a rating whose strings are interned.
func newFeedbackRow(e repute.NewFeedback, at chaindb.Point, ids docdb.Interned) *feedbackRow {
	return &feedbackRow{NewFeedback: e, at: at, tag1: ids.Tags[e.Tag1], tag2: ids.Tags[e.Tag2], uri: ids.URIs[e.URI]}
}

// addUp adds a rating to the sums and the vote of its client.
func (f *fold) addUp(p *foldPair, row *feedbackRow) {
	key := sumKey{p, row.tag1, row.tag2, row.Decimals}
	s := f.sums[key]
	if s == nil {
		s = &sumRow{sumKey: key, sum: new(big.Int)}
		f.sums[key] = s
		f.out.sums = append(f.out.sums, s)
	}
	s.n++
	s.sum.Add(s.sum, row.Value)

	v := f.votes[voteKey{p, row.tag1}]
	if v == nil {
		v = &voteRow{voteKey: voteKey{p, row.tag1}}
		f.votes[v.voteKey] = v
		f.out.votes = append(f.out.votes, v)
	}
	v.index, v.value, v.decimals = row.Index, row.Value, row.Decimals
}

// feedbackRevoked revokes a rating and takes it out of sums and votes. Revoking it twice has no
// effect.
func (f *fold) feedbackRevoked(e repute.FeedbackRevoked, a *foldAgent, at chaindb.Point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	key := ratingKey{p.pairKey, e.Index}
	rating := f.ratings[key]
	switch {
	case !a.exists:
		return chaindb.WaitsForAgent
	case e.Index == 0 || e.Index > p.last:
		return chaindb.WaitsForFeedback
	case rating.revoked:
		return ignoredRevoked
	}
	rating.revoked = true
	revoked := hourdb.Event{Series: hourdb.Ratings, Token: a.id, Ended: true, Value: rating.value,
		Decimals: rating.decimals}
	if rating.row != nil {
		revoked.Value, revoked.Decimals = rating.row.Value, rating.row.Decimals
	}
	if rating.row != nil && f.out.guessed == nil {
		rating.row.revoked = at
	} else {
		f.out.revocations = append(f.out.revocations, revocation{key, at})
	}
	f.out.withdrawn = append(f.out.withdrawn, key)
	f.count(at, revoked)
	if p.live--; p.live == 0 {
		a.counts.Clients--
	}
	a.counts.Feedback--
	a.counts.Revoked++
	f.change(changedata.KindRevoked, at, &a.id, revokedData{Client: changedata.Eip55(e.Client), Index: e.Index})
	return ""
}

// responseAppended adds a response to a rating, which must exist.
func (f *fold) responseAppended(e repute.ResponseAppended, a *foldAgent, at chaindb.Point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	switch {
	case !a.exists:
		return chaindb.WaitsForAgent
	case e.Index == 0 || e.Index > p.last:
		return chaindb.WaitsForFeedback
	}
	f.out.responses = append(f.out.responses, responseRow{ResponseAppended: e, at: at, uri: f.ids.URIs[e.URI]})
	a.counts.Responses++
	f.change(changedata.KindResponse, at, &a.id, responseDataOf(&e))
	return ""
}

// validationRequest adds a request to any contract. The agent need not exist, because anybody can
// deploy a contract that names any number.
func (f *fold) validationRequest(contract common.Address, e repute.ValidationRequest, a *foldAgent,
	at chaindb.Point) string {
	q := f.requests[requestKey{contract, e.RequestHash}]
	if q.knownAt(at) {
		return ignoredDuplicate
	}
	*q = foldRequest{known: true, at: at, token: e.TokenID, validator: e.Validator}
	f.out.requests = append(f.out.requests, requestRow{contract, e, at, f.ids.URIs[e.URI]})
	if f.chain.Trusted[contract] {
		f.count(at, hourdb.Event{Series: hourdb.Validations, Token: e.TokenID})
	}
	f.change(changedata.KindRequested, at, &a.id, requestDataOf(contract, f.chain.Trusted[contract], &e))
	return ""
}

// knownAt reports whether the request was made before a position.
func (q *foldRequest) knownAt(at chaindb.Point) bool { return q.known && before(q.at, at) }

// validationResponse adds a validator's response to a request, of which it MUST name the agent and
// the validator. Only responses to contracts on the allow-list count and can be missing a request.
func (f *fold) validationResponse(contract common.Address, e repute.ValidationResponse, a *foldAgent,
	at chaindb.Point) string {
	const maxResponse = 100
	q := f.requests[requestKey{contract, e.RequestHash}]
	switch {
	case e.Response > maxResponse:
		return ignoredRange
	case !q.knownAt(at) && f.chain.Trusted[contract]:
		return chaindb.WaitsForRequest
	case !q.knownAt(at):
		return chaindb.IgnoredForeign
	case q.token != e.TokenID || q.validator != e.Validator:
		return ignoredMismatch
	}
	f.out.answers = append(f.out.answers, answerRow{contract, e, at, f.ids.URIs[e.URI], f.ids.Tags[e.Tag]})
	if f.chain.Trusted[contract] {
		f.count(at, hourdb.Event{Series: hourdb.Validations, Token: e.TokenID, Ended: true,
			Value: big.NewInt(int64(e.Response))})
	}
	if !q.answered && f.chain.Trusted[contract] {
		a.counts.Validations++
	}
	q.answered = true
	f.change(changedata.KindResponded, at, &a.id, answerDataOf(contract, f.chain.Trusted[contract], &e))
	return ""
}

// count adds an event at a position to the hours.
func (f *fold) count(at chaindb.Point, e hourdb.Event) {
	e.Block, e.Log = at.Block, at.Log
	f.out.hours.Add(e)
}
