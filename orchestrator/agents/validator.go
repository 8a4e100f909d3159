package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/resolver"
)

// Validation requests an answer to a validation request that names the validator.
type Validation struct {
	ChainID  uint64 `json:"chainId,omitempty"`
	Registry string `json:"registry,omitempty"` // validation contract; empty: the chain's first
	Request  string `json:"request"`            // hash of the request
	URI      string `json:"uri"`                // of the request's file, whose keccak256 is the hash
}

// Work is the file of a validation request: the work, and its claimed result.
type Work struct {
	Work struct {
		Tool  string          `json:"tool,omitempty"` // a tool of the orchestrator
		Input json.RawMessage `json:"input,omitempty"`
		HTTP  *struct {
			Method string          `json:"method,omitempty"`
			URL    string          `json:"url"`
			Body   json.RawMessage `json:"body,omitempty"`
		} `json:"http,omitempty"`
	} `json:"work"`
	Claimed json.RawMessage `json:"claimed"`
}

// Validated describes the posted answer.
type Validated struct {
	Request  common.Hash `json:"request"`
	Agent    string      `json:"agent"` // whose work it is
	Response uint8       `json:"response"`
	URI      string      `json:"uri"` // of the report
	Hash     common.Hash `json:"hash"`
	Tx       common.Hash `json:"tx"`
}

// validationTag is the tag of the answer; it names the method.
const validationTag = "re-execution"

// report is the file of an answer.
type report struct {
	Request  common.Hash `json:"requestHash"`
	Agent    string      `json:"agent"`
	Claimed  common.Hash `json:"claimedHash"` // keccak256 of the canonical JSON
	Found    common.Hash `json:"foundHash"`
	Same     bool        `json:"same"`
	Response uint8       `json:"response"`
	Problem  string      `json:"problem,omitempty"` // why nothing was found
}

// validatorSheet returns the validator's part of its manifest.
func validatorSheet() sheet {
	return sheet{name: "Validator",
		does:         "Does the work of a validation request again and answers 100 where it comes to what was claimed, else 0.",
		capabilities: []string{"validation"}, categories: []string{"validate"}, writes: 1}
}

// validator is the craft of the validator. from may be empty: then only work of tools is validated.
type validator struct {
	self   Self
	chains places
	from   sources
}

// registry returns the validation registry of the order's chain.
func (v *validator) registry(in Validation) (c Chain, at common.Address, err error) {
	if c, err = v.chains.at(in.ChainID); err != nil {
		return c, at, err
	}
	if in.Registry == "" && len(c.Validations) > 0 {
		return c, c.Validations[0], nil
	}
	if at, err = repute.ParseAddress("input.registry", in.Registry); err == nil && !slices.Contains(c.Validations, at) {
		err = repute.Invalid("input.registry", "is no validation contract that the agent knows",
			fmt.Sprintf("one of %v", c.Validations))
	}
	return c, at, err
}

// Accept refuses an order without a valid request hash or with an unknown chain.
func (v *validator) Accept(o order[Validation]) error {
	if _, _, err := v.registry(o.In); err != nil {
		return err
	}
	if len(common.FromHex(o.In.Request)) != common.HashLength {
		return repute.Invalid("input.request", fmt.Sprintf("%.80q is no hash", o.In.Request), "0x and 64 hex digits")
	}
	if o.In.URI == "" {
		return repute.Invalid("input.uri", "is missing", "where the request's file is")
	}
	return nil
}

// asked reads a request and its file. It refuses requests to others, about the validator itself,
// and files with another hash.
func (v *validator) asked(ctx context.Context, w World, in Validation) (c Chain, at common.Address, id repute.AgentID,
	work Work, err error) {
	if c, at, err = v.registry(in); err != nil {
		return c, at, id, work, err
	}
	hash := common.HexToHash(in.Request)
	status, err := view(ctx, w, c.ID, at, validations.PackGetValidationStatus(hash),
		validations.UnpackGetValidationStatus)
	if err != nil {
		return c, at, id, work, fmt.Errorf("validation request %s: %w", hash, err)
	}
	id = repute.AgentID{ChainID: c.ID, Registry: c.Identity}
	id.TokenID.SetFromBig(status.AgentId)
	if v.self.owns(id) {
		return c, at, id, work, repute.Invalid("input.request", "is about the validator itself",
			"another agent's: nobody validates himself")
	}
	if v.self.Wallet != (common.Address{}) && status.ValidatorAddress != v.self.Wallet {
		return c, at, id, work, repute.Invalid("input.request",
			fmt.Sprintf("names validator %s", status.ValidatorAddress),
			v.self.Wallet.Hex())
	}
	body, err := fetch(ctx, w, in.URI)
	if err != nil {
		return c, at, id, work, fmt.Errorf("file of the request: %w", err)
	}
	if crypto.Keccak256Hash(body) != hash {
		return c, at, id, work, repute.Invalid("input.uri", "leads to another file than the one of the hash",
			"the request's own")
	}
	if err := json.Unmarshal(body, &work); err != nil || (work.Work.Tool == "") == (work.Work.HTTP == nil) ||
		len(work.Claimed) == 0 {
		return c, at, id, work, repute.Invalid("input.uri", "leads to a file without work that can be done again",
			`{"work": {"http": {"url"}} or {"tool", "input"}, "claimed": …}`)
	}
	if q := work.Work.HTTP; q != nil && !v.from.has(q.URL) {
		return c, at, id, work,
			repute.Invalid("input.uri",
				fmt.Sprintf("leads to work at %.200q: its requester chose that URL and the claim, so the answer proves nothing",
					q.URL),
				"a URL below one of orchestrator.validation_sources, or a tool")
	}
	return c, at, id, work, nil
}

// again does the work and returns its result.
func again(ctx context.Context, w World, work Work) (json.RawMessage, error) {
	if work.Work.Tool != "" {
		return w.Tool(ctx, work.Work.Tool, work.Work.Input)
	}
	q := outbound.HTTPRequest{Method: work.Work.HTTP.Method, URL: work.Work.HTTP.URL, Body: work.Work.HTTP.Body}
	if len(q.Body) > 0 {
		q.Header = map[string][]string{"Content-Type": {"application/json"}}
	}
	answer, err := w.HTTP(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer.Status != 200 {
		return nil, fmt.Errorf("status %d: %w", answer.Status, repute.ErrInvalid)
	}
	return answer.Body, nil
}

// canonical returns the hash of a JSON value regardless of the order and spacing of its members.
func canonical(v json.RawMessage) (common.Hash, error) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return common.Hash{}, err
	}
	if d.More() {
		return common.Hash{}, fmt.Errorf("more than one JSON value: %w", repute.ErrInvalid)
	}
	text, err := json.Marshal(value) // members sorted
	return crypto.Keccak256Hash(text), err
}

// judge does the work again and compares. Work that cannot be repeated does not have the claimed result: otherwise
// an agent could claim anything about a page that it takes down. What ends the run is no judgment, and returned.
func judge(ctx context.Context, w World, hash common.Hash, id repute.AgentID, work Work) (r report, err error) {
	r = report{Request: hash, Agent: id.String()}
	if r.Claimed, err = canonical(work.Claimed); err != nil {
		r.Problem = "what is claimed is no JSON"
		return r, nil
	}
	found, err := again(ctx, w, work)
	if err != nil && ends(ctx, err) {
		return r, err
	}
	if err == nil {
		r.Found, err = canonical(found)
	}
	switch {
	case err != nil:
		r.Problem = "the work gives no JSON value"
	case r.Found == r.Claimed:
		r.Same, r.Response = true, 100
	}
	return r, nil
}

// prepare repeats the work and returns the transaction of the answer.
func (v *validator) prepare(ctx context.Context, w World, in Validation) (done Validated, tx transaction.Tx,
	err error) {
	c, at, id, work, err := v.asked(ctx, w, in)
	if err != nil {
		return done, tx, err
	}
	r, err := judge(ctx, w, common.HexToHash(in.Request), id, work)
	if err != nil {
		return done, tx, err
	}
	done = Validated{Request: r.Request, Agent: r.Agent, Response: r.Response}
	if done.URI, done.Hash, err = publish(r); err != nil {
		return done, tx, err
	}
	return done, transaction.Tx{Key: "answer", ChainID: c.ID, Target: at,
		Purpose: "answer to validation request " + r.Request.Hex(),
		Data:    validations.PackValidationResponse(r.Request, r.Response, done.URI, done.Hash, validationTag)}, nil
}

// DryRun declares the transaction of the answer.
func (v *validator) DryRun(ctx context.Context, w World, o order[Validation]) (d standard.DryRun, err error) {
	_, tx, err := v.prepare(ctx, w, o.In)
	d.Calls = []transaction.Tx{tx}
	return d, err
}

// Do posts the answer.
func (v *validator) Do(ctx context.Context, w World, o order[Validation]) (Validated, error) {
	done, tx, err := v.prepare(ctx, w, o.In)
	if err != nil {
		return done, err
	}
	sent, err := w.Send(ctx, tx)
	done.Tx = sent.Hash
	return done, err
}

// Verify reads the answer back from the registry, and compares the report with it.
func (v *validator) Verify(ctx context.Context, w World, o order[Validation], done Validated) ([]standard.Check,
	error) {
	c, at, err := v.registry(o.In)
	if err != nil {
		return nil, err
	}
	status, err := view(ctx, w, c.ID, at, validations.PackGetValidationStatus(common.HexToHash(o.In.Request)),
		validations.UnpackGetValidationStatus)
	if err != nil {
		return nil, err
	}
	body, err := resolver.Inline(done.URI, maxFile)
	var r report
	said := err == nil && crypto.Keccak256Hash(body) == done.Hash && json.Unmarshal(body, &r) == nil
	return []standard.Check{
		check("request", done.Request, common.HexToHash(o.In.Request)),
		check("answer on the chain", status.Response, done.Response),
		check("report's hash on the chain", common.Hash(status.ResponseHash), done.Hash),
		check("tag", status.Tag, validationTag),
		{Name: "report", Passed: said && r.Response == status.Response &&
			r.Same == (r.Found == r.Claimed && r.Problem == "")},
	}, nil
}

// Summary describes the answer.
func (v *validator) Summary(_ order[Validation], done Validated) standard.Summary {
	return standard.Summary{Text: fmt.Sprintf("Request %s about agent %s was answered with %d.", done.Request,
		done.Agent, done.Response),
		KeyActions: []string{"did the work again"}, Receipts: []string{done.Tx.Hex()}}
}
