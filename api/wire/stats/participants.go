package stats

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/store/statsdb"
	"repute/trust/explain"
	"repute/trust/rating"
)

// The shapes of reviewers and validators.
type (
	// ClientAnswer is a reviewer with a page of its ratings.
	ClientAnswer struct {
		Client
		Items []wire.Feedback `json:"items" doc:"ratings of agents of all chains asked, chain by chain, the newest first"`
		Next  *string         `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []wire.AsOf     `json:"asOf" doc:"one per chain asked"`
	}
	// Client is a reviewer.
	Client struct {
		Address wire.Address  `json:"address"`
		Chains  []ClientChain `json:"chains" doc:"on which it rated, or is a root"`
	}
	// ClientChain is a reviewer on one chain.
	ClientChain struct {
		ChainID          wire.Long        `json:"chainId"`
		Ratings          wire.Long        `json:"ratings" doc:"live ones"`
		Revoked          wire.Long        `json:"revoked"`
		Agents           wire.Long        `json:"agents" doc:"with a live rating of it"`
		First            *BlockTime       `json:"first" doc:"block of its first rating, also of one that was revoked; null without any"`
		Last             *BlockTime       `json:"last" doc:"block of its last rating"`
		IsRoot           bool             `json:"isRoot" doc:"it is one of the chain's own roots now"`
		IsReviewedWriter bool             `json:"isReviewedWriter" doc:"its ratings have weight by configuration, but it vouches for nobody"`
		Related          []RelatedAddress `json:"related" doc:"addresses that agents join with it: the owner of an agent whose wallet it is, the wallet of an agent that it owns; no more than fifty of each"`
		Trust            *RaterTrust      `json:"trust" doc:"what it weighs as of the chain's newest epoch, and why; null where none has been scored"`
	}
	// BlockTime is a block.
	BlockTime struct {
		Block wire.Long  `json:"block"`
		Time  *wire.Time `json:"time" doc:"null when unknown" format:"date-time"`
	}
	// RelatedAddress is an address that is no stranger to a reviewer.
	RelatedAddress struct {
		Address wire.Address `json:"address"`
		Agent   wire.ID      `json:"agent" doc:"id of the agent that joins both"`
		Role    string       `json:"role" enum:"owner,wallet" doc:"what the address is to the agent; the reviewer is the other"`
	}
	// RaterTrust is what a reviewer weighs, and why.
	RaterTrust struct {
		Epoch        wire.Long          `json:"epoch"`
		Weight       float64            `json:"weight" doc:"0 to 1, by trust that flows from the roots"`
		Granted      float64            `json:"granted" doc:"0 to 1, what sources give it in addition"`
		Root         bool               `json:"root" doc:"its identity was a root in this epoch"`
		Path         []wire.Address     `json:"path" doc:"the shortest path of trust from a root to it; empty where no root vouches for it"`
		Sources      []string           `json:"sources" doc:"ids of the sources that give it weight"`
		Identity     wire.Address       `json:"identity" doc:"address by which its identity is shown: addresses that count as one"`
		Members      []wire.Address     `json:"members" doc:"other addresses of its identity, no more than twenty"`
		Read         wire.Long          `json:"read" doc:"how many of its newest live ratings were looked at, no more than a thousand"`
		Counted      wire.Long          `json:"counted" doc:"how many of these scores can read: a known tag of the score, a value within its range and on a known scale, and not of an agent of its own"`
		CountedShare *float64           `json:"countedShare" doc:"counted by read, null without any"`
		Excluded     []wire.ReasonCount `json:"excluded" doc:"why the others do not count; praise from before an agent's owner got it is not told apart"`
	}
	// ValidatorList is a page of validators.
	ValidatorList struct {
		Items []ValidatorChain `json:"items"`
		Next  *string          `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf  []wire.AsOf      `json:"asOf" doc:"one per chain asked"`
	}
	// ValidatorAnswer is a validator with a page of its validations.
	ValidatorAnswer struct {
		Address wire.Address      `json:"address"`
		Chains  []ValidatorChain  `json:"chains" doc:"on which it was asked, that with most requests first"`
		Items   []wire.Validation `json:"items" doc:"its validations, chain by chain, the newest request first"`
		Next    *string           `json:"next" doc:"cursor of the next page, null at the end"`
		AsOf    []wire.AsOf       `json:"asOf" doc:"one per chain asked"`
	}
	// ValidatorChain is how an address answers requests on one chain.
	ValidatorChain struct {
		ChainID       wire.Long    `json:"chainId"`
		Address       wire.Address `json:"address"`
		Requests      wire.Long    `json:"requests"`
		Answered      wire.Long    `json:"answered" doc:"requests with an answer"`
		AnsweredShare float64      `json:"answeredShare" doc:"0 to 1"`
		Agents        wire.Long    `json:"agents" doc:"whose work it was asked about"`
		MedianBlocks  *wire.Long   `json:"medianBlocks" doc:"from a request to its first answer; null without an answer"`
		MedianSeconds *wire.Long   `json:"medianSeconds" doc:"the same by the times of blocks; null where these are not known"`
		MeanResponse  *float64     `json:"meanResponse" doc:"of the newest answer to each request, 0 to 100; null without one"`
		First         *BlockTime   `json:"first" doc:"of its requests"`
		Last          *BlockTime   `json:"last" doc:"of its requests"`
		Tags          []TagCount   `json:"tags" doc:"of the newest answers, the ten with most"`
	}
	// TagCount is how many have a tag.
	TagCount struct {
		Tag   string     `json:"tag"`
		Count wire.Long  `json:"count"`
		Cut   []wire.Cut `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b ClientAnswer) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b ValidatorList) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b ValidatorAnswer) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// EncodeClient writes what a client did on each chain, and what it weighs there where that is known.
func EncodeClient(a common.Address, chains []statsdb.ClientChain, trust map[uint64]explain.Rater) Client {
	return Client{Address: wire.AddressOf(a), Chains: wire.Each(chains, func(c statsdb.ClientChain) ClientChain {
		w := encodeClientChain(c)
		if t, known := trust[c.ChainID]; known {
			w.Trust = encodeTrust(&t)
		}
		return w
	})}
}

// encodeClientChain writes what a client did on one chain.
func encodeClientChain(c statsdb.ClientChain) ClientChain {
	return ClientChain{ChainID: wire.Long(c.ChainID), Ratings: wire.Long(c.Ratings), Revoked: wire.Long(c.Revoked),
		Agents: wire.Long(c.Agents), First: encodeBlock(c.First), Last: encodeBlock(c.Last), IsRoot: c.Root,
		IsReviewedWriter: c.Writer, Related: wire.Each(c.Related, func(r statsdb.Related) RelatedAddress {
			return RelatedAddress{wire.AddressOf(r.Address), wire.ID(r.Agent.String()), r.Role}
		})}
}

// encodeBlock writes a block, null for none.
func encodeBlock(b repute.Block) *BlockTime {
	if b.Number == 0 {
		return nil
	}
	return &BlockTime{wire.Long(b.Number), wire.EncodeTime(b.Time)}
}

// encodeTrust writes what a rater weighs.
func encodeTrust(t *explain.Rater) *RaterTrust {
	w := &RaterTrust{Epoch: wire.Long(t.Run.Epoch), Weight: wire.DecimalOf(t.Weight),
		Granted: wire.DecimalOf(t.Granted),
		Root:    t.Root, Path: wire.Each(t.Path, wire.AddressOf), Sources: append([]string{}, t.Sources...),
		Identity: wire.AddressOf(t.Identity), Members: wire.Each(t.Members, wire.AddressOf), Read: wire.Long(t.Read),
		Counted: wire.Long(t.Counted), Excluded: []wire.ReasonCount{}}
	w.CountedShare = share(int64(t.Counted), int64(t.Read))
	for _, reason := range rating.Reasons() {
		if n := t.ByReason[reason]; n > 0 {
			w.Excluded = append(w.Excluded, wire.ReasonCount{Reason: string(reason), Count: wire.Long(n)})
		}
	}
	return w
}

// share returns a part of a whole, 0 to 1 with six digits; nil of nothing.
func share(part, whole int64) *float64 {
	if whole == 0 {
		return nil
	}
	return new(round6(float64(part) / float64(whole)))
}

// round6 rounds to six digits after the point.
func round6(f float64) float64 { return float64(int64(f*1e6+0.5)) / 1e6 }

// EncodeValidator writes how a validator answers.
func EncodeValidator(v statsdb.Validator) ValidatorChain {
	w := ValidatorChain{ChainID: wire.Long(v.ChainID), Address: wire.AddressOf(v.Address),
		Requests: wire.Long(v.Requests),
		Answered: wire.Long(v.Answered), Agents: wire.Long(v.Agents), MedianBlocks: long(v.MedianBlocks),
		MedianSeconds: long(v.MedianSeconds), First: encodeBlock(v.First), Last: encodeBlock(v.Last),
		Tags: wire.Each(v.Tags, encodeTagCount)}
	if s := share(v.Answered, v.Requests); s != nil {
		w.AnsweredShare = *s
	}
	if v.MeanResponse != nil {
		w.MeanResponse = new(round6(*v.MeanResponse))
	}
	return w
}

// encodeTagCount writes how often a tag is used.
func encodeTagCount(t statsdb.TagCount) TagCount {
	shown, cuts := encodeTag(t.Tag)
	return TagCount{shown, wire.Long(t.Count), cuts}
}

// long converts an optional number.
func long(n *int64) *wire.Long {
	if n == nil {
		return nil
	}
	return new(wire.Long(*n))
}
