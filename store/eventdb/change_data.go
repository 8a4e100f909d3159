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
	"repute/store/chaindb"
	"repute/store/changedata"
)

// ChangeRow is a change before it is stored.
type ChangeRow struct {
	// Kind is one of the kinds of package changedata.
	Kind string
	// At is the position of the event that caused the change.
	At chaindb.Point
	// ID is the agent that changed, nil when none did.
	ID *repute.TokenID
	// Data is a JSON object, by the kind.
	Data []byte
	// Owner is the address whose operators changed, zero for changes of another kind.
	Owner common.Address
	// From is the first block of a range that was stored without a change for each event, 0 for
	// changes of another kind.
	From uint64
}

// change adds a change for readers of the feed. The data types cannot fail to marshal.
func (f *fold) change(kind string, at chaindb.Point, id *repute.TokenID, data any) {
	if f.quiet {
		return
	}
	f.out.changes = append(f.out.changes, ChangeRow{Kind: kind, At: at, ID: id, Data: changedata.Marshal(data)})
}

// transferredData is the data of a change of kind changedata.KindTransferred.
type transferredData struct {
	From     changedata.Eip55  `json:"from"` // zero for the mint
	Owner    changedata.Eip55  `json:"owner"`
	Wallet   *changedata.Eip55 `json:"wallet"`
	Approved *changedata.Eip55 `json:"approved"`
}

// registeredData is the data of a change of kind changedata.KindRegistered.
type registeredData struct {
	Owner   changedata.Eip55 `json:"owner"`
	Claimed bool             `json:"claimed"`       // owner known from here only
	URI     *chainText       `json:"uri,omitempty"` // absent when a newer one is set
}

// uriData is the data of a change of kind changedata.KindURI.
type uriData struct {
	URI chainText        `json:"uri"`
	By  changedata.Eip55 `json:"by"`
}

// walletData is the data of a change of kind changedata.KindWallet.
type walletData struct {
	Wallet *changedata.Eip55 `json:"wallet"` // null when cleared
}

// metadataData is the data of a change of kind changedata.KindMetadata.
type metadataData struct {
	Key   chainText  `json:"key"`
	Value chainBytes `json:"value"`
}

// approvalData is the data of a change of kind changedata.KindApproval.
type approvalData struct {
	Approved *changedata.Eip55 `json:"approved"` // null for none
}

// operatorData is the data of a change of kind changedata.KindOperator.
type operatorData struct {
	Owner    changedata.Eip55 `json:"owner"`
	Operator changedata.Eip55 `json:"operator"`
	Approved bool             `json:"approved"`
}

// feedbackData is the data of a change of kind changedata.KindFeedback.
type feedbackData struct {
	Client   changedata.Eip55 `json:"client"`
	Index    uint64           `json:"index"`
	Value    string           `json:"value"` // decimal; divide by 10^decimals
	Decimals uint8            `json:"decimals"`
	Tag1     chainText        `json:"tag1"`
	Tag2     chainText        `json:"tag2"`
	Endpoint chainText        `json:"endpoint"`
	URI      chainText        `json:"uri"`
	Hash     common.Hash      `json:"hash"`
}

// feedbackDataOf returns the data of a change for new feedback.
func feedbackDataOf(e *repute.NewFeedback) feedbackData {
	return feedbackData{changedata.Eip55(e.Client), e.Index, e.Value.String(), e.Decimals,
		chainText(e.Tag1), chainText(e.Tag2), chainText(e.Endpoint), chainText(e.URI), e.FeedbackHash}
}

// revokedData is the data of a change of kind changedata.KindRevoked.
type revokedData struct {
	Client changedata.Eip55 `json:"client"`
	Index  uint64           `json:"index"`
}

// responseData is the data of a change of kind changedata.KindResponse.
type responseData struct {
	Client    changedata.Eip55 `json:"client"`
	Index     uint64           `json:"index"`
	Responder changedata.Eip55 `json:"responder"`
	URI       chainText        `json:"uri"`
	Hash      common.Hash      `json:"hash"`
}

// responseDataOf returns the data of a change for a response to feedback.
func responseDataOf(e *repute.ResponseAppended) responseData {
	return responseData{changedata.Eip55(e.Client), e.Index, changedata.Eip55(e.Responder), chainText(e.URI),
		e.ResponseHash}
}

// requestData is the data of a change of kind changedata.KindRequested.
type requestData struct {
	Contract    changedata.Eip55 `json:"contract"`
	Trusted     bool             `json:"contractTrusted"`
	RequestHash common.Hash      `json:"requestHash"`
	Validator   changedata.Eip55 `json:"validator"`
	URI         chainText        `json:"uri"`
}

// requestDataOf returns the data of a change for a validation request to a contract.
func requestDataOf(contract common.Address, trusted bool, e *repute.ValidationRequest) requestData {
	return requestData{changedata.Eip55(contract), trusted, e.RequestHash, changedata.Eip55(e.Validator),
		chainText(e.URI)}
}

// answerData is the data of a change of kind changedata.KindResponded.
type answerData struct {
	Contract    changedata.Eip55 `json:"contract"`
	Trusted     bool             `json:"contractTrusted"`
	RequestHash common.Hash      `json:"requestHash"`
	Validator   changedata.Eip55 `json:"validator"`
	Response    uint8            `json:"response"`
	URI         chainText        `json:"uri"`
	Hash        common.Hash      `json:"hash"`
	Tag         chainText        `json:"tag"`
}

// answerDataOf returns the data of a change for a validator's response.
func answerDataOf(contract common.Address, trusted bool, e *repute.ValidationResponse) answerData {
	return answerData{changedata.Eip55(contract), trusted, e.RequestHash, changedata.Eip55(e.Validator), e.Response,
		chainText(e.URI), e.ResponseHash, chainText(e.Tag)}
}

// backfilledData is the data of a change of kind changedata.KindBackfilled.
type backfilledData struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// rewoundData is the data of a change of kind changedata.KindRewound.
type rewoundData struct {
	Block uint64      `json:"block"` // the newest block after the rewind
	Hash  common.Hash `json:"hash"`
	From  uint64      `json:"from"` // the newest one before
}

// RepairedData is the data of a change of kind changedata.KindRepaired.
type RepairedData struct {
	Reason string `json:"reason"`
}

// longestText bounds an untrusted string in a change, in bytes.
const longestText = 16 << 10

// chainText is a string of the chain. In JSON it is {"text":…} when it is clean UTF-8, else
// {"hex":…}. A longer one than longestText is cut, and {"size","sha256"} describe the whole.
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

// cutText returns at most n bytes of s, up to three fewer so that no rune is split.
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
	return fmt.Appendf(nil, `{"hex":"0x%x","size":%d,"sha256":"0x%x"}`, []byte(b[:longestText]), len(b),
		sha256.Sum256(b)), nil
}
