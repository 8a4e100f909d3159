// Package provenance has the API types of the inputs of a score: sets of roots, roots, the inputs that scores name by
// their hashes, and the report of the attacks by which the parameters were chosen. An answer that shows a score names
// its inputs by hash; these types show what is behind a hash, so that a reader can follow a number to its end.
package provenance

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/store/rootdb"
)

// shownInput bounds an input of scores that is shown as text, in bytes.
const shownInput = 256 << 10

// RootSet is a set of roots of a chain.
type RootSet struct {
	ChainID wire.Long
	Name    string
	Roots   wire.Long
}

// EncodeRootSet writes a set of roots.
func EncodeRootSet(s rootdb.RootSet) RootSet {
	return RootSet{wire.Long(s.ChainID), s.Name, wire.Long(s.Roots)}
}

// Root is an address that is trusted by configuration.
type Root struct {
	Address  wire.Address
	Weight   float64
	Reason   string
	Reviewed bool
	Expires  *wire.Time
	Expired  bool
}

// EncodeRoot writes a root.
func EncodeRoot(r *repute.TrustRoot) Root {
	return Root{Address: wire.AddressOf(r.Address), Weight: float64(r.Weight) / repute.RootUnit, Reason: r.Reason,
		Reviewed: r.Class == repute.ReviewedWriter, Expires: wire.EncodeTime(r.Expires),
		Expired: !r.Expires.IsZero() && !time.Now().Before(r.Expires)}
}

// ScoreInput is an input that scores name by its hash.
type ScoreInput struct {
	SHA256 wire.Hash
	Size   wire.Long
	Text   *string // nil where it is too large, or no text
}

// EncodeScoreInput writes an input.
func EncodeScoreInput(hash common.Hash, body []byte) *ScoreInput {
	out := &ScoreInput{SHA256: wire.Hash(hash.Hex()), Size: wire.Long(len(body))}
	if len(body) <= shownInput && utf8.Valid(body) {
		out.Text = new(string(body))
	}
	return out
}

// AttackReport is what attacks on scores reached when they were measured.
type AttackReport struct {
	Params     string
	ParamsHash wire.Hash
	Targets    []AttackTarget
}

// AttackTarget is a measured value with the limit that it must keep.
type AttackTarget struct {
	Name         string
	Value, Limit float64
	// Bound is max where the value must be no more than the limit, and min where it must be no less.
	Bound, Unit string
	Ok          bool
}

// ReadAttacks reads the report of the release.
func ReadAttacks(raw []byte) (*AttackReport, error) {
	var r struct {
		Config struct {
			Params     string
			ParamsHash wire.Hash `json:"params_hash"`
		}
		Targets []AttackTarget
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("report of attacks: %w", err)
	}
	return &AttackReport{r.Config.Params, r.Config.ParamsHash, r.Targets}, nil
}
