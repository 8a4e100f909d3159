package signed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
)

// Headers of answers. The first three are the specification's; the others are the fields that a
// client needs to verify the signature.
const (
	HeaderAgentID    = "X-Agent-ID"
	HeaderSignature  = "X-Agent-Signature"
	HeaderVersion    = "X-Agent-Version"
	HeaderTaskHash   = "X-Agent-Task-Hash"
	HeaderResultHash = "X-Agent-Result-Hash"
	HeaderTimestamp  = "X-Agent-Timestamp"
	HeaderMetadata   = "X-Agent-Metadata"
	HeaderRegistry   = "X-Agent-Registry" // eip155:{chain}:{registry}: the domain
)

// Response is an answer with its signature.
type Response struct {
	TaskResponse
	Domain    Domain
	Signature []byte
}

// Write sets the headers of a signed answer.
func (r *Response) Write(h http.Header, version string) {
	h.Set(HeaderAgentID, r.AgentID.Dec())
	h.Set(HeaderSignature, hexutil.Encode(r.Signature))
	h.Set(HeaderVersion, version)
	h.Set(HeaderTaskHash, r.TaskHash.Hex())
	h.Set(HeaderResultHash, r.ResultHash.Hex())
	h.Set(HeaderTimestamp, number(r.Timestamp))
	h.Set(HeaderMetadata, r.Metadata)
	h.Set(HeaderRegistry, fmt.Sprintf("eip155:%d:%s", r.Domain.ChainID, r.Domain.Registry.Hex()))
}

// ReadResponse reads the signature from the headers of an answer. repute.ErrInvalid names the header
// that is missing or wrong.
func ReadResponse(h http.Header) (r Response, err error) {
	id := h.Get(HeaderAgentID)
	if ref, err := repute.ParseAgentRef(id); err == nil {
		r.AgentID = ref.TokenID
	} else {
		return r, repute.Invalid(HeaderAgentID, fmt.Sprintf("%.80q is no agent id", id), "a decimal number")
	}
	registry := strings.Split(h.Get(HeaderRegistry), ":")
	if len(registry) != 3 || registry[0] != "eip155" || !common.IsHexAddress(registry[2]) {
		return r, repute.Invalid(HeaderRegistry, fmt.Sprintf("%.80q is no registry", h.Get(HeaderRegistry)),
			"eip155:{chain}:{address}")
	}
	if r.Domain.ChainID, err = repute.ParseChainID(registry[1]); err != nil {
		return r, err
	}
	r.Domain.Registry, r.Metadata = common.HexToAddress(registry[2]), h.Get(HeaderMetadata)
	if r.Timestamp, err = parseTime(HeaderTimestamp, h.Get(HeaderTimestamp)); err != nil {
		return r, err
	}
	if r.TaskHash, err = parseHash(HeaderTaskHash, h.Get(HeaderTaskHash)); err != nil {
		return r, err
	}
	if r.ResultHash, err = parseHash(HeaderResultHash, h.Get(HeaderResultHash)); err != nil {
		return r, err
	}
	r.Signature, err = parseSignature(HeaderSignature, h.Get(HeaderSignature))
	return r, err
}

// Verify returns the account whose key signed the answer with a body. repute.ErrInvalid where the
// body is another one, or the signature is none of a key.
func (r *Response) Verify(body []byte) (common.Address, error) {
	if got := HashBody(body); got != r.ResultHash {
		return common.Address{}, repute.Invalid("body", fmt.Sprintf("has the hash %s, signed is %s", got, r.ResultHash),
			"the body as the agent sent it")
	}
	digest, err := Digest(r.Data(r.Domain))
	if err != nil {
		return common.Address{}, err
	}
	return Recover(digest, r.Signature)
}

// maxStored bounds a stored answer, in bytes.
const maxStored = 32 << 20

// ParseHTTP reads a stored answer: status line, headers, an empty line and the body, as curl -i
// prints it. A body that is still compressed by gzip is decompressed. Headers of proxies (100
// Continue) are skipped.
func ParseHTTP(in io.Reader) (status int, h http.Header, body []byte, err error) {
	r := bufio.NewReader(io.LimitReader(in, maxStored))
	for {
		text := textproto.NewReader(r)
		line, err := text.ReadLine()
		if err != nil {
			return 0, nil, nil, wrongFile(err)
		}
		proto, code, _ := strings.Cut(line, " ")
		code, _, _ = strings.Cut(code, " ")
		if status, err = strconv.Atoi(code); err != nil || !strings.HasPrefix(proto, "HTTP/") {
			return 0, nil, nil, wrongFile(fmt.Errorf("the first line is no status line"))
		}
		mime, err := text.ReadMIMEHeader()
		if err != nil {
			return 0, nil, nil, wrongFile(err)
		}
		if h = http.Header(mime); status >= 200 {
			break
		}
	}
	if body, err = io.ReadAll(r); err != nil {
		return 0, nil, nil, wrongFile(err)
	}
	if strings.EqualFold(h.Get("Content-Encoding"), "gzip") && bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, nil, nil, wrongFile(err)
		}
		if body, err = io.ReadAll(io.LimitReader(z, maxStored)); err != nil {
			return 0, nil, nil, wrongFile(err)
		}
	}
	return status, h, body, nil
}

// wrongFile is the error for a stored answer that cannot be read.
func wrongFile(err error) error {
	return repute.Invalid("file", err.Error(), "an answer with its headers, as curl -i prints it")
}
