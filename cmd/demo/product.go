package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// stopWithin is how long the product may take to end after it was interrupted. After that it is killed. It is longer
// than the product itself waits for requests.
const stopWithin = 15 * time.Second

// product runs the binary of the product until it ends or ctx does. What it logs goes to standard error. It never
// returns nil: a product that ends by itself is a failure of the demo.
func (d *demo) product(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Stdout, cmd.Stderr = d.stderr, d.stderr
	cmd.Env = append(os.Environ(), "DATABASE_URL="+d.dbURL, "SSL_CERT_FILE="+d.authority())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWithin
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("%s %s: %w", filepath.Base(d.program), strings.Join(args, " "), err)
}

// authority is the file with the certificate of the documents' host.
func (d *demo) authority() string { return filepath.Join(d.dir, "documents.pem") }

// configure writes the configuration that points the product at the demo's own chain, documents and agents, and returns
// its path. Files of keys are readable by their owner only, which the product insists on.
func (d *demo) configure() (string, error) {
	chain := d.chain.Chain()
	orchestrator, err := d.crew.equip(d.dir, chain, d.base)
	if err != nil {
		return "", err
	}
	if orchestrator["oaf"], err = d.writeGuide(); err != nil {
		return "", err
	}
	orchestrator["development"], orchestrator["public_url"] = true, d.base
	orchestrator["tokens"], orchestrator["roles"] = d.tokens, d.roles()
	orchestrator["agent_hosts"] = []string{d.rival.Addr().String(), agentAddress}
	signing := filepath.Join(d.dir, "signing")
	validations := make([]string, len(chain.Validations))
	for i, v := range chain.Validations {
		validations[i] = v.Hex()
	}
	text, err := yaml.Marshal(map[string]any{
		"listen": d.listen, "roles": []string{"indexer", "documents", "trust", "api", "orchestrator"}, "rate": -1,
		"default_chain": chain.ID,
		// Webhooks of a person who tries the demo are at localhost.
		"allow_hosts": []string{d.docs.Host(), d.selling, "localhost"}, "ipfs_gateways": []string{d.docs.URL()},
		"signing":      map[string]any{"key": "file:" + signing},
		"orchestrator": orchestrator,
		"chains": []any{map[string]any{"name": chain.Name, "id": chain.ID, "identity": chain.Identity.Hex(),
			"reputation":  chain.Reputation.Hex(),
			"validations": validations, "start_block": chain.StartBlock, "rpc": d.chain.RPCURL(),
			"stablecoins": d.crew.stablecoins()}},
	})
	if err != nil {
		return "", err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it does not fail
	config := filepath.Join(d.dir, "repute.yaml")
	return config, errors.Join(os.WriteFile(d.authority(), d.docs.Certificate(), 0o600),
		os.WriteFile(signing, []byte(hex.EncodeToString(key)), 0o600),
		os.WriteFile(config, text, 0o600))
}
