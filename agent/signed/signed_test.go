package signed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
	"repute/agent/signed"
)

func domain() signed.Domain {
	return signed.Domain{ChainID: 8453, Registry: common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432")}
}

// samples is one value of each type.
func samples() map[string]apitypes.TypedData {
	id, d := *uint256.NewInt(42), domain()
	response := signed.TaskResponse{AgentID: id, TaskHash: common.Hash{1}, ResultHash: common.Hash{2},
		Timestamp: 1700000000, Metadata: "m"}
	receipt := signed.PaymentReceipt{From: common.Address{1}, To: common.Address{2}, Amount: big.NewInt(1e15),
		Currency: "ETH",
		TaskHash: common.Hash{1}, Timestamp: 1700000000}
	request := signed.TaskRequest{AgentID: id, Client: common.Address{1}, TaskHash: common.Hash{1},
		Timestamp: 1700000000}
	policy := signed.Policy{AgentID: id, PolicyHash: common.Hash{3}}
	beat := signed.Heartbeat{AgentID: id, Mode: "normal", Version: "1.0.0", Timestamp: 1700000000}
	return map[string]apitypes.TypedData{"TaskResponse": response.Data(d), "PaymentReceipt": receipt.Data(d),
		"TaskRequest": request.Data(d), "Policy": policy.Data(d), "Heartbeat": beat.Data(d)}
}

// TestTypes: the types are those of the specification, member by member, in one domain.
func TestTypes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"TaskResponse":   "TaskResponse(uint256 agentId,bytes32 taskHash,bytes32 resultHash,uint256 timestamp,string metadata)",
		"PaymentReceipt": "PaymentReceipt(address from,address to,uint256 amount,string currency,bytes32 taskHash,uint256 timestamp)",
		"TaskRequest":    "TaskRequest(uint256 agentId,address client,bytes32 taskHash,uint256 timestamp)",
		"Policy":         "Policy(uint256 agentId,bytes32 policyHash)",
		"Heartbeat":      "Heartbeat(uint256 agentId,string mode,string version,uint256 timestamp)",
	}
	for name, data := range samples() {
		if got := string(data.EncodeType(name)); got != want[name] {
			t.Errorf("%s: %s", name, got)
		}
		if data.Domain.Name != "TrustlessAgentFramework" || data.Domain.Version != "1" ||
			data.Domain.VerifyingContract != domain().Registry.Hex() ||
			(*big.Int)(data.Domain.ChainId).Int64() != 8453 {
			t.Errorf("%s: %+v", name, data.Domain)
		}
	}
}

// wallets is a contract wallet that takes one signature.
type wallets struct {
	good []byte
	err  error
}

// ValidSignature implements signed.Wallets.
func (w wallets) ValidSignature(_ context.Context, _ uint64, _ common.Address, _ common.Hash,
	sig []byte) (bool, error) {
	return bytes.Equal(sig, w.good), w.err
}

// TestSignatures: every usual form of an account's signature is taken, and no other signature.
func TestSignatures(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	account := crypto.PubkeyToAddress(key.PublicKey)
	for name, data := range samples() {
		digest, err := signed.Digest(data)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := crypto.Sign(digest[:], key)
		if err != nil {
			t.Fatal(err)
		}
		usual := append(bytes.Clone(sig[:64]), sig[64]+27)
		compact := bytes.Clone(sig[:64])
		compact[32] |= sig[64] << 7
		high := bytes.Clone(sig)
		new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64])).FillBytes(high[32:64])
		high[64] ^= 1
		for form, good := range map[string][]byte{"v of 0 or 1": sig, "v of 27 or 28": usual, "compact": compact} {
			if err := signed.Check(t.Context(), nil, domain(), account, data, good); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
		v2, zero := bytes.Clone(sig), make([]byte, 65)
		v2[64] = 29
		for form, bad := range map[string][]byte{"high s": high, "v of 29": v2, "zero": zero, "short": sig[:63],
			"none": nil,
			"long": append(bytes.Clone(sig), 0)} {
			if err := signed.Check(t.Context(), nil, domain(), account, data, bad); !errors.Is(err,
				signed.ErrSignature) {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
		contract := common.Address{9}
		if err := signed.Check(t.Context(), wallets{good: sig[:10]}, domain(), contract, data, sig[:10]); err != nil {
			t.Errorf("%s, contract: %v", name, err)
		}
		if err := signed.Check(t.Context(), wallets{good: sig[:10]}, domain(), contract, data, sig); !errors.Is(err,
			signed.ErrSignature) {
			t.Errorf("%s, contract: %v", name, err)
		}
		err = signed.Check(t.Context(), wallets{err: errors.New("node")}, domain(), contract, data, sig)
		if !errors.Is(err, repute.ErrUnavailable) || errors.Is(err, signed.ErrSignature) {
			t.Errorf("%s, node away: %v", name, err)
		}
	}
}

// TestResponse: an answer is verified from its headers and body, whatever the layout of its JSON, and
// not when anything of it is changed.
func TestResponse(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z<>&"\\]{0,20}`).Draw(t, "text")
		body := []byte(`{"b": 1, "a": ` + string(mustQuote(text)) + `}`)
		r := signed.Response{Domain: domain(),
			TaskResponse: signed.TaskResponse{AgentID: *uint256.NewInt(rapid.Uint64().Draw(t, "id")),
				TaskHash: common.Hash{7}, ResultHash: signed.HashBody(body), Timestamp: 1700000000,
				Metadata: `{"status":200}`}}
		digest, err := signed.Digest(r.Data(r.Domain))
		if err != nil {
			t.Fatal(err)
		}
		if r.Signature, err = crypto.Sign(digest[:], key); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		r.Write(h, "1.0.0")
		stored := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
		for name := range h {
			stored += name + ": " + h.Get(name) + "\r\n"
		}
		moved := `{"a":` + string(mustQuote(text)) + `,"b":1}`
		status, got, raw, err := signed.ParseHTTP(strings.NewReader(stored + "\r\n" + moved))
		if err != nil || status != 200 {
			t.Fatalf("%d %v", status, err)
		}
		read, err := signed.ReadResponse(got)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := read.Verify(raw); err != nil || by != crypto.PubkeyToAddress(key.PublicKey) {
			t.Fatalf("%s %v", by, err)
		}
		if _, err := read.Verify([]byte(`{"a":1}`)); err == nil {
			t.Fatal("another body is valid")
		}
		read.Metadata += " "
		if by, err := read.Verify(raw); err == nil && by == crypto.PubkeyToAddress(key.PublicKey) {
			t.Fatal("other metadata is valid")
		}
	})
}

func mustQuote(text string) []byte {
	return []byte(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`)
}

// TestFresh: a minute in the past, five seconds in the future, in seconds.
func TestFresh(t *testing.T) {
	t.Parallel()
	now := time.Unix(1700000000, 0)
	for at, want := range map[uint64]bool{1700000000: true, 1700000000 - 60: true, 1700000000 - 61: false,
		1700000000 + 5: true,
		1700000000 + 6: false, 1700000000000: false, 0: false, 1<<64 - 1: false} {
		if err := signed.Fresh("timestamp", at, now); (err == nil) != want {
			t.Errorf("%d: %v", at, err)
		}
	}
}

// TestWrongTexts: whatever a stranger writes into a header or a member of a promise, the error names the place and is
// repute.ErrInvalid. A text of the right form is read back as it was written.
func TestWrongTexts(t *testing.T) {
	t.Parallel()
	answer := http.Header{}
	(&signed.Response{Domain: domain(), Signature: bytes.Repeat([]byte{1}, 65), TaskResponse: signed.TaskResponse{
		AgentID: *uint256.NewInt(7), TaskHash: common.Hash{7}, Timestamp: 5, Metadata: "{}"}}).Write(answer, "1.0.0")
	asked := http.Header{signed.HeaderClient: {common.Address{9}.Hex()}, signed.HeaderClientTimestamp: {"5"},
		signed.HeaderClientSignature: {"0x01"}}
	long := "0x" + strings.Repeat("00", 20_000)
	readAnswer := func(h http.Header) error { _, err := signed.ReadResponse(h); return err }
	readRequest := func(h http.Header) error { _, err := signed.ReadRequest(h); return err }
	for _, tt := range []struct {
		read   func(http.Header) error
		good   http.Header
		header string
		wrong  []string
	}{
		{readAnswer, answer, signed.HeaderAgentID, []string{"", "-1", "x"}},
		{readAnswer, answer, signed.HeaderTaskHash, []string{"", "0x", "0x01", "07"}},
		{readAnswer, answer, signed.HeaderResultHash, []string{"", "0xzz"}},
		{readAnswer, answer, signed.HeaderTimestamp, []string{"", "-1", "1.5", "18446744073709551616"}},
		{readAnswer, answer, signed.HeaderSignature, []string{"", "0x", "0x0", long}},
		{readRequest, asked, signed.HeaderClient, []string{"0x01", "somebody"}},
		{readRequest, asked, signed.HeaderClientTimestamp, []string{"", "now", "-1"}},
		{readRequest, asked, signed.HeaderClientSignature, []string{"", "0x", "01", long}},
	} {
		if err := tt.read(tt.good); err != nil {
			t.Fatalf("%s: %v", tt.header, err)
		}
		for _, text := range tt.wrong {
			h := tt.good.Clone()
			h.Set(tt.header, text)
			err := tt.read(h)
			var wrong *repute.InputError
			if !errors.As(err, &wrong) || wrong.Field != tt.header {
				t.Errorf("%s: %.40s: %v", tt.header, text, err)
			}
		}
	}
	if r, err := signed.ReadRequest(http.Header{}); r != nil || err != nil {
		t.Errorf("nobody signed: %v %v", r, err)
	}
	good := map[string]any{"from": common.Address{1}.Hex(), "to": common.Address{2}.Hex(), "amount": "5",
		"currency": "USDC", "taskHash": common.Hash{7}.Hex(), "timestamp": 5, "signature": "0x01"}
	promise := func(change map[string]any) error {
		members := maps.Clone(good)
		maps.Copy(members, change)
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		_, err = signed.DecodePromise(base64.StdEncoding.EncodeToString(raw))
		return err
	}
	if err := promise(nil); err != nil {
		t.Fatal(err)
	}
	for member, list := range map[string][]any{"from": {"", "0x01"}, "to": {"me"}, "amount": {"", "-1", "1.5", "0x5",
		strings.Repeat("9", 79)}, "currency": {"", strings.Repeat("x", 33)}, "taskHash": {"", "0x07"},
		"timestamp": {-1, 1.5}, "signature": {"", "0x", long}} {
		for _, value := range list {
			err := promise(map[string]any{member: value})
			var wrong *repute.InputError
			if !errors.As(err, &wrong) || wrong.Field != signed.HeaderReceipt+"."+member {
				t.Errorf("%s: %.40v: %v", member, value, err)
			}
		}
	}
}
