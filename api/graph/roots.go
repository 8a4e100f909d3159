package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/store/rootdb"
	"repute/store/scoredb"
)

// shownInput bounds an input of scores that is shown as text, in bytes.
const shownInput = 256 << 10

// rootSet is a set of roots of a chain.
type rootSet struct {
	ChainID wire.Long
	Name    string
	Roots   wire.Long
}

// RootSets lists the sets of roots.
func (q *queryResolver) RootSets(ctx context.Context) ([]rootSet, error) {
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	list, err := rootdb.RootSets(ctx, q.index.DB)
	return wire.Each(list, func(s rootdb.RootSet) rootSet {
		return rootSet{wire.Long(s.ChainID), s.Name, wire.Long(s.Roots)}
	}), err
}

// root is an address that is trusted by configuration.
type root struct {
	Address  wire.Address
	Weight   float64
	Reason   string
	Reviewed bool
	Expires  *wire.Time
	Expired  bool
}

// rootConnection is a page of the roots of a set.
type rootConnection struct {
	Nodes    []root
	PageInfo pageInfo
}

// Roots lists the roots of a set by address.
func (q *queryResolver) Roots(ctx context.Context, args struct {
	ChainID wire.Long
	Set     *string
	First   *int32
	After   *string
}) (*rootConnection, error) {
	size, err := pageSize(args.First)
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, searchCost+size); err != nil {
		return nil, err
	}
	var after common.Address
	if text := orEmpty(args.After); text != "" {
		if after, err = repute.ParseAddress("after", text); err != nil {
			return nil, err
		}
	}
	list, err := rootdb.Roots(ctx, q.index.DB, uint64(max(args.ChainID, 0)), cmp.Or(orEmpty(args.Set), repute.DefaultRoots))
	if err != nil {
		return nil, err
	}
	out := &rootConnection{Nodes: []root{}}
	for _, r := range list {
		switch {
		case r.Address.Cmp(after) <= 0 && after != (common.Address{}):
		case len(out.Nodes) == size:
			out.PageInfo = pageInfo{true, wire.OrNull(string(out.Nodes[size-1].Address))}
			return out, nil
		default:
			out.Nodes = append(out.Nodes, encodeRoot(&r))
		}
	}
	return out, nil
}

// encodeRoot writes a root.
func encodeRoot(r *repute.TrustRoot) root {
	return root{Address: wire.AddressOf(r.Address), Weight: float64(r.Weight) / repute.RootUnit, Reason: r.Reason,
		Reviewed: r.Class == repute.ReviewedWriter, Expires: wire.EncodeTime(r.Expires),
		Expired: !r.Expires.IsZero() && !time.Now().Before(r.Expires)}
}

// scoreInput is an input that scores name by its hash.
type scoreInput struct {
	SHA256 wire.Hash
	Size   wire.Long
	Text   *string
}

// ScoreInput reads an input of scores; nil where it is not kept.
func (q *queryResolver) ScoreInput(ctx context.Context, args struct{ SHA256 wire.Hash }) (*scoreInput, error) {
	var hash common.Hash
	if err := hash.UnmarshalText([]byte(args.SHA256)); err != nil {
		return nil, repute.Invalid("sha256", "is no hash", "0x and 64 hex digits")
	}
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	body, err := scoredb.ReadInput(ctx, q.index.DB, hash)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &scoreInput{SHA256: wire.Hash(hash.Hex()), Size: wire.Long(len(body))}
	if len(body) <= shownInput && utf8.Valid(body) {
		text := string(body)
		out.Text = &text
	}
	return out, nil
}

// attackReport is what attacks on scores reached when they were measured.
type attackReport struct {
	Params     string
	ParamsHash wire.Hash
	Targets    []attackTarget
}

// attackTarget is a measured value with the limit that it must keep.
type attackTarget struct {
	Name         string
	Value, Limit float64
	// Bound is max where the value must be no more than the limit, and min where it must be no less.
	Bound, Unit string
	Ok          bool
}

// readAttacks reads the report of the release.
func readAttacks(raw []byte) (*attackReport, error) {
	var r struct {
		Config struct {
			Params     string
			ParamsHash wire.Hash `json:"params_hash"`
		}
		Targets []attackTarget
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("report of attacks: %w", err)
	}
	return &attackReport{r.Config.Params, r.Config.ParamsHash, r.Targets}, nil
}

// Attacks returns what attacks reached.
func (q *queryResolver) Attacks(ctx context.Context) (*attackReport, error) {
	return q.attacks, charge(ctx, readCost)
}
