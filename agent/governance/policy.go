package governance

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/robfig/cron/v3"
	"github.com/tailscale/hujson"

	jsonv2 "github.com/go-json-experiment/json"

	"repute"
)

const (
	maxFile = 256 << 10
	// maxBrackets bounds the nesting of a file before it is parsed, because the parser of comments
	// is recursive.
	maxBrackets = 5000
	// maxSignature bounds a signature, in bytes: contract wallets have long ones.
	maxSignature = 8192
)

// Policy is a checked policy. It does not change and is safe for concurrent use.
type Policy struct {
	file      File
	hash      common.Hash
	signature []byte
	window    cron.Schedule // nil without a maintenance window
	custom    []customRule
}

// Parse reads a policy: JSON, with comments and trailing commas allowed. The error is
// repute.ErrInvalid and names every member that is wrong. The signature is decoded and not verified;
// see Verifier.
func Parse(text []byte) (*Policy, error) {
	if len(text) > maxFile || bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > maxBrackets {
		return nil, repute.Invalid("policy", "too large", "at most 256 KiB and 5000 objects and lists")
	}
	raw, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, repute.Invalid("policy", fmt.Sprintf("%.200s", err.Error()), "JSON, with comments allowed")
	}
	if err := repute.CheckJSON("policy", raw); err != nil {
		return nil, err
	}
	p := &Policy{}
	if p.file, err = decode(raw); err != nil {
		return nil, err
	}
	p.file.Rules.Payment.RefundPolicy = cmp.Or(p.file.Rules.Payment.RefundPolicy, RefundNone)
	p.file.Rules.Reputation.UnknownClients = cmp.Or(p.file.Rules.Reputation.UnknownClients, UnknownRefuse)
	p.hash, err = hashOf(raw)
	if err := errors.Join(err, p.file.check(), p.readSignature(), p.readWindow(), p.compile()); err != nil {
		return nil, err
	}
	return p, nil
}

// File is the policy as written, with its defaults.
func (p *Policy) File() File { return p.file }

// Hash is keccak256 over the policy's canonical JSON (RFC 8785) without the member signature. The
// owner signs it.
func (p *Policy) Hash() common.Hash { return p.hash }

// Signature is the owner's, nil for a policy that is not signed.
func (p *Policy) Signature() []byte { return bytes.Clone(p.signature) }

// ReadsClientScore reports whether a rule compares the score of a client.
func (p *Policy) ReadsClientScore() bool {
	r := &p.file.Rules.Reputation
	return r.MinClientReputation != nil || r.RejectBelowScore != nil ||
		slices.ContainsFunc(p.custom, func(c customRule) bool { return strings.Contains(c.When, "client.") })
}

// hashOf computes the hash of a policy.
func hashOf(raw []byte) (common.Hash, error) {
	var members map[string]jsontext.Value
	if err := jsonv2.Unmarshal(raw, &members); err != nil {
		return common.Hash{}, document().Wrong(err)
	}
	delete(members, "signature")
	unsigned, err := jsonv2.Marshal(members)
	if err != nil {
		return common.Hash{}, fmt.Errorf("policy: %w", err)
	}
	canonical := jsontext.Value(unsigned)
	if err := canonical.Canonicalize(); err != nil {
		return common.Hash{}, repute.Invalid("policy", "has no canonical form", "JSON with each member once")
	}
	return crypto.Keccak256Hash(canonical), nil
}

// readSignature decodes the signature.
func (p *Policy) readSignature() (err error) {
	text := p.file.Signature
	if text == "" {
		return nil
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if p.signature, err = hex.DecodeString(digits); !ok || err != nil || len(digits) == 0 ||
		len(digits) > 2*maxSignature {
		return repute.Invalid("signature", "is no signature", "0x and hex digits, as the owner's wallet gives them")
	}
	return nil
}

// readWindow parses the maintenance window. A schedule with a zone is refused: the window is in UTC.
func (p *Policy) readWindow() (err error) {
	text := p.file.Rules.Upgrade.MaintenanceWindow
	if text == "" {
		return nil
	}
	const field, hint = "rules.upgrade.maintenanceWindow", "cron with five fields, in UTC: 0 2 * * *"
	if len(text) > 200 || strings.Contains(text, "=") {
		return repute.Invalid(field, "is no schedule", hint)
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	if p.window, err = parser.Parse(text); err != nil {
		return repute.Invalid(field, fmt.Sprintf("%.200s", err.Error()), hint)
	}
	if p.window.Next(time.Unix(0, 0).UTC()).IsZero() {
		return repute.Invalid(field, "never happens", hint)
	}
	return nil
}
