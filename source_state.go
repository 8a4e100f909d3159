package repute

import (
	"encoding/json"
	"fmt"
)

// SourceState is the result of reading a source of trust for an epoch, as the epoch's run stores it. The trust engine
// writes it as a source.State. Times are Unix seconds.
type SourceState struct {
	Source string `json:"source"` // id of the source
	Chain  uint64 `json:"chain"`  // on which it was read
	// Status is ok, off when a contract differs from its declaration, or incomplete when there is no answer about some
	// raters.
	Status string `json:"status"`
	Reason string `json:"reason"` // "" for ok
	Block  uint64 `json:"block"`  // at which it was read
	Time   uint64 `json:"time"`   // of Block
	// Complete is the time of the newest reading with status ok, 0 when there was none. Kept is how many credentials of
	// earlier readings still count.
	Complete uint64 `json:"complete"`
	Kept     int    `json:"kept"`
}

// SourceOK is the status of a source that was read completely.
const SourceOK = "ok"

// ParseSourceStates parses the JSON that a run stores; none for "".
func ParseSourceStates(readings string) (list []SourceState, err error) {
	if readings == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(readings), &list); err != nil {
		return nil, fmt.Errorf("stored readings of sources: %w", err)
	}
	return list, nil
}
