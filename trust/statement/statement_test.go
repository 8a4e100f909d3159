package statement_test

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/statement"
)

func issued() time.Time { return time.Unix(1_800_000_000, 0).UTC() }

func score() repute.Score {
	return repute.Score{Agent: repute.AgentID{ChainID: 8453,
		Registry: common.HexToAddress("0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"), TokenID: *uint256.NewInt(22)},
		Block: repute.Block{Number: 36_000_000, Hash: common.Hash{1}, Time: time.Unix(1_799_999_000, 0).UTC()},
		Final: true,
		Run:   5, Epoch: 20_000,
		Scorer: "repute/1", Params: common.Hash{2}, Tags: common.Hash{3}, Roots: common.Hash{4}, Links: common.Hash{5},
		Evidence: common.Hash{6}, Sources: common.Hash{7}, Credentials: common.Hash{8},
		FileScales: common.Hash{9},
		Status:     repute.Rated, Score: 49_400, Low: -31_250, High: 66_000, Mean: 49_400, Confidence: 640_000, Tier: 2,
		Result: []byte(`{"guard":{"agent":"a"}}`)}
}

func holds() statement.HoldsAsOf {
	return statement.HoldsAsOf{Number: 36_000_500, Time: time.Unix(1_799_999_500, 0).UTC(), VerifiedTo: 36_000_900}
}

func key(n byte) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(bytes.Repeat([]byte{n}, 32))
	if err != nil {
		panic(err)
	}
	return k
}

func signed(t testing.TB) (statement.Signed, []statement.Key) {
	t.Helper()
	signer := statement.NewSigner(key(1), time.Hour, time.Time{}, nil)
	s, err := signer.Sign(score(), holds(), issued())
	if err != nil {
		t.Fatal(err)
	}
	return s, signer.Keys().Keys
}

// The bytes that are signed are those that go-ethereum's own EIP-712 makes of the JSON.
func TestHashIsEIP712(t *testing.T) {
	s, _ := signed(t)
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var typed apitypes.TypedData
	if err := json.Unmarshal(body, &typed); err != nil {
		t.Fatal(err)
	}
	hash, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil || !bytes.Equal(hash, s.Hash().Bytes()) {
		t.Errorf("%x, not %s: %v", hash, s.Hash(), err)
	}
}

// Every bit that anybody changes on the way is noticed.
func TestTampering(t *testing.T) {
	s, keys := signed(t)
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var same statement.Signed
	if err := json.Unmarshal(body, &same); err != nil || statement.Verify(same, keys, issued()) != nil {
		t.Fatalf("untouched: %v, %v", err, statement.Verify(same, keys, issued()))
	}
	for i := range body {
		for bit := range 8 {
			changed := bytes.Clone(body)
			changed[i] ^= 1 << bit
			var got statement.Signed
			if json.Unmarshal(changed, &got) != nil ||
				reflect.DeepEqual(got, s) { // only the capitals of hex digits may differ
				continue
			}
			if statement.Verify(got, keys, issued()) == nil {
				t.Errorf("byte %d: %s is taken for %s", i, changed[max(0, i-20):min(len(body), i+20)],
					body[max(0, i-20):min(len(body), i+20)])
			}
		}
	}
}

// Each field by itself is part of what is signed.
func TestEveryFieldIsSigned(t *testing.T) {
	s, keys := signed(t)
	seen := 0
	var change func(path string, v reflect.Value)
	change = func(path string, v reflect.Value) {
		if path == ".Statement.Block.Parent" {
			return
		}
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		switch at, isTime := v.Interface().(time.Time); {
		case isTime:
			v.Set(reflect.ValueOf(at.Add(time.Second)))
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				change(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
			return
		case v.Kind() == reflect.Array:
			for i := range v.Len() {
				change(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
			return
		case v.Kind() == reflect.Bool:
			v.SetBool(!v.Bool())
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() ^ 1)
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "x")
		default:
			t.Fatalf("%s has an unknown kind", path)
		}
		seen++
		if statement.Verify(s, keys, issued().Add(time.Second)) == nil {
			t.Errorf("%s may be changed", path)
		}
		v.Set(old)
	}
	change("", reflect.ValueOf(&s).Elem())
	if seen < 250 || statement.Verify(s, keys, issued()) != nil {
		t.Errorf("%d changes, at last %v", seen, statement.Verify(s, keys, issued()))
	}
}

func TestVerify(t *testing.T) {
	s, keys := signed(t)
	own := keys[0].Address
	for name, tc := range map[string]struct {
		keys []statement.Key
		at   time.Duration
		want error
	}{
		"good":           {keys, 0, nil},
		"last second":    {keys, time.Hour - time.Second, nil},
		"expired":        {keys, time.Hour, statement.ErrExpired},
		"slow clock":     {keys, -time.Minute, nil},
		"too early":      {keys, -time.Minute - time.Second, statement.ErrEarly},
		"no key":         {nil, 0, statement.ErrSigner},
		"other key":      {[]statement.Key{{Address: common.Address{1}}}, 0, statement.ErrSigner},
		"retired before": {[]statement.Key{{Address: own, To: issued()}}, 0, statement.ErrSigner},
		"retired after":  {[]statement.Key{{Address: own, To: issued().Add(time.Second)}}, time.Minute, nil},
		"not yet in use": {[]statement.Key{{Address: own, From: issued().Add(time.Second)}}, 0, statement.ErrSigner},
		"two keys":       {[]statement.Key{{Address: common.Address{1}}, {Address: own, From: issued()}}, 0, nil},
	} {
		if err := statement.Verify(s, tc.keys, issued().Add(tc.at)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	claimed := s
	claimed.Signer = common.Address{9}
	if err := statement.Verify(claimed, append(keys, statement.Key{Address: claimed.Signer}), issued()); !errors.Is(err,
		statement.ErrSignature) {
		t.Errorf("another signer: %v", err)
	}
	second := s // the same signature in its other form
	order := crypto.S256().Params().N
	new(big.Int).Sub(order, new(big.Int).SetBytes(s.Signature[32:64])).FillBytes(second.Signature[32:64])
	second.Signature[64] = 27 + 28 - s.Signature[64]
	if err := statement.Verify(second, keys, issued()); !errors.Is(err, statement.ErrSignature) {
		t.Errorf("the second form: %v", err)
	}
}

// A good statement is of no use about somebody else, or about long ago.
func TestVerifyFor(t *testing.T) {
	s, keys := signed(t)
	token, chain, registry := s.Agent, s.Agent, s.Agent
	token.TokenID = *uint256.NewInt(23)
	chain.ChainID++
	registry.Registry[0]++
	for name, tc := range map[string]struct {
		agent repute.AgentID
		age   time.Duration
		keys  []statement.Key
		want  error
	}{
		"good":             {s.Agent, 0, keys, nil},
		"old enough":       {s.Agent, 500 * time.Second, keys, nil},
		"too old":          {s.Agent, 499 * time.Second, keys, statement.ErrOld},
		"another token":    {token, 0, keys, statement.ErrAgent},
		"another chain":    {chain, 0, keys, statement.ErrAgent},
		"another registry": {registry, 0, keys, statement.ErrAgent},
		"another key":      {s.Agent, 0, nil, statement.ErrSigner},
	} {
		if err := statement.VerifyFor(s, tc.agent, tc.age, tc.keys, issued()); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	moved := s
	moved.Agent = token
	if err := statement.VerifyFor(moved, token, 0, keys, issued()); !errors.Is(err, statement.ErrSignature) &&
		!errors.Is(err, statement.ErrSigner) {
		t.Errorf("made to be about another agent: %v", err)
	}
}

// What is not final is not signed, nor valid for ever.
func TestOnlyFinal(t *testing.T) {
	provisional, undated := score(), score()
	provisional.Final, undated.Block.Time = false, time.Time{}
	for name, s := range map[string]repute.Score{"provisional": provisional, "undated": undated} {
		if _, err := statement.Of(s, holds(), issued(), time.Hour); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, life := range []time.Duration{0, -1, statement.MaxLife + 1} {
		if _, err := statement.Of(score(), holds(), issued(), life); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("for %s: %v", life, err)
		}
	}
	long, err := statement.Of(score(), holds(), issued(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	long.ExpiresAt = issued().Add(statement.MaxLife + time.Second)
	s, err := statement.Sign(long, key(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := statement.Verify(s, []statement.Key{{Address: s.Signer}}, issued()); !errors.Is(err,
		statement.ErrExpired) {
		t.Errorf("valid for too long: %v", err)
	}
}

// A block's time that is after the issue is a lie, or the block is not the one it held as of:
// it is neither signed nor taken.
func TestNoBlockOfTheFuture(t *testing.T) {
	good, err := statement.Of(score(), holds(), issued(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]func(*statement.Statement){
		"block":        func(s *statement.Statement) { s.Block.Time = s.IssuedAt.Add(2 * time.Minute) },
		"holds":        func(s *statement.Statement) { s.Holds.Time = s.IssuedAt.Add(2 * time.Minute) },
		"both":         func(s *statement.Statement) { s.Block.Time, s.Holds.Time = s.ExpiresAt, s.ExpiresAt },
		"holds before": func(s *statement.Statement) { s.Holds.Number = s.Block.Number - 1 },
	} {
		s := good
		lie(&s)
		made, err := statement.Sign(s, key(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := statement.VerifyFor(made, made.Agent, 0, []statement.Key{{Address: made.Signer}},
			issued()); !errors.Is(err, statement.ErrEarly) {
			t.Errorf("%s: %v", name, err)
		}
		of := score()
		of.Block = s.Block
		if _, err := statement.Of(of, s.Holds, issued(), time.Hour); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s is signed: %v", name, err)
		}
	}
	signer := statement.NewSigner(key(1), statement.MaxLife, time.Time{}, nil)
	now := issued().Truncate(statement.MaxLife / 4).Add(time.Hour) // the quarter began before the block
	late := statement.HoldsAsOf{Number: 36_000_500, Time: now.Add(-time.Minute), VerifiedTo: 36_000_500}
	of := score()
	of.Block.Time = late.Time
	if s, err := signer.Sign(of, late, now); err != nil || !s.IssuedAt.Equal(late.Time) ||
		statement.Verify(s, signer.Keys().Keys, now) != nil {
		t.Errorf("issued at %v: %v", s.IssuedAt, err)
	}
}

// Whatever is signed comes back from its JSON as it was, and verifies.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := func(name string) (h common.Hash) {
			copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
			return h
		}
		when := func(name string) time.Time {
			return time.Unix(rapid.Int64Range(1, 4e9).Draw(t, name), 0).UTC()
		}
		points := rapid.Int64Range(-100_000, 100_000)
		s := statement.Statement{Status: rapid.SampledFrom(repute.Statuses()).Draw(t, "status"),
			Score: repute.Points(points.Draw(t, "score")),
			Low:   repute.Points(points.Draw(t, "low")), High: repute.Points(points.Draw(t, "high")),
			Confidence: rapid.Int64Range(0, 1_000_000).Draw(t, "confidence"),
			Tier:       rapid.IntRange(0, 4).Draw(t, "tier"),
			Guarded:    rapid.Bool().Draw(t, "guarded"),
			Block: repute.Block{Number: rapid.Uint64().Draw(t, "block"), Hash: hash("blockHash"),
				Time: when("blockTime")},
			Epoch: rapid.Uint64().Draw(t, "epoch"), Scorer: rapid.String().Draw(t, "scorer"), Params: hash("params"),
			Tags:  hash("tags"),
			Roots: hash("roots"), Links: hash("links"), Evidence: hash("evidence"),
			Sources: hash("sources"), Credentials: hash("credentials"), FileScales: hash("fileScales")}
		s.Holds = statement.HoldsAsOf{Number: s.Block.Number,
			VerifiedTo: rapid.Uint64Min(s.Block.Number).Draw(t, "verifiedTo"),
			Time:       s.Block.Time.Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "holds")) * time.Second)}
		s.IssuedAt = s.Holds.Time.Add(time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "issued")) * time.Second)
		s.ExpiresAt = s.IssuedAt.Add(time.Duration(rapid.Int64Range(1, int64(statement.MaxLife/time.Second)).Draw(t,
			"life")) * time.Second)
		s.Agent.ChainID = rapid.Uint64().Draw(t, "chain")
		token := hash("token")
		s.Agent.TokenID.SetBytes(token[:])
		registry := hash("registry")
		s.Agent.Registry = common.BytesToAddress(registry[:])
		out, err := statement.Sign(s, key(2))
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var back statement.Signed
		if err := json.Unmarshal(body, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, out) {
			t.Fatalf("%+v\n%+v", back, out)
		}
		if err := statement.Verify(back, []statement.Key{{Address: out.Signer}}, s.IssuedAt); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever is read as a statement and verifies is the one that was signed.
func FuzzSigned(f *testing.F) {
	good, keys := signed(f)
	body, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add(bytes.Replace(body, []byte(`"22"`), []byte(`"23"`), 1))
	f.Add([]byte(`{"signature":"0x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var back statement.Signed
		if json.Unmarshal(body, &back) == nil && statement.Verify(back, keys, issued()) == nil &&
			!reflect.DeepEqual(back, good) {
			t.Fatalf("%+v verifies", back)
		}
	})
}

// A key signs nothing before its time, and who verifies with it is told the time.
func TestKeyBeforeItsTime(t *testing.T) {
	signer := statement.NewSigner(key(1), time.Hour, issued().Add(time.Minute), nil)
	if _, err := signer.Sign(score(), holds(), issued()); !errors.Is(err, repute.ErrConflict) ||
		!strings.Contains(err.Error(), "2027-01-15T08:01:00Z") {
		t.Errorf("signs: %v", err)
	}
	if s, err := signer.Sign(score(), holds(), issued().Add(time.Minute)); err != nil ||
		statement.Verify(s, signer.Keys().Keys, issued().Add(time.Minute)) != nil {
		t.Errorf("in time: %v", err)
	}
	early, _ := signed(t)
	if err := statement.Verify(early, signer.Keys().Keys, issued()); !errors.Is(err, statement.ErrSigner) ||
		!strings.Contains(err.Error(), "valid from 2027-01-15T08:01:00Z") {
		t.Errorf("verified: %v", err)
	}
	retired := []statement.Key{{Address: signer.Address(), To: issued()}}
	if err := statement.Verify(early, retired, issued()); !errors.Is(err, statement.ErrSigner) ||
		!strings.Contains(err.Error(), "valid until 2027-01-15T08:00:00Z") {
		t.Errorf("retired: %v", err)
	}
}

// A key never shows.
func TestKeysAreSecret(t *testing.T) {
	signer := statement.NewSigner(key(1), time.Hour, issued(),
		[]statement.Key{{Address: common.Address{1}, To: issued()}})
	secret := strings.Repeat("01", 32)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if out := fmt.Sprintf(verb, signer); strings.Contains(out, secret) ||
			!strings.Contains(out, signer.Address().Hex()) {
			t.Errorf("%s: %s", verb, out)
		}
	}
	if k, err := statement.ParseKey("key", " 0x"+secret+"\n"); err != nil ||
		crypto.PubkeyToAddress(k.PublicKey) != signer.Address() {
		t.Errorf("read: %v", err)
	}
	if _, err := statement.ParseKey("key", secret+"zz"); !errors.Is(err, repute.ErrInvalid) ||
		strings.Contains(err.Error(), secret) {
		t.Errorf("a bad key: %v", err)
	}
	body, err := json.Marshal(signer.Keys())
	var back statement.KeyList
	if err != nil || json.Unmarshal(body, &back) != nil || !reflect.DeepEqual(back, signer.Keys()) {
		t.Errorf("%s, %v: %+v", body, err, back)
	}
}

// A statement tells that a guard limits the agent; one of another version is refused by name.
func TestGuardedIsSigned(t *testing.T) {
	s, keys := signed(t)
	if !s.Guarded {
		t.Error("the guard of the result is not in the statement")
	}
	free := score()
	free.Result = []byte(`{"guard":null}`)
	other, err := statement.Of(free, holds(), issued(), time.Hour)
	if err != nil || other.Guarded {
		t.Errorf("without a guard: %v, %v", other.Guarded, err)
	}
	free.Result = nil
	if _, err := statement.Of(free, holds(), issued(), time.Hour); err == nil {
		t.Error("a score without its result is signed")
	}
	forged := s
	forged.Guarded = false
	if err := statement.Verify(forged, keys, issued()); !errors.Is(err, statement.ErrSignature) &&
		!errors.Is(err, statement.ErrSigner) {
		t.Errorf("a statement whose guard was taken out: %v", err)
	}
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(body), `"version":"6"`, `"version":"5"`, 1)
	var back statement.Signed
	if err := json.Unmarshal([]byte(old), &back); err == nil ||
		!strings.Contains(err.Error(), `version "5", not "repute trust score", version "6"`) {
		t.Errorf("a statement of the version before: %v", err)
	}
}
