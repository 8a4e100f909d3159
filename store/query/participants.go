package query

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// ParticipantFilter selects what an address wrote or was asked for, on all chains.
type ParticipantFilter struct {
	ChainIDs []uint64 // nil for all
	// IncludeRevoked adds ratings that were withdrawn, of FeedbackOf.
	IncludeRevoked bool
	// TrustedOnly keeps only contracts on the allow-list, of ValidationsOf.
	TrustedOnly bool
	After       string // Next of the page before, with the same filter
	Limit       int    // 1..MaxPage
}

// Beside reads more on the snapshot of a page, of the same chains. Nil reads nothing.
type Beside func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) error

// chainPos is a position in a list of several chains, which come one after the other.
type chainPos struct {
	Chain int64 `json:"c"`
	logPos
}

// FeedbackOf returns the ratings that a client gave any agents: chain by chain, the newest first, each with up to ten
// responses. All of them are sorted for each page: no index has the ratings of a client by block.
func FeedbackOf(ctx context.Context, db *store.DB, client common.Address,
	f ParticipantFilter, more Beside) (page store.Page[repute.Feedback], err error) {
	return listOf(ctx, db, "list feedback of client", client, f, more,
		func(ctx context.Context, tx pgx.Tx, args []any) ([]repute.Feedback, error) {
			return readFeedback(ctx, tx, chaindb.Everything, `
				with f as (
					select f.* from unnest($1::bigint[]) as k(chain_id) cross join lateral (
						select * from feedback f
						where f.chain_id = k.chain_id and f.client = $2 and ($7 or f.revoked_block is null)
							and (k.chain_id > $3 or k.chain_id = $3 and (f.block, f.log_index) < ($4, $5))
						order by f.block desc, f.log_index desc limit $6) f
					order by f.chain_id, f.block desc, f.log_index desc limit $6)`+feedbackColumns()+`
				order by f.chain_id, f.block desc, f.log_index desc`, append(args, f.IncludeRevoked)...)
		}, func(r repute.Feedback) chainPos { return chainPos{int64(r.Agent.ChainID), posOf(r.Given)} })
}

// ValidationsOf returns the validations that a validator was asked for: chain by chain, the newest request first, each
// with its latest answer.
func ValidationsOf(ctx context.Context, db *store.DB, validator common.Address,
	f ParticipantFilter, more Beside) (page store.Page[repute.Validation], err error) {
	return listOf(ctx, db, "list validations of validator", validator, f, more,
		func(ctx context.Context, tx pgx.Tx, args []any) ([]repute.Validation, error) {
			rows, _ := tx.Query(ctx, `
				with q as (
					select q.* from unnest($1::bigint[]) as k(chain_id) join chains c on c.chain_id = k.chain_id
					cross join lateral (
						select * from validation_requests q
						where q.chain_id = k.chain_id and q.validator = $2 and (not $7 or q.contract = any(c.validations))
							and (k.chain_id > $3 or k.chain_id = $3 and (q.block, q.log_index) < ($4, $5))
						order by q.block desc, q.log_index desc limit $6) q
					order by q.chain_id, q.block desc, q.log_index desc limit $6)`+validationColumns("$8")+`
				order by q.chain_id, q.block desc, q.log_index desc`, append(args, f.TrustedOnly, int64(chaindb.Everything))...)
			return pgx.CollectRows(rows, scanValidation)
		}, func(v repute.Validation) chainPos { return chainPos{int64(v.ChainID), posOf(v.Requested)} })
}

// listOf returns the page that read reads: $1 are the chains, $2 is the address, $3 to $5 are the
// position to continue after, and $6 is the limit. The cursor names the question, so that it cannot be used with
// another filter or address.
func listOf[T any](ctx context.Context, db *store.DB, doing string, address common.Address, f ParticipantFilter,
	more Beside, read func(context.Context, pgx.Tx, []any) ([]T, error),
	pos func(T) chainPos) (page store.Page[T], err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, chainPos{Chain: -1}, doing, address, f.ChainIDs, f.IncludeRevoked,
		f.TrustedOnly)
	if err != nil {
		return page, err
	}
	err = chaindb.View(ctx, db, doing, func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		page.AsOf = chaindb.LatestOf(chains)
		if more != nil {
			if err := more(ctx, tx, chains); err != nil {
				return err
			}
		}
		items, err := read(ctx, tx, []any{chaindb.ChainIDs(chains), address[:], from.Chain, from.Block, from.Log,
			f.Limit + 1})
		if err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(items, f.Limit, question, pos)
		return err
	})
	return page, err
}
