package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/agent/signed"
	"repute/store/agentdb"
)

// Validation is what a validator is asked to confirm of a paid execution. Its canonical JSON (RFC 8785)
// is the request's document on the chain, and keccak256 of that its hash. It has no content: the client
// shows input and output to the validator, who compares the hashes.
type Validation struct {
	Agent      string         `json:"agent"` // full id
	Capability string         `json:"capability"`
	Version    string         `json:"version"`
	RequestID  string         `json:"requestId"`
	TaskHash   common.Hash    `json:"taskHash"`
	ResultHash common.Hash    `json:"resultHash"`
	Validator  common.Address `json:"validator"`
}

// Document returns the canonical JSON and its hash.
func (v *Validation) Document() (string, common.Hash, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", common.Hash{}, fmt.Errorf("validation: %w", err)
	}
	canonical, err := signed.CanonicalJSON(raw)
	if err != nil {
		return "", common.Hash{}, fmt.Errorf("validation: %w", err)
	}
	return string(canonical), crypto.Keccak256Hash(canonical), nil
}

// validate names the validation of a paid result before it is signed, so that the signed answer says
// which one it is.
func (w *work) validate() (err error) {
	if !w.response.Validation || w.row == nil || (w.router.o.Validator == common.Address{}) {
		return nil
	}
	d := w.service.Definition()
	v := Validation{Agent: w.router.o.ID.String(), Capability: d.Name, Version: d.Version, RequestID: w.row.RequestID,
		TaskHash: w.response.TaskHash, ResultHash: signed.HashBody(w.output), Validator: w.router.o.Validator}
	w.document, w.response.ValidationRequest, err = v.Document()
	return err
}

// executed is the detail of an execution in the log.
type executed struct {
	Milliseconds int64       `json:"ms"`
	Validation   common.Hash `json:"validation,omitzero"`
	Document     string      `json:"document,omitempty"`
	Task
}

// Validations returns how the validations of executions stand, by their place in the list.
func (r *Router) Validations(ctx context.Context, list []agentdb.Entry) (map[int]agentdb.Validation, error) {
	at, hashes := map[common.Hash]int{}, []common.Hash{}
	for i := range list {
		var d executed
		if err := json.Unmarshal(list[i].Detail, &d); err == nil && d.Validation != (common.Hash{}) {
			at[d.Validation] = i
			hashes = append(hashes, d.Validation)
		}
	}
	out := map[int]agentdb.Validation{}
	if len(hashes) == 0 {
		return out, nil
	}
	known, err := agentdb.Validations(ctx, r.db, r.o.ID.String(), hashes)
	for hash, v := range known {
		out[at[hash]] = v
	}
	return out, err
}
