package synth

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteDump writes the canonical dump of a correct and complete index of the
// history, byte for byte as `repute dump --canonical` does. It is computed from
// the final state of the generator, not from the logs.
func (h *History) WriteDump(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<18)
	for _, t := range rowTables() {
		if t.dump == "" {
			continue
		}
		members, err := parseMembers(t.dump)
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
	case Tag:
		return append(hex.AppendEncode(append(b, '"'), []byte(v)), '"')
	case URI:
		return append(hex.AppendEncode(append(b, '"'), []byte(v)), '"')
	case Numeric:
		return append(append(append(b, '"'), v...), '"')
	}
	return append(b, "null"...)
}
