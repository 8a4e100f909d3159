package query

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// textQuery returns the statement that reads a whole text that the log at block $3, index $4 gave
// agent $1:$2, and why it must not be shown, null when it may.
func textQuery(field string) (sql string, ok bool) {
	const (
		feedback  = " from feedback e join uris u on u.id = e.uri_id where (e.chain_id, e.token_id, e.block, e.log_index) = ($1, $2, $3, $4)"
		metadata  = " from metadata e where (e.chain_id, e.token_id, e.from_block, e.log_index) = ($1, $2, $3, $4)"
		responses = " from responses e join uris u on u.id = e.uri_id where (e.chain_id, e.token_id, e.block, e.log_index) = ($1, $2, $3, $4)"
		requests  = " from validation_requests e join uris u on u.id = e.uri_id where (e.chain_id, e.token_id, e.block, e.log_index) = ($1, $2, $3, $4)"
		answers   = ` from validation_requests q join validation_responses e on (e.chain_id, e.contract, e.request_hash) = (q.chain_id, q.contract, q.request_hash)
			join uris u on u.id = e.uri_id where (q.chain_id, q.token_id, e.block, e.log_index) = ($1, $2, $3, $4)`
	)
	uri := "select u.uri, " + docdb.DeniedFile("u")
	queries := map[string]string{
		"tag1":     "select (select value from tags where id = e.tag1), null::text" + feedback,
		"tag2":     "select (select value from tags where id = e.tag2), null::text" + feedback,
		"endpoint": "select e.endpoint, null::text" + feedback, "feedbackURI": uri + feedback,
		"metadataKey": "select e.key, null::text" + metadata, "metadataValue": "select e.value, null::text" + metadata,
		"requestURI": uri + requests, "responseURI": uri + responses + " union all " + uri + answers,
		"tag": "select (select value from tags where id = e.tag), null::text" + answers,
	}
	sql, ok = queries[field]
	return sql, ok
}

// textFields returns the names, as in Solidity, of the texts that Text reads.
func textFields() []string {
	return []string{"tag1", "tag2", "endpoint", "feedbackURI", "responseURI", "requestURI", "tag", "metadataKey",
		"metadataValue"}
}

// Text returns the whole text that an agent got by the log at a block, however long it is.
// repute.ErrNotFound when the agent has no such log.
func Text(ctx context.Context, db *store.DB, id repute.AgentID, block, log uint64, field string) (text []byte,
	err error) {
	sql, ok := textQuery(field)
	if !ok {
		return nil, repute.Invalid("field", "no text of a log", "one of "+strings.Join(textFields(), ", "))
	}
	var denied *string
	err = db.Readers().QueryRow(ctx, sql, int64(id.ChainID), column.TokenNum(id.TokenID), int64(block),
		int64(log)).Scan(&text, &denied)
	return servable("read text", text, denied, err)
}

// Tag returns a whole tag by its keccak256.
func Tag(ctx context.Context, db *store.DB, hash [32]byte) (text []byte, err error) {
	err = db.Readers().QueryRow(ctx, "select value from tags where hash = $1", hash[:]).Scan(&text)
	return servable("read tag", text, nil, err)
}

// servable returns the text, or the error that says why it is not served.
func servable(doing string, text []byte, denied *string, err error) ([]byte, error) {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, repute.Missing("the text")
	case err != nil:
		return nil, store.Failed(doing, err)
	case denied != nil:
		return nil, &repute.DeniedError{Reason: *denied}
	}
	return text, nil
}
