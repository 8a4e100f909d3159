// Package keys reads private keys and signs with them: keys from the environment, files and keystores in memory
// (Local), and accounts of remote signers such as clef. A Config names one of them; Open returns its Signer.
//
// Nothing in it shows a key or a part of one: errors name the place of the configuration, and a Local prints its
// address. Files that others may read are refused. The key of a remote signer never leaves it: Open makes no request,
// each signature is bounded by Timeout, and what comes back is checked, here for typed data and in package rules for
// transactions. What may be signed is decided by the callers.
package keys

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/indexer/node"
)

// Config names a key in one of four ways; the zero value names none. Files must be readable only by
// their owner.
type Config struct {
	KeyEnv  string // a variable with 64 hex digits
	KeyFile string // a file with the same

	Keystore     string // a key in Ethereum's JSON form, encrypted
	PasswordFile string // its password, the first line

	URL     string         // a JSON-RPC signer with account_signTransaction, such as clef
	Address common.Address // its account; of the other ways the address that is expected, if any
}

// None reports whether no key is named.
func (s *Config) None() bool { return *s == Config{} }

// Signer signs data. Address is the account, Sign signs a transaction for a chain, and SignTyped
// the digest of EIP-712 data.
type Signer interface {
	Address() common.Address
	SignTyped(ctx context.Context, data apitypes.TypedData) ([]byte, error)
	Sign(ctx context.Context, chainID *big.Int, tx *types.Transaction) (*types.Transaction, error)
}

// Open reads the key; nil if none is named.
func (s *Config) Open(log *slog.Logger, field string) (Signer, error) {
	ways := 0
	for _, w := range []string{s.KeyEnv, s.KeyFile, s.Keystore, s.URL} {
		if w != "" {
			ways++
		}
	}
	switch {
	case s.None():
		return nil, nil
	case ways != 1:
		return nil, repute.Invalid(field, fmt.Sprintf("names %d keys", ways), "one variable, file, keystore or URL")
	case s.URL != "":
		return openRemote(log, field, s.URL, s.Address)
	}
	key, err := s.local(field)
	if err != nil {
		return nil, err
	}
	out := Local{key}
	if (s.Address != common.Address{}) && s.Address != out.Address() {
		return nil, repute.Invalid(field, fmt.Sprintf("is to be of %s, but the key is of %s", s.Address, out.Address()),
			"the key's address after #, or none")
	}
	return out, nil
}

// local reads a key into memory.
func (s *Config) local(field string) (*ecdsa.PrivateKey, error) {
	switch {
	case s.KeyEnv != "":
		text := os.Getenv(s.KeyEnv)
		if text == "" {
			return nil, repute.Invalid(field, "the environment has no "+s.KeyEnv, "set it to the key's 64 hex digits")
		}
		return parseKey(field, text)
	case s.KeyFile != "":
		raw, err := SecretFile(field, s.KeyFile, 1<<10)
		if err != nil {
			return nil, err
		}
		return parseKey(field, string(raw))
	}
	return decryptKey(field, s.Keystore, s.PasswordFile)
}

// parseKey never shows a part of the text.
func parseKey(field, text string) (*ecdsa.PrivateKey, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(text), "0x"))
	if err != nil {
		return nil, repute.Invalid(field, "is no private key", "64 hex digits")
	}
	return key, nil
}

// decryptKey reads a keystore with the password in the first line of a file.
func decryptKey(field, path, passwordFile string) (*ecdsa.PrivateKey, error) {
	if passwordFile == "" {
		return nil, repute.Invalid(field, "the keystore has no password file", "the file with the keystore's password")
	}
	sealed, err := SecretFile(field, path, 64<<10)
	if err != nil {
		return nil, err
	}
	password, err := SecretFile(field, passwordFile, 4<<10)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(password), "\n")
	key, err := keystore.DecryptKey(sealed, strings.TrimSuffix(line, "\r"))
	if errors.Is(err, keystore.ErrDecrypt) {
		return nil, repute.Invalid(field, "the password does not open the keystore",
			"the password that the key was sealed with")
	}
	if err != nil {
		return nil, repute.Invalid(field, "is no key in Ethereum's JSON form", "a file as geth account new writes it")
	}
	return key.PrivateKey, nil
}

// SecretFile reads at most most bytes of a file that only its owner may read. repute.ErrInvalid
// names the field and the fix.
func SecretFile(field, path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, repute.Invalid(field, err.Error(), "give a readable file")
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, repute.Invalid(field, path+" is no file", "give a readable file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, repute.Invalid(field, fmt.Sprintf("others may read %s (mode %04o)", path, info.Mode().Perm()),
			"chmod 600 "+path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil || int64(len(raw)) > most {
		return nil, repute.Invalid(field, fmt.Sprintf("cannot be read, or has more than %d bytes", most),
			"give a readable file")
	}
	return raw, nil
}

// Local is a key in memory.
type Local struct{ Key *ecdsa.PrivateKey }

// Address implements Signer.
func (s Local) Address() common.Address { return crypto.PubkeyToAddress(s.Key.PublicKey) }

// Sign implements Signer.
func (s Local) Sign(_ context.Context, chainID *big.Int, tx *types.Transaction) (*types.Transaction, error) {
	return types.SignTx(tx, types.LatestSignerForChainID(chainID), s.Key)
}

// String keeps the key out of logs.
func (s Local) String() string { return "key of " + s.Address().Hex() }

// GoString keeps the key out of logs.
func (s Local) GoString() string { return s.String() }

// Timeout bounds a request to a signer. It is less than a database's transaction may
// wait for it.
const Timeout = 30 * time.Second

// remoteSigner signs through JSON-RPC.
type remoteSigner struct {
	rpc     *node.Node
	log     *slog.Logger
	account common.Address
}

// openRemote returns a client of a remote signer. It connects at the first signature.
func openRemote(log *slog.Logger, field, raw string, account common.Address) (Signer, error) {
	if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
		return nil, repute.Invalid(field, "is no address", "an http or https URL")
	}
	client, err := node.New(raw, node.Options{Timeout: Timeout, MaxBytes: maxAnswer})
	if err != nil {
		return nil, repute.Invalid(field, "is no address", "an http or https URL")
	}
	if (account == common.Address{}) {
		return nil, repute.Invalid(field, "the signer's account is missing", "its address after #")
	}
	return &remoteSigner{client, log, account}, nil
}

// Address implements Signer.
func (s *remoteSigner) Address() common.Address { return s.account }

// signRequest is the argument of account_signTransaction.
type signRequest struct {
	From    common.Address  `json:"from"`
	To      *common.Address `json:"to"`
	Gas     hexutil.Uint64  `json:"gas"`
	FeeCap  *hexutil.Big    `json:"maxFeePerGas"`
	TipCap  *hexutil.Big    `json:"maxPriorityFeePerGas"`
	Value   *hexutil.Big    `json:"value"`
	Nonce   hexutil.Uint64  `json:"nonce"`
	Input   hexutil.Bytes   `json:"input"`
	ChainID *hexutil.Big    `json:"chainId"`
}

// maxAnswer bounds an answer of a signer, in bytes.
const maxAnswer = 1 << 20

// failed logs a signer's answer and returns an error without it, which is repute.ErrUnavailable.
func (s *remoteSigner) failed(asked string, err error) error {
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("transactions: a signer did not answer", "signer", s.account, "host", s.rpc.Host(), "asked", asked,
			"error", err)
	}
	return fmt.Errorf("%s of the signer of %s: no answer: %w", asked, s.account, repute.ErrUnavailable)
}

// Sign implements Signer.
func (s *remoteSigner) Sign(ctx context.Context, chainID *big.Int, tx *types.Transaction) (*types.Transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var answer struct {
		Raw hexutil.Bytes `json:"raw"`
	}
	err := s.rpc.CallContext(ctx, &answer, "account_signTransaction",
		signRequest{From: s.account, To: tx.To(), Gas: hexutil.Uint64(tx.Gas()),
			FeeCap: (*hexutil.Big)(tx.GasFeeCap()), TipCap: (*hexutil.Big)(tx.GasTipCap()),
			Value: (*hexutil.Big)(tx.Value()),
			Nonce: hexutil.Uint64(tx.Nonce()), Input: tx.Data(), ChainID: (*hexutil.Big)(chainID)})
	if err != nil {
		return nil, s.failed("signature", err)
	}
	signed := new(types.Transaction)
	if err := signed.UnmarshalBinary(answer.Raw); err != nil {
		return nil, s.failed("signature", errors.New("the answer is no transaction"))
	}
	return signed, nil
}

// SignTyped implements Signer.
func (s Local) SignTyped(_ context.Context, data apitypes.TypedData) ([]byte, error) {
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, fmt.Errorf("hash typed data: %w", err)
	}
	signature, err := crypto.Sign(digest, s.Key)
	if err != nil {
		return nil, fmt.Errorf("sign typed data: %w", err)
	}
	signature[64] += 27
	return signature, nil
}

// SignTyped implements Signer. A signature by another account is refused.
func (s *remoteSigner) SignTyped(ctx context.Context, data apitypes.TypedData) ([]byte, error) {
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, fmt.Errorf("hash typed data: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var signature hexutil.Bytes
	if err := s.rpc.CallContext(ctx, &signature, "account_signTypedData", s.account, data); err != nil {
		return nil, s.failed("signature of typed data", err)
	}
	if len(signature) != 65 || signature[64] < 27 {
		return nil, fmt.Errorf("the signer of %s gave no signature: %w", s.account, repute.ErrConflict)
	}
	plain := append([]byte(nil), signature...)
	plain[64] -= 27
	key, err := crypto.SigToPub(digest, plain)
	if err != nil || crypto.PubkeyToAddress(*key) != s.account {
		return nil, fmt.Errorf("the signer of %s signed something else: %w", s.account, repute.ErrConflict)
	}
	return signature, nil
}
