package repute

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// DefaultRoots is the set of roots that a chain's stored scores use.
const DefaultRoots = "default"

// RootUnit is a TrustRoot's weight of 1.
const RootUnit = 1_000_000

// ReviewedWriter is the class of a root that is a reviewed platform: it has at most half the weight of a rater that
// roots vouch for, vouches for nobody, and is bounded as sources of class B are.
const ReviewedWriter = "B"

// MaxWriterWeight is the most weight of a reviewed writer, in millionths.
const MaxWriterWeight = RootUnit / 2

// TrustRoot is an address that is trusted by configuration and not because of ratings.
type TrustRoot struct {
	Address common.Address
	Weight  uint64    // in millionths, above 0; only the ratio between roots of a set counts
	Reason  string    // why it is trusted, for everybody to read
	Class   string    // "" for a root that passes trust on, or ReviewedWriter
	Rules   string    // rules of its own for tags, a JSON list as in the table of tags; "" for none
	Expires time.Time // from this block time on it does not count; zero: never. Whole seconds
}

// TrustLink declares that two addresses are one identity, by evidence from outside the chain.
type TrustLink struct {
	A, B   common.Address // A is the lower address in stored links
	Reason string
	Source string // where anybody can check it
}
