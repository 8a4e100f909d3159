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
// members names the members of a line, name@place for the row's value at that place.
type rowTable struct {
	name    string
	members string
	rows    func(h *History, yield yieldRow) error
}

// rowTables lists the tables in the order of the dump.
func rowTables() []rowTable {
	return []rowTable{
		{"events", "chain@0 block@1 log@2 tx_index@3 hash@10 time@11 kind@4 address@5 tx@6 agent@7 topics@8 data@9",
			eventRows},
		{"agent_states", "chain@0 agent@1 from@2 to@3 owner@4 claimed@5 wallet@6 approved@7 uri@8", versionRows},
		{"metadata", "chain@0 agent@1 key@6 from@3 to@4 log@5 value@7", entryRows},
		{"operators", "chain@0 owner@1 operator@2 from@3 to@4", spanRows},
		{"feedback",
			"chain@0 agent@1 client@2 index@3 block@4 log@5 value@6 decimals@7 tag1@8 tag2@9 uri@10 endpoint@11 hash@12 " +
				"revoked_block@13 revoked_log@14 payer@15", ratingRows},
		{"responses", "chain@0 agent@1 client@2 index@3 block@4 log@5 responder@6 uri@7 hash@8", responseRows},
		{"validation_requests", "chain@0 contract@1 request@2 agent@3 validator@4 uri@5 block@6 log@7", requestRows},
		{"validation_responses", "chain@0 contract@1 request@2 block@3 log@4 response@5 uri@6 hash@7 tag@8",
			answerRows},
		{"agents",
			"chain@0 agent@1 owner@2 claimed@3 wallet@4 approved@5 uri@6 registered_block@7 registered_log@8 updated_block@9 " +
				"updated_log@10 feedback@11 revoked@12 clients@13 responses@14 validations@15", agentRows},
		{"sums", "chain@0 agent@1 client@2 tag1@3 tag2@4 decimals@5 n@6 sum@7", sumRows},
		{"votes", "chain@0 agent@1 tag1@2 client@3 index@4 value@5 decimals@6", voteRows},
	}
}

// WriteDump writes the canonical dump of a correct and complete index of the history, byte for byte
// as `repute dump --canonical` does. It is computed from the final state of the generator, not from
// the logs.
func (h *History) WriteDump(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<18)
	for _, t := range rowTables() {
		members, err := parseMembers(t.members)
		if err != nil {
			return err
		}
		var line []byte
		err = t.rows(h, func(row ...any) error {
			line = append(append(append(line[:0], `{"table" : "`...), t.name...), '"')
			for _, m := range members {
				line = append(line, m.head...)
				line = appendValue(line, row[m.at])
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

// member is one of a line: its head is written before the value.
type member struct {
	head string
	at   int
}

func parseMembers(list string) ([]member, error) {
	var members []member
	for _, f := range strings.Fields(list) {
		name, place, _ := strings.Cut(f, "@")
		at, err := strconv.Atoi(place)
		if err != nil {
			return nil, fmt.Errorf("dump member %q: %w", f, err)
		}
		members = append(members, member{`, "` + name + `" : `, at})
	}
	return members, nil
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
