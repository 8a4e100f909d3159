package eventdb

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// ChangeRow is a change on its way into the outbox.
type ChangeRow struct {
	Kind string
	At   chaindb.Point
	ID   *repute.TokenID
	Data []byte
}

// change notes what a reader of the feed is told. A value that does not marshal
// is impossible by construction of the data types.
func (f *fold) change(kind string, at chaindb.Point, id *repute.TokenID, data any) {
	if f.quiet {
		return
	}
	f.out.changes = append(f.out.changes, ChangeRow{kind, at, id, store.Marshal(data)})
}

type transferredData struct {
	From     store.Eip55  `json:"from"` // zero for the mint
	Owner    store.Eip55  `json:"owner"`
	Wallet   *store.Eip55 `json:"wallet"`
	Approved *store.Eip55 `json:"approved"`
}

type registeredData struct {
	Owner   store.Eip55 `json:"owner"`
	Claimed bool        `json:"claimed"`       // owner known from here only
	URI     *chainText  `json:"uri,omitempty"` // absent when a newer one is set
}

type uriData struct {
	URI chainText   `json:"uri"`
	By  store.Eip55 `json:"by"`
}

type walletData struct {
	Wallet *store.Eip55 `json:"wallet"` // null when cleared
}

type metadataData struct {
	Key   chainText  `json:"key"`
	Value chainBytes `json:"value"`
}

type approvalData struct {
	Approved *store.Eip55 `json:"approved"` // null for none
}

type operatorData struct {
	Owner    store.Eip55 `json:"owner"`
	Operator store.Eip55 `json:"operator"`
	Approved bool        `json:"approved"`
}

type feedbackData struct {
	Client   store.Eip55 `json:"client"`
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
	return feedbackData{store.Eip55(e.Client), e.Index, e.Value.String(), e.Decimals,
		chainText(e.Tag1), chainText(e.Tag2), chainText(e.Endpoint), chainText(e.URI), e.FeedbackHash}
}

type revokedData struct {
	Client store.Eip55 `json:"client"`
	Index  uint64      `json:"index"`
}

type responseData struct {
	Client    store.Eip55 `json:"client"`
	Index     uint64      `json:"index"`
	Responder store.Eip55 `json:"responder"`
	URI       chainText   `json:"uri"`
	Hash      common.Hash `json:"hash"`
}

func responseDataOf(e *repute.ResponseAppended) responseData {
	return responseData{store.Eip55(e.Client), e.Index, store.Eip55(e.Responder), chainText(e.URI), e.ResponseHash}
}

type requestData struct {
	Contract    store.Eip55 `json:"contract"`
	Trusted     bool        `json:"contractTrusted"`
	RequestHash common.Hash `json:"requestHash"`
	Validator   store.Eip55 `json:"validator"`
	URI         chainText   `json:"uri"`
}

func requestDataOf(contract common.Address, trusted bool, e *repute.ValidationRequest) requestData {
	return requestData{store.Eip55(contract), trusted, e.RequestHash, store.Eip55(e.Validator), chainText(e.URI)}
}

type answerData struct {
	Contract    store.Eip55 `json:"contract"`
	Trusted     bool        `json:"contractTrusted"`
	RequestHash common.Hash `json:"requestHash"`
	Validator   store.Eip55 `json:"validator"`
	Response    uint8       `json:"response"`
	URI         chainText   `json:"uri"`
	Hash        common.Hash `json:"hash"`
	Tag         chainText   `json:"tag"`
}

func answerDataOf(contract common.Address, trusted bool, e *repute.ValidationResponse) answerData {
	return answerData{store.Eip55(contract), trusted, e.RequestHash, store.Eip55(e.Validator), e.Response, chainText(e.URI), e.ResponseHash, chainText(e.Tag)}
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

// RepairedData is the data of a change of kind store.KindRepaired.
type RepairedData struct {
	Reason string `json:"reason"`
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
