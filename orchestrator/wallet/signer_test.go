package wallet_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/devnet"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
)

// written is a file with a mode.
func written(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(path, []byte(text), mode))
	ok(t, os.Chmod(path, mode))
	return path
}

// sealed is an account's key in Ethereum's JSON form.
func sealed(t *testing.T, a devnet.Account, password string) string {
	t.Helper()
	out, err := keystore.EncryptKey(&keystore.Key{Address: a.Address, PrivateKey: a.Key}, password,
		keystore.LightScryptN, keystore.LightScryptP)
	ok(t, err)
	return string(out)
}

// remote is a JSON-RPC signer. edit may change what it signs.
func remote(t *testing.T, a devnet.Account, edit func(*types.DynamicFeeTx)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params []struct {
				From, To                           common.Address
				Gas, Nonce                         hexutil.Uint64
				MaxFeePerGas, MaxPriorityFeePerGas *hexutil.Big
				Value, ChainID                     *hexutil.Big
				Input                              hexutil.Bytes
			}
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || q.Method != "account_signTransaction" || len(q.Params) != 1 ||
			q.Params[0].From != a.Address {
			_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"request denied"}}`, q.ID)
			return
		}
		p := q.Params[0]
		tx := &types.DynamicFeeTx{ChainID: p.ChainID.ToInt(), Nonce: uint64(p.Nonce), To: &p.To, Value: p.Value.ToInt(),
			Data: p.Input,
			Gas:  uint64(p.Gas), GasFeeCap: p.MaxFeePerGas.ToInt(), GasTipCap: p.MaxPriorityFeePerGas.ToInt()}
		if edit != nil {
			edit(tx)
		}
		signed, err := types.SignNewTx(a.Key, types.LatestSignerForChainID(tx.ChainID), tx)
		if err != nil {
			return
		}
		raw, _ := signed.MarshalBinary()
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"raw":"%s"}}`, q.ID, hexutil.Encode(raw))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestSigners sends with each kind of key.
func TestSigners(t *testing.T) {
	w := newWorld(t)
	w.mining()
	operator := w.d.Account(operatorAccount)
	t.Setenv("WALLET_TEST_KEY", operator.PrivateKey())
	for name, conf := range map[string]keys.Config{
		"environment": {KeyEnv: "WALLET_TEST_KEY", Address: operator.Address},
		"file":        {KeyFile: w.keyFile(operatorAccount)},
		"keystore": {Keystore: written(t, sealed(t, operator, "open sesame"), 0o600),
			PasswordFile: written(t, "open sesame\n", 0o400)},
		"signer": {URL: remote(t, operator, nil), Address: operator.Address},
	} {
		c := w.config()
		c.Operator = conf
		a, _ := w.open(c)
		if r := <-sending(t.Context(), a, w.pay(name, "1")); r.err != nil || !r.sent.OK ||
			r.sent.From != operator.Address {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if w.paid() != 4 {
		t.Errorf("%d wei", w.paid())
	}
}

// TestSignerCheats stores and sends nothing where a signer signs another transaction, with
// another key, or not at all.
func TestSignerCheats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operator, stranger := w.d.Account(operatorAccount), w.d.Account(strangerAccount)
	liar := stranger
	liar.Address = operator.Address // pretends
	for name, c := range map[string]struct {
		url     string
		account common.Address
		kind    error
	}{
		"another value": {remote(t, operator, func(tx *types.DynamicFeeTx) { tx.Value = big.NewInt(1) }),
			operator.Address,
			repute.ErrConflict},
		"another target": {remote(t, operator, func(tx *types.DynamicFeeTx) { tx.To = &stranger.Address }),
			operator.Address, repute.ErrConflict},
		"another nonce": {remote(t, operator, func(tx *types.DynamicFeeTx) { tx.Nonce++ }), operator.Address,
			repute.ErrConflict},
		"higher fees": {remote(t, operator, func(tx *types.DynamicFeeTx) { tx.GasFeeCap = big.NewInt(1e15) }),
			operator.Address, repute.ErrConflict},
		"another key": {remote(t, liar, nil), operator.Address, repute.ErrConflict},
		"denied":      {remote(t, stranger, nil), operator.Address, repute.ErrUnavailable},
		"nobody":      {"http://127.0.0.1:1/secretpath", operator.Address, repute.ErrUnavailable},
	} {
		conf := w.config()
		conf.Operator = keys.Config{URL: c.url, Address: c.account}
		a, db := w.open(conf)
		_, err := a.Send(t.Context(), w.pay(name, "1"))
		if !errors.Is(err, c.kind) || strings.Contains(err.Error(), "secretpath") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := walletdb.ReadIntent(t.Context(), db, name); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%s was stored: %v", name, err)
		}
	}
}

// TestSignerConfig refuses what cannot be a key or is not kept secret, and never shows a
// part of it.
func TestSignerConfig(t *testing.T) {
	w := newWorld(t)
	operator := w.d.Account(operatorAccount)
	secret := hex.EncodeToString(crypto.FromECDSA(operator.Key))
	t.Setenv("WALLET_TEST_BAD", secret[:60])
	box := sealed(t, operator, "open sesame")
	for field, conf := range map[string]keys.Config{
		"operator: the environment":       {KeyEnv: "WALLET_TEST_NONE"},
		"operator: is no private":         {KeyEnv: "WALLET_TEST_BAD"},
		"operator: others may":            {KeyFile: written(t, secret, 0o644)},
		"is no private key":               {KeyFile: written(t, secret+"00", 0o600)},
		"operator: open":                  {KeyFile: "/nowhere/at/all"},
		"operator: / is no file":          {KeyFile: "/"},
		"names 2 keys":                    {KeyFile: "x", KeyEnv: "y"},
		"names 0 keys":                    {Address: operator.Address},
		"operator: is to be of":           {KeyFile: w.keyFile(operatorAccount), Address: common.HexToAddress("0x1")},
		"the signer's account is missing": {URL: "http://127.0.0.1:1"},
		"operator: is no address":         {URL: "ftp://" + secret, Address: operator.Address},
		"the keystore has no password":    {Keystore: written(t, box, 0o600)},
		"the password does not":           {Keystore: written(t, box, 0o600), PasswordFile: written(t, "wrong", 0o600)},
		"may read": {Keystore: written(t, box, 0o600),
			PasswordFile: written(t, "open sesame", 0o640)},
		"others may read": {Keystore: written(t, box, 0o604),
			PasswordFile: written(t, "open sesame", 0o600)},
		"is no key in Ethereum": {Keystore: written(t, `{"x":1}`, 0o600),
			PasswordFile: written(t, "open sesame", 0o600)},
	} {
		c := w.config()
		c.Operator = conf
		_, err := wallet.Open(nil, wallet.Config{Chains: []wallet.ChainConfig{c}})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), field) ||
			strings.Contains(err.Error(), secret[:16]) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", field, err)
		}
	}
	one := w.config()
	one.Identities["payer"] = one.Operator
	bare := w.config()
	bare.Treasury = common.Address{}
	for field, chains := range map[string][]wallet.ChainConfig{
		"is the operator's key": {one},
		"treasury: is missing":  {bare},
		"stands there twice":    {w.config(), w.config()},
		"rpc: is missing":       {{ChainID: 1}},
		"rpc[0]: is no address": {{ChainID: 1, RPC: []string{"127.0.0.1:8545"}}},
		"chain: is missing":     {{}},
	} {
		if _, err := wallet.Open(nil, wallet.Config{Chains: chains}); !errors.Is(err, repute.ErrInvalid) ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
