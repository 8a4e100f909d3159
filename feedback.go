package repute

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// MaxDecimals is the largest valueDecimals the registry accepts.
const MaxDecimals = 18

// Feedback is one rating with its fate.
type Feedback struct {
	Agent     AgentID
	Client    common.Address
	Index     uint64 // from 1 per (agent, client)
	Value     *big.Int
	Decimals  uint8
	Tag1      string
	Tag2      string
	Endpoint  string
	URI       string
	Hash      common.Hash // keccak256 of the file behind URI, zero when not given
	File      *File       // behind URI; nil without URI and Hash
	Payment   *Payment    // that the file claims, nil for none
	Given     Point
	Revoked   *Point // nil while live
	Responses []Response
	// ResponseCount counts all responses; Responses may hold fewer.
	ResponseCount int64
	// Partial: a text of it or of a response is longer than 2048 bytes and was cut.
	Partial bool
	// Cut names the texts that were: tag1, tag2, endpoint and uri.
	Cut []string
}

// Response is one answer appended to a rating.
type Response struct {
	Responder common.Address
	URI       string
	Hash      common.Hash
	File      *File // behind URI; nil without URI and Hash
	At        Point
	Cut       []string // uri, where it was cut
}

// Amount is an exact decimal: Value / 10^Decimals.
type Amount struct {
	Value    *big.Int
	Decimals uint8
}

// Decimal writes the amount exactly, without exponent or trailing zeros.
func (a Amount) Decimal() string {
	if a.Value == nil {
		return "0"
	}
	s := new(big.Int).Abs(a.Value).String()
	d := int(a.Decimals)
	if len(s) <= d {
		s = strings.Repeat("0", d+1-len(s)) + s
	}
	whole, frac := s[:len(s)-d], strings.TrimRight(s[len(s)-d:], "0")
	if frac != "" {
		whole += "." + frac
	}
	if a.Value.Sign() < 0 {
		return "-" + whole
	}
	return whole
}

// wad is the amount in units of 10^-18.
func (a Amount) wad() *big.Int {
	return new(big.Int).Mul(a.Value, pow10(MaxDecimals-int(a.Decimals)))
}

// reduced is the same amount in the fewest decimals.
func (a Amount) reduced() Amount {
	ten, rest := big.NewInt(10), new(big.Int)
	for a.Decimals > 0 {
		shorter, rest := new(big.Int).QuoRem(a.Value, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		a = Amount{shorter, a.Decimals - 1}
	}
	return a
}

// Summary is what ReputationRegistry.getSummary returns.
type Summary struct {
	Count uint64
	Amount
}

// Tally adds up live values of one valueDecimals.
type Tally struct {
	Decimals uint8
	Count    uint64
	Sum      *big.Int
}

// Summarize reproduces getSummary (reference contract, "getSummary") from
// tallies: the mean in 18 decimals truncated toward zero, shown in the most
// frequent decimals (the smallest on a tie), truncated again and reduced to
// int128 without an overflow check. Several tallies may have the same decimals.
func Summarize(tallies []Tally) Summary {
	var counts [MaxDecimals + 1]uint64
	sum, count := new(big.Int), uint64(0)
	for _, t := range tallies {
		counts[t.Decimals] += t.Count
		count += t.Count
		sum.Add(sum, Amount{t.Sum, t.Decimals}.wad())
	}
	if count == 0 {
		return Summary{Amount: Amount{Value: new(big.Int)}}
	}
	mode := 0
	for d := range counts {
		if counts[d] > counts[mode] {
			mode = d
		}
	}
	mean := sum.Quo(sum, new(big.Int).SetUint64(count))
	value := mean.Quo(mean, pow10(MaxDecimals-mode))
	return Summary{Count: count, Amount: Amount{Value: wrapInt128(value), Decimals: uint8(mode)}}
}

// TagSummary is the robust view of one tag1: one vote per reviewer, revoked
// feedback excluded.
type TagSummary struct {
	Tag       string // no more than the first 2048 bytes; Partial where it goes on
	Partial   bool
	Hash      common.Hash // keccak256 of the whole tag where it was cut
	Count     int64       // live feedback
	Reviewers int64       // distinct clients, hence votes
	Unit      string      // "" until a tag table says what the values mean
	Median    Amount      // exact; the mean of the two middle votes when even
	Mean      Amount      // truncated toward zero at 18 decimals
	Min       Amount
	Max       Amount
}

// VoteTally counts equal votes.
type VoteTally struct {
	Amount
	Count int64
}

// SummarizeTallies fills Reviewers, Median, Mean, Min and Max from the votes of all reviewers, one
// vote each, counted by value in any order and division. Tallies must not be empty; they are
// reordered.
func (t *TagSummary) SummarizeTallies(tallies []VoteTally) {
	type vote struct {
		VoteTally
		wad *big.Int
	}
	votes := make([]vote, len(tallies))
	sum := new(big.Int)
	t.Reviewers = 0
	for i, v := range tallies {
		votes[i] = vote{v, v.wad()}
		sum.Add(sum, new(big.Int).Mul(votes[i].wad, big.NewInt(v.Count)))
		t.Reviewers += v.Count
	}
	// Equal amounts may be written in different decimals: the order among them
	// must not depend on that of the input.
	slices.SortFunc(votes, func(a, b vote) int {
		return cmp.Or(a.wad.Cmp(b.wad), cmp.Compare(a.Decimals, b.Decimals))
	})
	nth := func(n int64) Amount {
		i := 0
		for ; n >= votes[i].Count; i++ {
			n -= votes[i].Count
		}
		return votes[i].Amount
	}
	t.Min, t.Max = nth(0), nth(t.Reviewers-1)
	t.Median = median(nth((t.Reviewers-1)/2), nth(t.Reviewers/2), t.Reviewers)
	t.Mean = Amount{sum.Quo(sum, big.NewInt(t.Reviewers)), MaxDecimals}.reduced()
}

// median takes the two middle votes, which are the same one when n is odd.
// Halving one sum needs one decimal more than a wad has, so the even case is
// exact at 19 decimals.
func median(low, high Amount, n int64) Amount {
	if n%2 == 1 {
		return low
	}
	sum := new(big.Int).Add(low.wad(), high.wad())
	return Amount{sum.Mul(sum, big.NewInt(5)), MaxDecimals + 1}.reduced()
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// wrapInt128 keeps the low 128 bits as a signed number, as Solidity's
// unchecked int128(x) does.
func wrapInt128(v *big.Int) *big.Int {
	one := big.NewInt(1)
	mod := new(big.Int).Lsh(one, 128)
	v = new(big.Int).Mod(v, mod)
	if v.Bit(127) == 1 {
		v.Sub(v, mod)
	}
	return v
}
