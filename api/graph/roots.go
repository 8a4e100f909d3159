package graph

import (
	"cmp"
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/api/wire/provenance"
	"repute/store/rootdb"
	"repute/store/scoredb"
)

// RootSets lists the sets of roots.
func (q *queryResolver) RootSets(ctx context.Context) ([]provenance.RootSet, error) {
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	list, err := rootdb.RootSets(ctx, q.index.DB)
	return wire.Each(list, provenance.EncodeRootSet), err
}

// Roots lists the roots of a set by address. The whole set is read, and the page is cut from it; the cursor is the last
// address of a page.
func (q *queryResolver) Roots(ctx context.Context, args struct {
	ChainID wire.Long
	Set     *string
	First   *int32
	After   *string
}) (*connection[provenance.Root, struct{}], error) {
	size, err := paidPage(ctx, searchCost, args.First)
	if err != nil {
		return nil, err
	}
	var after common.Address
	if text := orEmpty(args.After); text != "" {
		if after, err = repute.ParseAddress("after", text); err != nil {
			return nil, err
		}
	}
	list, err := rootdb.Roots(ctx, q.index.DB, uint64(max(args.ChainID, 0)),
		cmp.Or(orEmpty(args.Set), repute.DefaultRoots))
	if err != nil {
		return nil, err
	}
	out := &connection[provenance.Root, struct{}]{Nodes: []provenance.Root{}}
	for _, r := range list {
		switch {
		case r.Address.Cmp(after) <= 0 && after != (common.Address{}):
		case len(out.Nodes) == size:
			out.PageInfo = pageInfoOf(string(out.Nodes[size-1].Address))
			return out, nil
		default:
			out.Nodes = append(out.Nodes, provenance.EncodeRoot(&r))
		}
	}
	return out, nil
}

// ScoreInput reads an input of scores; nil where it is not kept.
func (q *queryResolver) ScoreInput(ctx context.Context, args struct{ SHA256 wire.Hash }) (*provenance.ScoreInput,
	error) {
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
	return provenance.EncodeScoreInput(hash, body), nil
}

// Attacks returns what attacks reached.
func (q *queryResolver) Attacks(ctx context.Context) (*provenance.AttackReport, error) {
	return q.attacks, charge(ctx, readCost)
}
