package statement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
)

// wire is the JSON of a signed statement: the typed data as eth_signTypedData_v4 takes it,
// and the signature beside it.
type wire struct {
	Types       map[string][]member `json:"types"`
	Domain      wireDomain          `json:"domain"`
	PrimaryType string              `json:"primaryType"`
	Message     message             `json:"message"`
	Signer      common.Address      `json:"signer"`
	Signature   hexutil.Bytes       `json:"signature"`
}

type wireDomain struct {
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	ChainID  uint64         `json:"chainId"`
	Contract common.Address `json:"verifyingContract"`
}

// message has the members of the typed struct, in order.
type message struct {
	AgentID     string      `json:"agentId"` // decimal
	Status      string      `json:"status"`  // rated, thin or unrated
	Score       int64       `json:"scoreMilli"`
	Low         int64       `json:"lowMilli"`
	High        int64       `json:"highMilli"`
	Confidence  uint64      `json:"confidenceMicro"`
	Tier        uint64      `json:"tier"`
	Guarded     bool        `json:"guarded"`
	Block       uint64      `json:"blockNumber"`
	BlockHash   common.Hash `json:"blockHash"`
	BlockTime   uint64      `json:"blockTime"`
	HoldsBlock  uint64      `json:"holdsBlock"`
	HoldsTime   uint64      `json:"holdsTime"`
	VerifiedTo  uint64      `json:"verifiedTo"`
	Epoch       uint64      `json:"epoch"`
	Scorer      string      `json:"scorer"`
	Params      common.Hash `json:"params"`
	Tags        common.Hash `json:"tags"`
	Roots       common.Hash `json:"roots"`
	Links       common.Hash `json:"links"`
	Sources     common.Hash `json:"sources"`
	Credentials common.Hash `json:"credentials"`
	FileScales  common.Hash `json:"fileScales"`
	Evidence    common.Hash `json:"evidence"`
	Issued      uint64      `json:"issuedAt"`
	Expires     uint64      `json:"expiresAt"`
}

// types are the definitions of the typed data.
func types() map[string][]member {
	own := []member{}
	for _, v := range new(Statement).values() {
		own = append(own, v.member)
	}
	return map[string][]member{"EIP712Domain": domainMembers(), primaryType: own}
}

// MarshalJSON writes the statement as docs/reference/statements.md has it.
func (s Signed) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{Types: types(), PrimaryType: primaryType, Signer: s.Signer, Signature: s.Signature[:],
		Domain: wireDomain{domainName, domainVersion, s.Agent.ChainID, s.Agent.Registry},
		Message: message{AgentID: s.Agent.TokenID.Dec(), Status: string(s.Status), Score: int64(s.Score),
			Low:        int64(s.Low),
			High:       int64(s.High),
			Confidence: uint64(s.Confidence), Tier: uint64(s.Tier), Guarded: s.Guarded, Block: s.Block.Number,
			BlockHash: s.Block.Hash, BlockTime: unix(s.Block.Time),
			HoldsBlock: s.Holds.Number, HoldsTime: unix(s.Holds.Time), VerifiedTo: s.Holds.VerifiedTo, Epoch: s.Epoch,
			Scorer: s.Scorer, Params: s.Params,
			Tags: s.Tags, Roots: s.Roots, Links: s.Links, Sources: s.Sources, Credentials: s.Credentials,
			FileScales: s.FileScales, Evidence: s.Evidence,
			Issued: unix(s.IssuedAt), Expires: unix(s.ExpiresAt)}})
}

// UnmarshalJSON reads what MarshalJSON writes, and nothing else: other types, another
// domain or members nobody knows are repute.ErrInvalid. It does not verify.
func (s *Signed) UnmarshalJSON(b []byte) error {
	var w wire
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return repute.Invalid("statement", err.Error(),
			"the object signed of a reputation answer, as docs/reference/statements.md has it")
	}
	if _, err := dec.Token(); err != io.EOF {
		return repute.Invalid("statement", "something follows it", "give one statement")
	}
	if err := w.check(); err != nil {
		return err
	}
	token, err := repute.ParseTokenID(w.Message.AgentID)
	if err != nil {
		return repute.Invalid("message.agentId", "is no token id", "a decimal number in quotes")
	}
	m := w.Message
	*s = Signed{Signer: w.Signer, Statement: Statement{
		Agent:  repute.AgentID{ChainID: w.Domain.ChainID, Registry: w.Domain.Contract, TokenID: token},
		Status: repute.Status(m.Status),
		Score:  repute.Points(m.Score), Low: repute.Points(m.Low), High: repute.Points(m.High),
		Confidence: int64(m.Confidence), Tier: int(m.Tier), Guarded: m.Guarded,
		Block: repute.Block{Number: m.Block, Hash: m.BlockHash, Time: timeOf(m.BlockTime)},
		Holds: HoldsAsOf{m.HoldsBlock, timeOf(m.HoldsTime), m.VerifiedTo}, Epoch: m.Epoch, Scorer: m.Scorer,
		Params: m.Params,
		Tags:   m.Tags, Roots: m.Roots, Links: m.Links, Sources: m.Sources, Credentials: m.Credentials,
		FileScales: m.FileScales, Evidence: m.Evidence,
		IssuedAt: timeOf(m.Issued), ExpiresAt: timeOf(m.Expires)}}
	copy(s.Signature[:], w.Signature)
	return nil
}

func timeOf(seconds uint64) time.Time { return time.Unix(int64(seconds), 0).UTC() }

// maxTime is the last second of the year 9999.
const maxTime = 253402300799

// check refuses typed data that is not that of a score, and numbers that no statement has. Statement.Hash uses the types
// of this package, so a sender's other types MUST be refused here.
func (w *wire) check() error {
	bad := func(field, reason string) error {
		return repute.Invalid(field, reason, "see docs/reference/statements.md")
	}
	own := types()
	m := &w.Message
	switch {
	case w.PrimaryType != primaryType:
		return bad("primaryType", "is not "+primaryType)
	case w.Domain.Name != domainName || w.Domain.Version != domainVersion:
		return bad("domain", fmt.Sprintf("is %.50q, version %.20q, not %q, version %q", w.Domain.Name, w.Domain.Version,
			domainName, domainVersion))
	case len(w.Types) != len(own) || !slices.Equal(w.Types[primaryType], own[primaryType]) ||
		!slices.Equal(w.Types["EIP712Domain"], own["EIP712Domain"]):
		return bad("types", "are not those of a score")
	case !slices.Contains(repute.Statuses(), repute.Status(m.Status)):
		return bad("message.status", fmt.Sprintf("%.20q is none of %v", m.Status, repute.Statuses()))
	case len(w.Signature) != 65:
		return bad("signature", "has not 65 bytes")
	case m.BlockTime > maxTime || m.HoldsTime > maxTime || m.Issued > maxTime || m.Expires > maxTime:
		return bad("message", "has a time after the year 9999")
	case m.Confidence > 1_000_000 || m.Tier > math.MaxInt16:
		return bad("message", "has a confidence above 1, or no such tier")
	}
	return nil
}

// KeyList is the list of keys that an operator publishes.
type KeyList struct {
	Keys []Key
}

type wireKeys struct {
	Keys []wireKey `json:"keys"`
}

type wireKey struct {
	Address common.Address `json:"address"`
	From    *time.Time     `json:"from"`
	To      *time.Time     `json:"to"`
}

// MarshalJSON writes {"keys":[{"address","from","to"}]}; null is no bound.
func (l KeyList) MarshalJSON() ([]byte, error) {
	out := wireKeys{make([]wireKey, len(l.Keys))}
	for i, k := range l.Keys {
		out.Keys[i] = wireKey{k.Address, timePointer(k.From), timePointer(k.To)}
	}
	return json.Marshal(out)
}

// timePointer is nil for the zero time, which bounds nothing.
func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// UnmarshalJSON reads what MarshalJSON writes; members nobody knows are left out.
func (l *KeyList) UnmarshalJSON(b []byte) error {
	var in wireKeys
	if err := json.Unmarshal(b, &in); err != nil {
		return repute.Invalid("keys", err.Error(), "the list that /.well-known/repute-keys.json gives")
	}
	if in.Keys == nil {
		return repute.Invalid("keys", "no list of keys is in it", "the list that /.well-known/repute-keys.json gives")
	}
	l.Keys = make([]Key, len(in.Keys))
	for i, k := range in.Keys {
		l.Keys[i].Address = k.Address
		if k.From != nil {
			l.Keys[i].From = *k.From
		}
		if k.To != nil {
			l.Keys[i].To = *k.To
		}
	}
	return nil
}
