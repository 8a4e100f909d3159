package repute

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Points is a score or a part of one, in thousandths of a point: -100000 to 100000.
type Points int64

// String writes the points with three digits, e.g. "-12.500".
func (p Points) String() string {
	sign, n := "", int64(p)
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%03d", sign, n/1000, n%1000)
}

// MarshalJSON writes a JSON number with three digits.
func (p Points) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// Scoring describes the progress of the scores of a chain.
type Scoring struct {
	// Run, counted from 1, and Epoch identify the newest computation of weights, and Block is the
	// last block of that epoch. All are 0 before the first one.
	Run, Epoch, Block uint64
	WalkedAt          time.Time
	Final             bool      // the epoch's final scores are all stored
	Roots             int       // roots of the chain's own set that have not expired
	Stale             int64     // agents whose scores must be looked at
	StaleSince        time.Time // since when the first of them waits, zero without
	LookedAt          time.Time // when an engine last looked for changes, to about ten seconds
	// Coverage is as of the newest closed epoch, zero before the first.
	Coverage Coverage
	// VerifiedTo and Verified are as in the final scores of that epoch, and Sources is how the sources were read for
	// it, empty where none was asked.
	VerifiedTo uint64
	Verified   bool
	Sources    []SourceState
	// Late reports that no engine worked for more than a minute, or that an agent has waited that
	// long for the effect of an event.
	Late bool
}

// Status describes how much evidence a score has.
type Status string

// Statuses of scores. An unrated agent has score 0, so that every minimum refuses it. A thin one
// has the score of its few trusted raters, with a wide interval, and passes no gate that reads the
// score. The zero value is the status of a score that was not computed.
const (
	Rated   Status = "rated"
	Thin    Status = "thin"
	Unrated Status = "unrated"
)

// Statuses returns all statuses, the best first.
func Statuses() []Status { return []Status{Rated, Thin, Unrated} }

// Score is a stored score of an agent.
type Score struct {
	Agent AgentID
	// Block is the newest that the score follows from; ages run to its time. Of a final
	// score it is the newest block with an event up to the end of the epoch.
	Block Block
	// Final: of a closed epoch, kept and replayable. Otherwise of the newest block, and
	// gone with it if the chain is reorganized.
	Final bool
	// Run numbers the walk over the chain's graph whose weights count, from 1, and Epoch
	// is its epoch. An epoch has several runs where roots or parameters changed in it. Run is
	// 0 of an agent that nobody judged: then the score is what the parameters of the last run
	// give all of them, or, without a Scorer, anything from -100 to 100.
	Run, Epoch uint64
	Scorer     string // version of the engine
	// Pruned: there may have been a final score as of the block asked, which is not kept any
	// more. Everything else says that nothing is known.
	Pruned bool
	// Hashes (sha256) of everything else that the score follows from, besides events. Sources, of the policy, and
	// Credentials, of what the sources said of raters, are zero where no source was asked. FileScales, of what files of
	// feedback say of scales, is zero where none does.
	Params, Tags, Roots, Links, Sources, Credentials, FileScales, Evidence common.Hash
	// VerifiedTo is the block up to which every block from the chain's start on was proven when the run began, 0 for
	// none. Verified reports whether it covers all that a final score follows from; it is false for provisional ones.
	VerifiedTo uint64
	Verified   bool
	// Readings say how the reading of each source went for the newest run of the chain, of a final score for the newest
	// closed one as of the block asked, as JSON; "" where none was asked and in lists. The score may be of an earlier
	// run, which its hashes name.
	Readings string

	Status                 Status
	Score, Low, High, Mean Points
	Confidence             int64 // millionths
	Tier                   int
	Result                 []byte // all of it, as canonical JSON
}

// Penalty is the limit that a bad agent puts on the other agents of an identity that answered for
// it.
type Penalty struct {
	TokenID     TokenID
	Identity    common.Address // the name of an identity of the run's graph
	Holder      common.Address // the address of it that had the agent first
	Score, High Points
	Tier        int
	// Bad is the number of surely bad agents for which the identity answers, at most a thousand. It
	// is set when penalties are read.
	Bad int
	// Domains bound the penalty to those agents of the identity that one of them proves; empty for all its agents.
	Domains []string
}
