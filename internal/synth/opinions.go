package synth

import (
	"math"

	"repute"
)

// Who rates. The numbers keep the groups apart.
const (
	fansOfHeavy = 61 // besides the one with most records
	firstCrowd  = clients + 1_000
	firstRater  = clients + 10_000_000
)

// fan draws one of the heavy agent's other clients, early ones more often; each
// of them comes once at the start.
func (g *generator) fan() party {
	if g.fans < fansOfHeavy {
		g.fans++
		return party(g.fans)
	}
	return 1 + party(fansOfHeavy*math.Pow(g.rng.Float64(), 2.5))
}

// rateHeavy is one of the many records of the agent that has most of them.
func (g *generator) rateHeavy(token uint32, fan party) {
	r := rating{Tag1: tagVouch, Value: amount{Value: 1}}
	switch d := g.rng.IntN(1000); {
	case d < 20:
		r.Tag1, r.Value.Value = 2, g.usually(85)
	case d < 31:
		r.Tag1, r.Value.Value = 3, g.usually(100)
	}
	g.rateAs(token, clients+fan, r)
}

// rateCrowd is feedback for the agent with most reviewers: each comes once, some
// come again.
func (g *generator) rateCrowd(token uint32) {
	r := g.otherRating()
	if g.crowdSeen < g.crowdSize {
		g.crowdSeen++
		g.rateAs(token, firstCrowd+party(g.crowdSeen), r)
		return
	}
	g.rateAs(token, firstCrowd+1+party(g.rng.IntN(g.crowdSize)), r)
}

// rateOther is feedback for one of the many: in a third of the cases of a client
// for an agent it has not rated yet, every second of which nobody has.
func (g *generator) rateOther(heavy, crowd uint32) {
	g.others++
	p := pair{client: firstRater + party(float64(g.spec.scaled(3_500, 40))*math.Pow(g.rng.Float64(), 2.5))}
	switch n := len(g.ratedPairs); {
	case n == 0 || g.rng.IntN(100) < 19:
		p.token = g.anyAgent()
	case g.rng.IntN(100) < 21:
		p.token = g.ratedPairs[g.rng.IntN(n)].token
	default:
		p = g.ratedPairs[g.rng.IntN(n)]
	}
	for p.token == heavy || p.token == crowd {
		p.token = g.anyAgent()
	}
	g.ratedPairs = append(g.ratedPairs, p)
	g.rateAs(p.token, p.client, g.otherRating())
}

// usually returns the common value in nine of ten cases.
func (g *generator) usually(common int64) int64 {
	if g.rng.IntN(10) > 0 {
		return common
	}
	return g.rng.Int64N(101)
}

// otherRating draws tags, value, endpoint and file of feedback that is not for
// the heavy agent. Values beyond 0 to 100 come at fixed places, so that every
// size has some.
func (g *generator) otherRating() rating {
	r := rating{Tag1: g.tag(), Tag2: g.secondTag()}
	r.Value.Value = g.usually(int64(mix(uint64(r.Tag1)) % 101))
	if r.Tag1 == tagVouch {
		r.Value.Value = 1
	}
	if r.Tag1 > tagVouch && r.Tag1 <= tagVouch+mixedTags {
		r.Decimals = [...]uint8{0, 0, 0, 0, 0, 1, 2, 18}[g.rng.IntN(8)]
		r.Value.Exp = r.Decimals
	}
	switch {
	case g.others%60_000 == 101:
		r.Value, r.Decimals = amount{1, 38}, 0
	case g.others%6_007 == 11:
		r.Value, r.Decimals = amount{-32, 0}, 1
	case g.others%101 == 7:
		r.Value, r.Decimals = amount{101 + g.rng.Int64N(1_000_000), 0}, 0
	}
	g.attach(&r)
	return r
}

// attach adds what only the log holds: endpoint, file and its hash.
func (g *generator) attach(r *rating) {
	if g.rng.IntN(4) == 0 {
		r.Endpoint = formEndpoint | text(g.rng.IntN(20_000))
	}
	switch g.rng.IntN(8) {
	case 0:
		r.URI = formFeedback | g.number()
	case 1:
		r.URI = formIPFS | g.number()
	default:
		return
	}
	if g.rng.IntN(3) > 0 {
		r.Hash = digest(r.URI)
	}
}

// tag draws a first tag: few of them are frequent, and some ratings have none.
func (g *generator) tag() uint16 {
	switch r := g.rng.IntN(100); {
	case r < 14:
		return tagVouch
	case r < 17:
		return 0
	}
	return tagVouch + 1 + uint16((tagCount-tagVouch-1)*math.Pow(g.rng.Float64(), 4))
}

// secondTag draws a second tag, which most ratings do not have.
func (g *generator) secondTag() uint16 {
	if g.rng.IntN(6) > 0 {
		return 0
	}
	return 20 + uint16(g.rng.IntN(7))
}

// rateAs gives feedback.
func (g *generator) rateAs(id uint32, client party, r rating) {
	r.Token, r.Client, r.At = id, client, g.here()
	r.Index = g.st.nextIndex(pair{id, client})
	g.st.rate(r)
	g.begin(reputationAddress)
	g.about(id, repute.NewFeedback{TokenID: token(id), Client: client.address(), Index: uint64(r.Index),
		Value: r.Value.big(), Decimals: r.Decimals, Tag1: g.enc.tags[r.Tag1], Tag2: g.enc.tags[r.Tag2],
		Endpoint: r.Endpoint.String(), URI: r.URI.String(), FeedbackHash: r.Hash.hash()})
}

// revoke withdraws a rating that is live; nothing when none is found quickly.
func (g *generator) revoke() {
	for range 20 {
		i := g.rng.IntN(len(g.st.ratings))
		r := &g.st.ratings[i]
		if r.Revoked != (point{}) {
			continue
		}
		g.st.revoke(i, g.here())
		g.begin(reputationAddress)
		g.about(r.Token, repute.FeedbackRevoked{TokenID: token(r.Token), Client: r.Client.address(),
			Index: uint64(r.Index)})
		return
	}
}

// respond answers any rating, also a revoked one, mostly as the agent's owner.
func (g *generator) respond() {
	to := g.st.ratings[g.rng.IntN(len(g.st.ratings))]
	r := response{Token: to.Token, Client: to.Client, Index: to.Index, At: g.here(),
		Responder: g.st.agents[to.Token].Now.Owner, URI: formResponse | g.number()}
	if g.rng.IntN(5) == 0 {
		r.Responder = g.owner()
	}
	if g.rng.IntN(2) == 0 {
		r.Hash = digest(r.URI)
	}
	g.st.respond(r)
	g.begin(reputationAddress)
	g.about(r.Token, repute.ResponseAppended{TokenID: token(r.Token), Client: r.Client.address(),
		Index:     uint64(r.Index),
		Responder: r.Responder.address(), URI: r.URI.String(), ResponseHash: r.Hash.hash()})
}

// requestValidation requests a validation of any agent. Its hash follows from its URI, whose number no other one has.
func (g *generator) requestValidation() {
	r := request{Token: g.anyAgent(), Validator: validators + party(g.rng.IntN(9)), URI: formRequest | g.number(),
		At: g.here()}
	r.Hash = digest(r.URI)
	g.st.request(r)
	g.begin(validationAddress)
	g.about(r.Token, repute.ValidationRequest{Validator: r.Validator.address(), TokenID: token(r.Token),
		RequestHash: r.Hash.hash(), URI: r.URI.String()})
}

// answerValidation answers any request; later answers replace earlier ones.
func (g *generator) answerValidation() {
	q := g.st.requests[g.rng.IntN(len(g.st.requests))]
	a := answer{Request: q.Hash, At: g.here(), Response: uint8(g.rng.IntN(101)), Tag: g.secondTag()}
	if g.rng.IntN(2) == 0 {
		a.URI = formResponse | g.number()
		a.Hash = digest(a.URI)
	}
	g.st.answer(q.Token, a)
	g.begin(validationAddress)
	g.about(q.Token, repute.ValidationResponse{Validator: q.Validator.address(), TokenID: token(q.Token),
		RequestHash: q.Hash.hash(), Response: a.Response, URI: a.URI.String(), ResponseHash: a.Hash.hash(),
		Tag: g.enc.tags[a.Tag]})
}
