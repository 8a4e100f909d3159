package capability

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute/agent/signed"
)

// TaskHash identifies what was asked for: keccak256 over the canonical JSON (RFC 8785) of an object
// with agentId (decimal string), capability, version and input. repute.ErrInvalid: the input has no
// canonical form.
func TaskHash(agentID, capability, version string, input json.RawMessage) (common.Hash, error) {
	if err := checkDocument("input", input); err != nil {
		return common.Hash{}, err
	}
	raw, err := json.Marshal(struct {
		AgentID    string          `json:"agentId"`
		Capability string          `json:"capability"`
		Version    string          `json:"version"`
		Input      json.RawMessage `json:"input"`
	}{agentID, capability, version, input})
	if err != nil {
		return common.Hash{}, fmt.Errorf("task hash: %w", err)
	}
	return signed.HashJSON(raw)
}
