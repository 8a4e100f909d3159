package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Kinds of change. The data of each is the state after it, so that a reader who
// drops what was retracted and takes the rest in (block, log) order has the
// state of the tables.
const (
	kindTransferred = "agent.transferred"
	kindRegistered  = "agent.registered"
	kindURI         = "agent.uri"
	kindWallet      = "agent.wallet"
	kindMetadata    = "agent.metadata"
	kindApproval    = "agent.approval"
	kindOperator    = "operator"
	kindFeedback    = "feedback.given"
	kindRevoked     = "feedback.revoked"
	kindResponse    = "response.appended"
	kindRequested   = "validation.requested"
	kindResponded   = "validation.responded"

	// kindBackfilled stands for all changes of a range of blocks: read the state.
	kindBackfilled = "backfilled"
	// kindRewound says that everything above its block is undone; kindRetracted
	// follows for every change it undoes.
	kindRewound   = "rewound"
	kindRetracted = "retracted"
	// kindRepaired says that an agent, or the whole chain where none is named, was
	// rebuilt from its events: read the state.
	kindRepaired = "repaired"
)

// changeRow is a change on its way into the outbox.
type changeRow struct {
	kind string
	at   point
	id   *repute.TokenID
	data []byte
}

// change notes what a reader of the feed is told. A value that does not marshal
// is impossible by construction of the data types.
func (f *fold) change(kind string, at point, id *repute.TokenID, data any) {
	if f.quiet {
		return
	}
	f.out.changes = append(f.out.changes, changeRow{kind, at, id, marshal(data)})
}

func marshal(data any) []byte {
	b, err := json.Marshal(data)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return b
}

type transferredData struct {
	From     eip55  `json:"from"` // zero for the mint
	Owner    eip55  `json:"owner"`
	Wallet   *eip55 `json:"wallet"`
	Approved *eip55 `json:"approved"`
}

type registeredData struct {
	Owner   eip55      `json:"owner"`
	Claimed bool       `json:"claimed"`       // owner known from here only
	URI     *chainText `json:"uri,omitempty"` // absent when a newer one is set
}

type uriData struct {
	URI chainText `json:"uri"`
	By  eip55     `json:"by"`
}

type walletData struct {
	Wallet *eip55 `json:"wallet"` // null when cleared
}

type metadataData struct {
	Key   chainText  `json:"key"`
	Value chainBytes `json:"value"`
}

type approvalData struct {
	Approved *eip55 `json:"approved"` // null for none
}

type operatorData struct {
	Owner    eip55 `json:"owner"`
	Operator eip55 `json:"operator"`
	Approved bool  `json:"approved"`
}

type feedbackData struct {
	Client   eip55       `json:"client"`
	Index    uint64      `json:"index"`
	Value    string      `json:"value"` // decimal; divide by 10^decimals
	Decimals uint8       `json:"decimals"`
	Tag1     chainText   `json:"tag1"`
	Tag2     chainText   `json:"tag2"`
	Endpoint chainText   `json:"endpoint"`
	URI      chainText   `json:"uri"`
	Hash     common.Hash `json:"hash"`
}

func feedbackDataOf(e *repute.NewFeedback) feedbackData {
	return feedbackData{eip55(e.Client), e.Index, e.Value.String(), e.Decimals,
		chainText(e.Tag1), chainText(e.Tag2), chainText(e.Endpoint), chainText(e.URI), e.FeedbackHash}
}

type revokedData struct {
	Client eip55  `json:"client"`
	Index  uint64 `json:"index"`
}

type responseData struct {
	Client    eip55       `json:"client"`
	Index     uint64      `json:"index"`
	Responder eip55       `json:"responder"`
	URI       chainText   `json:"uri"`
	Hash      common.Hash `json:"hash"`
}

func responseDataOf(e *repute.ResponseAppended) responseData {
	return responseData{eip55(e.Client), e.Index, eip55(e.Responder), chainText(e.URI), e.ResponseHash}
}

type requestData struct {
	Contract    eip55       `json:"contract"`
	Trusted     bool        `json:"contractTrusted"`
	RequestHash common.Hash `json:"requestHash"`
	Validator   eip55       `json:"validator"`
	URI         chainText   `json:"uri"`
}

func requestDataOf(contract common.Address, trusted bool, e *repute.ValidationRequest) requestData {
	return requestData{eip55(contract), trusted, e.RequestHash, eip55(e.Validator), chainText(e.URI)}
}

type answerData struct {
	Contract    eip55       `json:"contract"`
	Trusted     bool        `json:"contractTrusted"`
	RequestHash common.Hash `json:"requestHash"`
	Validator   eip55       `json:"validator"`
	Response    uint8       `json:"response"`
	URI         chainText   `json:"uri"`
	Hash        common.Hash `json:"hash"`
	Tag         chainText   `json:"tag"`
}

func answerDataOf(contract common.Address, trusted bool, e *repute.ValidationResponse) answerData {
	return answerData{eip55(contract), trusted, e.RequestHash, eip55(e.Validator), e.Response, chainText(e.URI), e.ResponseHash, chainText(e.Tag)}
}

type backfilledData struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

type rewoundData struct {
	Block uint64      `json:"block"` // the last one that stands
	Hash  common.Hash `json:"hash"`
	From  uint64      `json:"from"` // the newest one before
}

type repairedData struct {
	Reason string `json:"reason"`
}

// eip55 is an address that marshals with its checksum.
type eip55 common.Address

// MarshalText writes 0x and 40 digits, capitals by EIP-55.
func (a eip55) MarshalText() ([]byte, error) { return []byte(common.Address(a).Hex()), nil }

// maybe is an address that is null when zero.
func maybe(a common.Address) *eip55 {
	if a == (common.Address{}) {
		return nil
	}
	return (*eip55)(&a)
}

// longestText bounds a foreign string in a change, in bytes.
const longestText = 16 << 10

// chainText is a string of the chain. In JSON it is {"text":…} when it is clean
// UTF-8, else {"hex":…}; beyond 16 KB it is cut and {"size","sha256"} name the whole.
type chainText string

// MarshalJSON writes the object described at the type.
func (s chainText) MarshalJSON() ([]byte, error) {
	var o struct {
		Text   *string `json:"text,omitempty"`
		Hex    string  `json:"hex,omitempty"`
		Size   int     `json:"size,omitempty"`
		SHA256 string  `json:"sha256,omitempty"`
	}
	kept := string(s)
	if len(s) > longestText {
		sum := sha256.Sum256([]byte(s))
		o.Size, o.SHA256 = len(s), "0x"+hex.EncodeToString(sum[:])
		kept = cutText(kept, longestText)
	}
	if utf8.ValidString(kept) && !strings.ContainsRune(kept, 0) {
		o.Text = &kept
	} else {
		o.Hex = "0x" + hex.EncodeToString([]byte(kept))
	}
	return json.Marshal(o)
}

// cutText cuts at n bytes, or up to three before so as not to split a rune.
func cutText(s string, n int) string {
	for cut := n; cut > n-utf8.UTFMax; cut-- {
		if utf8.RuneStart(s[cut]) {
			return s[:cut]
		}
	}
	return s[:n]
}

// chainBytes is a value of the chain: {"hex":…}, cut like chainText.
type chainBytes []byte

// MarshalJSON writes the object described at the type.
func (b chainBytes) MarshalJSON() ([]byte, error) {
	if len(b) <= longestText {
		return fmt.Appendf(nil, `{"hex":"0x%x"}`, []byte(b)), nil
	}
	return fmt.Appendf(nil, `{"hex":"0x%x","size":%d,"sha256":"0x%x"}`, []byte(b[:longestText]), len(b), sha256.Sum256(b)), nil
}
