package store

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// newFeedback needs the agent and the feedback before it: indexes of a client
// are contiguous from 1, so a gap means that a log is missing.
func (f *fold) newFeedback(e repute.NewFeedback, a *foldAgent, at point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	switch {
	case !a.exists:
		return waitsForAgent
	case e.Index != p.last+1:
		return waitsForIndex
	case e.Decimals > repute.MaxDecimals:
		return ignoredRange
	}
	row := &feedbackRow{NewFeedback: e, at: at, tag1: f.ids.tags[e.Tag1], tag2: f.ids.tags[e.Tag2], uri: f.ids.uris[e.URI]}
	f.out.feedback = append(f.out.feedback, row)
	if rating := f.ratings[ratingKey{p.pairKey, e.Index}]; rating != nil {
		rating.row = row
	}
	p.last = e.Index
	if p.live++; p.live == 1 {
		a.counts.Clients++
	}
	a.counts.Feedback++
	f.addUp(p, row)
	if !f.quiet {
		f.change(kindFeedback, at, &a.id, feedbackDataOf(&row.NewFeedback))
	}
	return ""
}

// addUp keeps the sums and the vote of the client.
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

func (f *fold) feedbackRevoked(e repute.FeedbackRevoked, a *foldAgent, at point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	key := ratingKey{p.pairKey, e.Index}
	rating := f.ratings[key]
	switch {
	case !a.exists:
		return waitsForAgent
	case e.Index == 0 || e.Index > p.last:
		return waitsForFeedback
	case rating.revoked:
		return ignoredRevoked
	}
	rating.revoked = true
	if rating.row != nil {
		rating.row.revoked = at
	} else {
		f.out.revocations = append(f.out.revocations, revocation{key, at})
	}
	f.out.withdrawn = append(f.out.withdrawn, key)
	if p.live--; p.live == 0 {
		a.counts.Clients--
	}
	a.counts.Feedback--
	a.counts.Revoked++
	f.change(kindRevoked, at, &a.id, revokedData{Client: eip55(e.Client), Index: e.Index})
	return ""
}

func (f *fold) responseAppended(e repute.ResponseAppended, a *foldAgent, at point) string {
	p := f.pairs[pairKey{e.TokenID, e.Client}]
	switch {
	case !a.exists:
		return waitsForAgent
	case e.Index == 0 || e.Index > p.last:
		return waitsForFeedback
	}
	f.out.responses = append(f.out.responses, responseRow{ResponseAppended: e, at: at, uri: f.ids.uris[e.URI]})
	a.counts.Responses++
	f.change(kindResponse, at, &a.id, responseDataOf(&e))
	return ""
}

// validationRequest stores a request of any contract: the agent it names need
// not exist, for anybody can deploy a contract that names any number.
func (f *fold) validationRequest(contract common.Address, e repute.ValidationRequest, a *foldAgent, at point) string {
	q := f.requests[requestKey{contract, e.RequestHash}]
	if q.knownAt(at) {
		return ignoredDuplicate
	}
	*q = foldRequest{known: true, at: at, token: e.TokenID, validator: e.Validator}
	f.out.requests = append(f.out.requests, requestRow{contract, e, at, f.ids.uris[e.URI]})
	f.change(kindRequested, at, &a.id, requestDataOf(contract, f.chain.trusted[contract], &e))
	return ""
}

func (q *foldRequest) knownAt(at point) bool { return q.known && q.at.before(at) }

func (f *fold) validationResponse(contract common.Address, e repute.ValidationResponse, a *foldAgent, at point) string {
	const maxResponse = 100
	q := f.requests[requestKey{contract, e.RequestHash}]
	switch {
	case e.Response > maxResponse:
		return ignoredRange
	case !q.knownAt(at) && f.chain.trusted[contract]:
		return waitsForRequest
	case !q.knownAt(at):
		return ignoredForeign
	case q.token != e.TokenID || q.validator != e.Validator:
		return ignoredMismatch
	}
	f.out.answers = append(f.out.answers, answerRow{contract, e, at, f.ids.uris[e.URI], f.ids.tags[e.Tag]})
	if !q.answered && f.chain.trusted[contract] {
		a.counts.Validations++
	}
	q.answered = true
	f.change(kindResponded, at, &a.id, answerDataOf(contract, f.chain.trusted[contract], &e))
	return ""
}
