package synth

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// number is the decimal text of a numeric column.
type number string

// yieldRow takes one row; an error ends the iteration.
type yieldRow func(row ...any) error

// rowTable is one table of the schema as a correct index fills it, in the order of its natural key.
// members names the values of a row, which rows passes in the same order. Every line of the dump begins
// with the table and the chain, which rows leaves out.
type rowTable struct {
	name    string
	members string
	rows    func(h *History, yield yieldRow) error
}

// rowTables lists the tables in the order of the dump.
func rowTables() []rowTable {
	return []rowTable{
		{"events", "block log tx_index hash time kind address tx agent topics data", eventRows},
		{"agent_states", "agent from to owner claimed wallet approved uri", versionRows},
		{"metadata", "agent key from to log value", entryRows},
		{"operators", "owner operator from to", spanRows},
		{"feedback", "agent client index block log value decimals tag1 tag2 uri endpoint hash revoked_block " +
			"revoked_log payer", ratingRows},
		{"responses", "agent client index block log responder uri hash", responseRows},
		{"validation_requests", "contract request agent validator uri block log", requestRows},
		{"validation_responses", "contract request block log response uri hash tag", answerRows},
		{"agents", "agent owner claimed wallet approved uri registered_block registered_log updated_block " +
			"updated_log feedback revoked clients responses validations", agentRows},
		{"sums", "agent client tag1 tag2 decimals n sum", sumRows},
		{"votes", "agent tag1 client index value decimals", voteRows},
	}
}

// WriteDump writes the canonical dump of a correct and complete index of the history, byte for byte
// as `repute dump --canonical` does. It is computed from the final state of the generator, not from
// the logs.
func (h *History) WriteDump(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<18)
	for _, t := range rowTables() {
		head := fmt.Sprintf(`{"table" : %q, "chain" : %d`, t.name, chainID)
		members := strings.Fields(t.members)
		var line []byte
		err := t.rows(h, func(row ...any) error {
			line = append(line[:0], head...)
			for i, v := range row {
				line = append(append(append(line, `, "`...), members[i]...), `" : `...)
				line = appendValue(line, v)
			}
			_, err := out.Write(append(line, "}\n"...))
			return err
		})
		if err != nil {
			return fmt.Errorf("dump %s: %w", t.name, err)
		}
	}
	return out.Flush()
}

// appendValue writes strings of the chain as hex, so nothing needs escaping.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	case []byte:
		return append(hex.AppendEncode(append(b, '"'), v), '"')
	case number:
		return append(append(append(b, '"'), v...), '"')
	}
	return append(b, "null"...)
}
