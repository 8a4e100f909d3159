package trustdb

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docjson"
)

// ScaleClaim is a live rating whose file says which scale its value is on.
type ScaleClaim struct {
	Rater common.Address
	// Rating has its agent's number, client, value and tags. Its client is the gateway where one wrote it.
	Rating repute.Feedback
	File   repute.FeedbackFile
}

// ScaleClaims reads the ratings of a chain, as of a block, whose files name a scale and are those that the rating names
// on the chain: by their bytes, by their CID, or by the feedback hash. Other files could have been changed since.
func ScaleClaims(ctx context.Context, db *store.DB, chainID, block uint64, use func(ScaleClaim)) error {
	return readLong(ctx, db, "read scales of feedback files", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			with scaled as (
				select u.id, u.kind, d.keccak, p.content
				from parses p
				join documents d using (sha256)
				join uris u on u.sha256 = p.sha256
				where p.kind = 'feedback' and jsonb_typeof(p.content->'Scale') = 'object' and not exists (
					select from parses q where q.sha256 = p.sha256 and q.kind = p.kind and q.parser_version > p.parser_version))
			select f.token_id, f.client, f.payer, f.value, f.decimals, `+tagHead("t1.value")+`, `+tagHead("t2.value")+`, s.content
			from scaled s
			join feedback f on f.uri_id = s.id
			join tags t1 on t1.id = f.tag1
			join tags t2 on t2.id = f.tag2
			where f.chain_id = $1 and f.block <= $2 and (f.revoked_block is null or f.revoked_block > $2)
				and (f.payer is null or f.payer <> '') and (s.kind in ('data', 'json', 'ipfs') or f.hash <> '' and f.hash = s.keccak)`,
			chainID, block)
		var c ScaleClaim
		var client, payer, tag1, tag2, content []byte
		var value column.BigNum
		into := []any{(*column.TokenNum)(&c.Rating.Agent.TokenID), &client, &payer, &value, &c.Rating.Decimals, &tag1,
			&tag2,
			&content}
		_, err := pgx.ForEachRow(rows, into, func() error {
			file, err := docjson.DecodeFeedback(content)
			if err != nil || file == nil || file.Scale == nil || tag1 == nil {
				return err
			}
			var row Row
			row.writtenBy(client, payer)
			c.Rater, c.Rating.Client, c.Rating.Value, c.File = row.Rater, row.Client(), value.Int, *file
			c.Rating.Tag1, c.Rating.Tag2, c.Rating.Partial = string(tag1), string(tag2), tag2 == nil
			use(c)
			return nil
		})
		return err
	})
}
