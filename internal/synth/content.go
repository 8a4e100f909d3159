package synth

import (
	"bytes"
	"compress/gzip"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// What a history holds is derived from small numbers, so that the state of
// millions of events fits in memory and can be written out again at any time.

// mix is the finalizer of splitmix64: a bijection that scatters.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// party is an account; 0 is none. The upper bits say what it does.
type party uint32

const (
	owners party = (iota + 1) << 28
	clients
	validators
	operators
	administrators
)

// address differs for every party: it ends in its number.
func (p party) address() (a common.Address) {
	if p == 0 {
		return a
	}
	x := mix(uint64(p))
	binary.BigEndian.PutUint64(a[:], x)
	binary.BigEndian.PutUint64(a[8:], mix(x))
	binary.BigEndian.PutUint32(a[16:], uint32(p))
	return a
}

// digest is a hash; 0 is the zero hash.
type digest uint64

// hash stretches a digest to 32 bytes. Different digests have different hashes.
func (d digest) hash() (h common.Hash) {
	if d == 0 {
		return h
	}
	x := uint64(d)
	for i := 0; i < len(h); i += 8 {
		x = mix(x)
		binary.BigEndian.PutUint64(h[i:], x)
	}
	return h
}

// amount is Value * 10^Exp, an int128.
type amount struct {
	Value int64
	Exp   uint8
}

// big is the amount as contracts hold it.
func (a amount) big() *big.Int {
	v := big.NewInt(a.Value)
	if a.Exp == 0 {
		return v
	}
	return v.Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Exp)), nil))
}

// text is a URI or an endpoint: a form in the top byte and a number. 0 is the
// empty string; different texts are different strings.
type text uint64

const (
	formDocument text = (iota + 1) << 56 // data:application/json;base64
	formWeb
	formIPFS
	formGzip
	formInline
	formJunk
	formFeedback
	formEndpoint
	formResponse
	formRequest
	formMask text = 0xff << 56
)

// String returns the text itself.
func (t text) String() string {
	n := uint64(t &^ formMask)
	switch t & formMask {
	case formDocument:
		return "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(Document(n)))
	case formWeb:
		return fmt.Sprintf("https://agents-%d.example/agents/%d/agent-card.json", n%97, n)
	case formIPFS:
		return "ipfs://" + cid(n)
	case formGzip:
		return "data:application/json;enc=gzip;level=6;base64," + base64.StdEncoding.EncodeToString(zipped(Document(n)))
	case formInline:
		return Document(n)
	case formJunk:
		return junk[n%uint64(len(junk))] + strings.Repeat("!", int(n/uint64(len(junk))))
	case formFeedback:
		return fmt.Sprintf("https://feedback-%d.example/files/%d.json", n%31, n)
	case formEndpoint:
		return fmt.Sprintf("https://agent-%d.example/mcp", n)
	case formResponse:
		return fmt.Sprintf("https://responses.example/%d", n)
	case formRequest:
		return fmt.Sprintf("https://validations.example/requests/%d.json", n)
	}
	return ""
}

// junk is what is found where a URI belongs.
var junk = []string{"tinybanana", "cd", "0x7a16ff8270133f063aab6c9977183d9e72835428", `c:\agents\card.json`, "agent"}

// cid is a version 1 identifier of raw bytes.
func cid(n uint64) string {
	h := digest(n + 1).hash()
	return "b" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(
		append([]byte{0x01, 0x55, 0x12, 0x20}, h[:]...)))
}

// zipped compresses a text. The same version of Go gives the same bytes.
func zipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	if err != nil || w.Close() != nil {
		return nil // a buffer takes everything
	}
	return b.Bytes()
}

// Document is the registration file of agent number n.
func Document(n uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Agent %d","description":"`, n)
	for i, x := uint64(0), mix(n); i < 3+n%29; i, x = i+1, mix(x) {
		b.WriteString(words[x%uint64(len(words))])
		b.WriteByte(' ')
	}
	b.WriteString(`","image":"","active":true`)
	if n%3 == 0 {
		fmt.Fprintf(&b,
			`,"services":[{"name":"MCP","endpoint":"https://agent-%d.example/mcp","version":"2025-06-18"}],"x402Support":true`, n)
	}
	b.WriteString(`,"supportedTrust":["reputation"]}`)
	return b.String()
}

var words = strings.Fields("an agent that answers questions about markets weather code music travel health law art and " +
	"trades tokens reports prices reads documents writes summaries plans routes books tables checks facts")

const (
	tagCount = 576 // with the empty one
	// mixedTags have values of several decimals.
	mixedTags = 20
	tagVouch  = 1
)

// newTags lists every tag by number. Tag 0 is empty; the first ones are named as they are seen in use.
func newTags() []string {
	t := []string{"", "miner-vouch", "trust", "liveness", "starred", "reachable", "ownerVerified", "uptime",
		"successRate",
		"responseTime", "blocktimeFreshness", "revenues", "tradingYield", "quality", "x402-payment", "accuracy",
		"speed",
		"reliability", "security", "helpfulness", "day", "week", "month", "year", "\u2b50", "validation",
		"hard_finality"}
	for n := len(t); n < tagCount; n++ {
		t = append(t, fmt.Sprintf("tag-%03d", n))
	}
	return t
}

// metadataKeys are what agents store on chain. Empty and look-alike keys are
// legal.
var metadataKeys = []string{"category", "version", "agentName", "x402.payTo", "oasf.skills", "homepage", "",
	"AgentWallet"}

// metadataValue is the value number n of a key; every 16th is empty.
func metadataValue(n uint32) []byte {
	if n%16 == 0 {
		return nil
	}
	if n%5 == 0 {
		a := party(n).address()
		return a[:]
	}
	return fmt.Appendf(nil, "value %d", n)
}
