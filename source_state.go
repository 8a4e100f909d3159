package repute

import (
	"encoding/json"
	"fmt"
)

// SourceState is how a source of first weight was read for an epoch, as a run stores it. Times are seconds of the Unix
// era.
type SourceState struct {
	Source string `json:"source"`
	Chain  uint64 `json:"chain"`  // on which it was read
	Status string `json:"status"` // ok, off: it is not what was declared, or incomplete: some raters were not answered for
	Reason string `json:"reason"`
	Block  uint64 `json:"block"` // as of which it was read
	Time   uint64 `json:"time"`
	// Complete is the time of the newest reading that was complete, 0 for none, and Kept is how many credentials of
	// earlier readings still count.
	Complete uint64 `json:"complete"`
	Kept     int    `json:"kept"`
}

// SourceOK is the status of a source that was read completely.
const SourceOK = "ok"

// ParseSourceStates reads the readings of a run; "" is none.
func ParseSourceStates(readings string) (list []SourceState, err error) {
	if readings == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(readings), &list); err != nil {
		return nil, fmt.Errorf("stored readings of sources: %w", err)
	}
	return list, nil
}
