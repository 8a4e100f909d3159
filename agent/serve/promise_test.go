package serve_test

import (
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/agent"
	"repute/agent/signed"
	"repute/internal/pgtest"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
)

// proofOf are the headers by which a client signs a request.
func proofOf(t *testing.T, by x402.Signer, d signed.Domain, r *signed.TaskRequest) http.Header {
	t.Helper()
	sig, err := by.SignTyped(t.Context(), r.Data(d))
	ok(t, err)
	return http.Header{http.CanonicalHeaderKey(signed.HeaderClient): {r.Client.Hex()},
		http.CanonicalHeaderKey(signed.HeaderClientTimestamp): {strconv.FormatUint(r.Timestamp, 10)},
		http.CanonicalHeaderKey(signed.HeaderClientSignature): {hexutil.Encode(sig)}}
}

// TestPromises: receipts of the specification are accepted where they are switched on, once, and
// refused for each thing that is wrong.
func TestPromises(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	ok(t, err)
	client, payee, h := keys.Local{Key: key}, common.HexToAddress("0xfee"), &echo{}
	url, price := pgtest.New(t), &agent.Price{Amount: "0.001", Currency: "ETH", Decimals: 18}
	s := open(t, url, agent.Options{Services: []*agent.Service{service(t, "echo", h, price, nil),
		service(t, "second", h, price, nil)},
		Payments: agent.Payments{Promises: true, Address: payee}})
	asked := s.send(t, "echo", hello, nil)
	task := common.HexToHash(asked.header.Get("X-Payment-TaskHash"))
	units := big.NewInt(1e15)
	now := uint64(time.Now().Unix())
	good := signed.PaymentReceipt{From: client.Address(), To: payee, Amount: units, Currency: "ETH", TaskHash: task,
		Timestamp: now}
	domain := signed.DomainOf(s.router.ID())
	send := func(r signed.PaymentReceipt, d signed.Domain, change func([]byte) []byte) reply {
		sig, err := client.SignTyped(t.Context(), r.Data(d))
		ok(t, err)
		p := signed.Promise{PaymentReceipt: r, Signature: change(sig)}
		text, err := p.Encode()
		ok(t, err)
		return s.send(t, "echo", hello, http.Header{http.CanonicalHeaderKey(signed.HeaderReceipt): {text}})
	}
	same := func(b []byte) []byte { return b }
	wrong := map[string]func(*signed.PaymentReceipt, *signed.Domain){
		"one unit short": func(r *signed.PaymentReceipt, _ *signed.Domain) { r.Amount = new(big.Int).Sub(units, big.NewInt(1)) },
		"stale":          func(r *signed.PaymentReceipt, _ *signed.Domain) { r.Timestamp -= 62 },
		"future":         func(r *signed.PaymentReceipt, _ *signed.Domain) { r.Timestamp += 20 },
		"milliseconds":   func(r *signed.PaymentReceipt, _ *signed.Domain) { r.Timestamp *= 1000 },
		"another task":   func(r *signed.PaymentReceipt, _ *signed.Domain) { r.TaskHash[3] ^= 1 },
		"another payee":  func(r *signed.PaymentReceipt, _ *signed.Domain) { r.To = client.Address() },
		"another coin":   func(r *signed.PaymentReceipt, _ *signed.Domain) { r.Currency = "USDC" },
		"wrong signer":   func(r *signed.PaymentReceipt, _ *signed.Domain) { r.From = payee },
		"another chain":  func(_ *signed.PaymentReceipt, d *signed.Domain) { d.ChainID++ },
		"another agency": func(_ *signed.PaymentReceipt, d *signed.Domain) { d.Registry = payee },
	}
	for name, change := range wrong {
		r, d := good, domain
		change(&r, &d)
		if got := send(r, d, same); got.status != http.StatusPaymentRequired || h.count() != 0 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	toSecond := s.send(t, "second", hello, nil)
	other := good
	other.TaskHash = common.HexToHash(toSecond.header.Get("X-Payment-TaskHash"))
	if got := send(other, domain, same); other.TaskHash == task || got.status != http.StatusPaymentRequired ||
		h.count() != 0 {
		t.Errorf("of another capability, with the same input: %d %s", got.status, got.body)
	}
	if got := send(good, domain, highS); got.status != http.StatusPaymentRequired || h.count() != 0 {
		t.Errorf("high s: %d %s", got.status, got.body)
	}
	if got := send(good, domain, same); got.status != http.StatusOK || h.count() != 1 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for name, change := range map[string]func([]byte) []byte{"same": same, "other v": otherV, "compact": compact} {
		if got := send(good, domain, change); got.status != http.StatusConflict || h.count() != 1 {
			t.Errorf("used, %s: %d %s", name, got.status, got.body)
		}
	}
	more := good
	more.Amount, more.Timestamp = new(big.Int).Add(units, big.NewInt(5)), now-1
	if got := send(more, domain, compact); got.status != http.StatusOK || h.count() != 2 {
		t.Errorf("more than the price, compact: %d %s", got.status, got.body)
	}
	shown := s.ask(t, http.MethodGet, "/agent/42/receipts", "", nil).body
	if strings.Count(shown, `"settlement":"none"`) != 2 || strings.Contains(shown, "x402") {
		t.Errorf("%s", shown)
	}
	for _, text := range []string{"eyJhbGciOiJIUzI1NiJ9.e30.x", "{}", "e30="} {
		got := s.send(t, "echo", hello, http.Header{http.CanonicalHeaderKey(signed.HeaderReceipt): {text}})
		if got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", text, got.status)
		}
	}
}

// highS is the other signature of the same key and digest.
func highS(sig []byte) []byte {
	n := crypto.S256().Params().N
	s := new(big.Int).Sub(n, new(big.Int).SetBytes(sig[32:64]))
	out := append([]byte{}, sig...)
	s.FillBytes(out[32:64])
	if out[64] >= 27 {
		out[64] = 27 + (1 - (out[64] - 27))
	} else {
		out[64] = 1 - out[64]
	}
	return out
}

// TestPromiseOfAnother: a promise whose work is not done is known by its signature, and stays that of who signed it.
func TestPromiseOfAnother(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	ok(t, err)
	client, payee, h := keys.Local{Key: key}, common.HexToAddress("0xfee"), &echo{}
	one := service(t, "echo", h, &agent.Price{Amount: "0.001", Currency: "ETH", Decimals: 18}, nil)
	one.Repeatable = true
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{one},
		Payments: agent.Payments{Promises: true, Address: payee}})
	asked := s.send(t, "echo", hello, nil)
	p := signed.Promise{PaymentReceipt: signed.PaymentReceipt{From: client.Address(), To: payee,
		Amount:   big.NewInt(1e15),
		Currency: "ETH", TaskHash: common.HexToHash(asked.header.Get("X-Payment-TaskHash")),
		Timestamp: uint64(time.Now().Unix())}}
	p.Signature, err = client.SignTyped(t.Context(), p.Data(signed.DomainOf(s.router.ID())))
	ok(t, err)
	send := func(p signed.Promise) reply {
		text, err := p.Encode()
		ok(t, err)
		return s.send(t, "echo", hello, http.Header{http.CanonicalHeaderKey(signed.HeaderReceipt): {text}})
	}
	h.fails(errAway)
	if got := send(p); got.status != http.StatusServiceUnavailable {
		t.Fatalf("%d %s", got.status, got.body)
	}
	h.fails(nil)
	runs, another := h.count(), p
	another.From = common.HexToAddress("0xbeef")
	if got := send(another); got.status != http.StatusPaymentRequired || h.count() != runs {
		t.Errorf("in the name of another: %d %s", got.status, got.body)
	}
	if got := send(p); got.status != http.StatusOK || h.count() != runs+1 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestPromiseInParallel: a promise that is sent fifty times at once, to two processes, is worked for once.
func TestPromiseInParallel(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	ok(t, err)
	client, payee, h, url := keys.Local{Key: key}, common.HexToAddress("0xfee"), &echo{}, pgtest.New(t)
	one := service(t, "echo", h, &agent.Price{Amount: "0.001", Currency: "ETH", Decimals: 18}, nil)
	o := agent.Options{Concurrency: 50, Services: []*agent.Service{one},
		Payments: agent.Payments{Promises: true, Address: payee}}
	shops := []*shop{open(t, url, o), open(t, url, o)}
	asked := shops[0].send(t, "echo", hello, nil)
	p := signed.Promise{PaymentReceipt: signed.PaymentReceipt{From: client.Address(), To: payee,
		Amount:   big.NewInt(1e15),
		Currency: "ETH", TaskHash: common.HexToHash(asked.header.Get("X-Payment-TaskHash")),
		Timestamp: uint64(time.Now().Unix())}}
	p.Signature, err = client.SignTyped(t.Context(), p.Data(signed.DomainOf(shops[0].router.ID())))
	ok(t, err)
	text, err := p.Encode()
	ok(t, err)
	var all sync.WaitGroup
	var answered atomic.Int32
	for i := range 50 {
		all.Go(func() {
			got := shops[i%2].send(t, "echo", hello, http.Header{http.CanonicalHeaderKey(signed.HeaderReceipt): {text}})
			switch got.status {
			case http.StatusOK:
				answered.Add(1)
			case http.StatusConflict, http.StatusServiceUnavailable: // it was used, or is worked on
			default:
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	all.Wait()
	if answered.Load() != 1 || h.count() != 1 {
		t.Errorf("%d answers, %d runs", answered.Load(), h.count())
	}
}

// otherV is a signature with v in its other form.
func otherV(sig []byte) []byte {
	if sig[64] >= 27 {
		sig[64] -= 27
	} else {
		sig[64] += 27
	}
	return sig
}

// compact is a signature of 64 bytes (EIP-2098).
func compact(sig []byte) []byte {
	v := sig[64]
	if v >= 27 {
		v -= 27
	}
	out := append([]byte{}, sig[:64]...)
	out[32] |= v << 7
	return out
}

// TestPromisesOff: promises are off by default, and a capability that is priced in ether alone cannot
// be offered then.
func TestPromisesOff(t *testing.T) {
	t.Parallel()
	db := database(t, pgtest.New(t))
	_, err := agent.NewRouter(db, agent.Options{Signer: signer(t),
		Services: []*agent.Service{service(t, "echo", &echo{},
			&agent.Price{Amount: "0.001", Currency: "ETH", Decimals: 18}, nil)}})
	if err == nil || !strings.Contains(err.Error(), "cannot be paid by x402") {
		t.Errorf("%v", err)
	}
}
