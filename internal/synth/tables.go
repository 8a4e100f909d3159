package synth

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"repute"
)

// Values of rows that stand for something of the schema's own.
type (
	// Numeric is the decimal text of a numeric column.
	Numeric string
	// Tag is a tag's bytes, where the schema holds a tag's id.
	Tag string
	// URI is a URI's bytes, where the schema holds a URI's id.
	URI string
)

// yieldRow takes one row; an error ends the iteration.
type yieldRow func(row ...any) error

// rowTable is one table of the schema as a correct index fills it. Rows come in
// the order of the natural key and may be longer than columns: what follows is
// only for the dump. dump lists the members of a line, name@place for the row's
// value at that place; it is empty for a table that is not dumped.
type rowTable struct {
	name    string
	columns string
	dump    string
	rows    func(h *History, yield yieldRow) error
}

// Tables lists the tables that Rows knows: what a correct index holds of a
// history, the dictionaries and the blocks that hold events included.
func Tables() []string {
	var names []string
	for _, t := range rowTables() {
		names = append(names, t.name)
	}
	return names
}

// Rows iterates over the final rows of a table in the order of its natural key,
// with the columns' names. Values are uint64, bool, []byte, nil, Numeric, Tag,
// URI and time.Time. An error ends the iteration. The error is an ErrNotFound
// for an unknown table.
func (h *History) Rows(table string) (columns []string, rows iter.Seq2[[]any, error], err error) {
	for _, t := range rowTables() {
		if t.name == table {
			return strings.Fields(t.columns), h.iterate(t), nil
		}
	}
	return nil, nil, fmt.Errorf("table %q: %w", table, repute.ErrNotFound)
}

// errStopped: the consumer has had enough.
var errStopped = errors.New("iteration stopped")

func (h *History) iterate(t rowTable) iter.Seq2[[]any, error] {
	width := len(strings.Fields(t.columns))
	return func(yield func([]any, error) bool) {
		err := t.rows(h, func(row ...any) error {
			if !yield(row[:width], nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// rowTables lists the tables, those of the dump in its order.
func rowTables() []rowTable {
	return []rowTable{
		{"blocks", "chain_id number hash parent time", "", blockRows},
		{"tags", "hash value", "", tagRows},
		{"uris", "hash uri", "", uriRows},
		{"events", "chain_id block log_index tx_index kind address tx_hash token_id topics data",
			"chain@0 block@1 log@2 tx_index@3 hash@10 time@11 kind@4 address@5 tx@6 agent@7 topics@8 data@9", eventRows},
		{"agent_states", "chain_id token_id from_block to_block owner claimed wallet approved uri_id",
			"chain@0 agent@1 from@2 to@3 owner@4 claimed@5 wallet@6 approved@7 uri@8", versionRows},
		{"metadata", "chain_id token_id key_hash from_block to_block log_index key value",
			"chain@0 agent@1 key@6 from@3 to@4 log@5 value@7", entryRows},
		{"operators", "chain_id owner operator from_block to_block",
			"chain@0 owner@1 operator@2 from@3 to@4", spanRows},
		{"feedback", "chain_id token_id client idx block log_index value decimals tag1 tag2 uri_id endpoint hash revoked_block revoked_log payer",
			"chain@0 agent@1 client@2 index@3 block@4 log@5 value@6 decimals@7 tag1@8 tag2@9 uri@10 endpoint@11 hash@12 " +
				"revoked_block@13 revoked_log@14 payer@15", ratingRows},
		{"responses", "chain_id token_id client idx block log_index responder uri_id hash",
			"chain@0 agent@1 client@2 index@3 block@4 log@5 responder@6 uri@7 hash@8", responseRows},
		{"validation_requests", "chain_id contract request_hash token_id validator uri_id block log_index",
			"chain@0 contract@1 request@2 agent@3 validator@4 uri@5 block@6 log@7", requestRows},
		{"validation_responses", "chain_id contract request_hash block log_index response uri_id hash tag",
			"chain@0 contract@1 request@2 block@3 log@4 response@5 uri@6 hash@7 tag@8", answerRows},
		{"agents", "chain_id token_id owner claimed wallet approved uri_id registered_block registered_log updated_block updated_log " +
			"feedback revoked clients responses validations",
			"chain@0 agent@1 owner@2 claimed@3 wallet@4 approved@5 uri@6 registered_block@7 registered_log@8 updated_block@9 " +
				"updated_log@10 feedback@11 revoked@12 clients@13 responses@14 validations@15", agentRows},
		{"sums", "chain_id token_id client tag1 tag2 decimals n sum",
			"chain@0 agent@1 client@2 tag1@3 tag2@4 decimals@5 n@6 sum@7", sumRows},
		{"votes", "chain_id token_id tag1 client idx value decimals",
			"chain@0 agent@1 tag1@2 client@3 index@4 value@5 decimals@6", voteRows},
	}
}
