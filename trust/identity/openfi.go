package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/trust"
	"repute/trust/fixed"
)

// ValidationStatus says how the validation part of an OpenFiSnapshot came about.
type ValidationStatus string

// Validation statuses.
const (
	ValidationDisabled ValidationStatus = "disabled" // the chain has no allow-listed validation contract
	ValidationPassed   ValidationStatus = "passed"
	ValidationFailed   ValidationStatus = "failed" // the newest answer says no, or there is none
)

// Weights of the five parts in hundredths.
const (
	partIdentity     = 25
	partRegistration = 20
	partAgentJSON    = 20
	partOperator     = 20
	partValidation   = 15
)

// passingAnswer is the least answer of a validator, 0 to 100, that passes.
const passingAnswer = 50

// OpenFiSnapshot is the trust snapshot of OpenFi: five yes-or-no checks of who an agent
// is, 0 to 1. How the agent worked is not in it; it stands beside the score and does not
// enter it.
type OpenFiSnapshot struct {
	IdentityExists       bool             `json:"identityExists"`
	RegistrationResolves bool             `json:"registrationResolves"`
	AgentJSONResolves    bool             `json:"agentJsonResolves"`
	OperatorMatches      bool             `json:"operatorMatches"`
	ValidationStatus     ValidationStatus `json:"validationStatus"`
	// Overall gives nothing for a validation that is disabled; OverallGranted gives the
	// whole part for it, as OpenFi itself does. They differ only then.
	Overall        fixed.Fixed `json:"overallTrustScore"`
	OverallGranted fixed.Fixed `json:"overallTrustScoreValidationGranted"`
	// Lacks says for each part that did not pass why not, in order of the parts.
	Lacks []OpenFiLack `json:"lacks"`
	// Block is what the chain's side is true at; SnapshotAt is its time.
	Block      uint64    `json:"block"`
	SnapshotAt time.Time `json:"snapshotAt"`
	// Read are the files that were used.
	Read []trust.ReadDocument `json:"read"`
}

// OpenFiLack is a part that did not pass.
type OpenFiLack struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
}

// OpenFi makes the snapshot of an agent out of what is stored; nothing is fetched.
// repute.ErrNotFound as in query.Agent.
func OpenFi(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (OpenFiSnapshot, error) {
	checks, err := query.ReadTrustChecks(ctx, db, id, at, capabilityFiles)
	if err != nil {
		return OpenFiSnapshot{}, err
	}
	return openFi(checks), nil
}

// maxCapabilityFiles bounds capabilityFiles.
const maxCapabilityFiles = 16

// capabilityFiles are the URIs under which an agent's registration file names a
// capability manifest: endpoints that end in agent.json or agent-card.json. The first
// that can be read counts.
func capabilityFiles(a repute.Agent) (uris []string) {
	if a.Document.Registration == nil {
		return nil
	}
	for _, s := range a.Document.Registration.Services {
		u, err := url.Parse(s.Endpoint)
		if err != nil || len(uris) == maxCapabilityFiles {
			continue
		}
		if base := path.Base(u.Path); (base == "agent.json" || base == "agent-card.json") &&
			!slices.Contains(uris, s.Endpoint) {
			uris = append(uris, s.Endpoint)
		}
	}
	return uris
}

// openFi computes OpenFi's summary of trust: parts of identity with fixed weights, and
// validations.
func openFi(c query.TrustChecks) OpenFiSnapshot {
	s := OpenFiSnapshot{Block: c.AsOf.Block.Number, SnapshotAt: c.AsOf.Block.Time, Lacks: []OpenFiLack{},
		Read: []trust.ReadDocument{}}
	points := 0
	check := func(passed *bool, part string, weight int, reason string) {
		if *passed = reason == ""; *passed {
			points += weight
		} else {
			s.Lacks = append(s.Lacks, OpenFiLack{part, reason})
		}
	}
	check(&s.IdentityExists, "identityExists", partIdentity, "")
	check(&s.RegistrationResolves, "registrationResolves", partRegistration, lacksRegistration(c.Agent.Document))
	own, manifest, lack := capabilities(c)
	check(&s.AgentJSONResolves, "agentJsonResolves", partAgentJSON, lack)
	check(&s.OperatorMatches, "operatorMatches", partOperator, lacksOperator(c.Agent, manifest))
	var passed bool
	granted := 0
	if s.ValidationStatus, lack = validation(c); s.ValidationStatus == ValidationDisabled {
		granted = partValidation
	}
	check(&passed, "validation", partValidation, lack)
	s.Overall, s.OverallGranted = fixed.Ratio(int64(points), 100), fixed.Ratio(int64(points+granted), 100)
	if sum := c.Agent.Document.SHA256; sum != [32]byte{} {
		s.Read = append(s.Read, trust.ReadDocument{SHA256: sum, ParserVersion: c.ParserVersion})
	}
	if manifest != nil && !own {
		s.Read = append(s.Read, trust.ReadDocument{SHA256: c.File.File.SHA256})
	}
	return s
}

// lacksRegistration says why a registration file does not count as resolved, empty when it does.
func lacksRegistration(d repute.Document) string {
	switch d.Status {
	case repute.DocumentOK:
		return ""
	case repute.DocumentNone:
		return "the agent has no URI"
	case repute.DocumentPending:
		return "the document was not read yet"
	case repute.DocumentInvalid:
		return fmt.Sprintf("the document has %d problems, some of them errors", d.ProblemCount)
	}
	return fmt.Sprintf("the document could not be read: %s", d.Reason)
}

// operatorMembers are what names the operator's wallet in a capability manifest.
type operatorMembers struct {
	Operator string `json:"operatorWallet"`
	Schema   string `json:"schema"`
}

// capabilities finds the agent's capability manifest: its own document, where that is one
// too, or a file that it names. The manifest is nil where lack says why there is none.
func capabilities(c query.TrustChecks) (own bool, manifest *operatorMembers, lack string) {
	if r := c.Agent.Document.Registration; r != nil && c.Agent.Document.Status == repute.DocumentOK {
		m := &operatorMembers{Operator: member(r.Extra, "operatorWallet"), Schema: member(r.Extra, "schema")}
		if m.Operator != "" || strings.HasPrefix(m.Schema, "https://openfi.dev/schemas/agent/") {
			return true, m, ""
		}
	}
	switch f := c.File; {
	case f == nil && len(capabilityFiles(c.Agent)) == 0:
		return false, nil, "the registration file names no agent.json"
	case f == nil:
		return false, nil, "the agent.json was not read: the index knows only that it is named"
	case f.File.Status == repute.DocumentDenied:
		return false, nil, "the operator does not show the agent.json"
	case f.Body == nil:
		return false, nil, "the agent.json could not be read: " + strings.TrimSpace(f.File.Reason+" "+f.File.Detail)
	default:
		var m operatorMembers
		if err := json.Unmarshal(f.Body, &m); err != nil || !bytes.HasPrefix(bytes.TrimSpace(f.Body), []byte("{")) {
			return false, nil, "the agent.json is no JSON object, or its operatorWallet is no text"
		}
		return false, &m, ""
	}
}

// member reads a member that is a text.
func member(of map[string]json.RawMessage, name string) (text string) {
	if json.Unmarshal(of[name], &text) != nil {
		return ""
	}
	return text
}

// lacksOperator compares the chain's wallet with what the agent's files declare. A
// registration file of the standard has no operatorWallet; it may list wallets.
func lacksOperator(a repute.Agent, manifest *operatorMembers) string {
	if a.Wallet == (common.Address{}) {
		return "the chain has no agentWallet"
	}
	if manifest != nil && manifest.Operator != "" {
		declared, err := repute.ParseAddress("operatorWallet", manifest.Operator)
		switch {
		case err != nil:
			return "operatorWallet is no address"
		case declared != a.Wallet:
			return fmt.Sprintf("operatorWallet %s is not the chain's agentWallet %s", declared.Hex(), a.Wallet.Hex())
		}
		return ""
	}
	if r := a.Document.Registration; r != nil &&
		slices.Contains(r.Wallets(), repute.Account{ChainID: a.ID.ChainID, Address: a.Wallet}) {
		return ""
	}
	return "no file declares the agentWallet"
}

// validation says what the newest answer of an allow-listed validation contract is, in OpenFi's
// terms, and in words.
func validation(c query.TrustChecks) (ValidationStatus, string) {
	switch {
	case !c.Validating:
		return ValidationDisabled, "disabled: no validation contract of the chain is allow-listed"
	case c.Answer == nil:
		return ValidationFailed, "no allow-listed validation contract has an answer about the agent"
	case c.Answer.Response < passingAnswer:
		return ValidationFailed, fmt.Sprintf("the newest answer is %d of 100, by %s in block %d", c.Answer.Response,
			c.Answer.Validator.Hex(), c.Answer.Block)
	}
	return ValidationPassed, ""
}
