package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/devnet"
)

// follower writes the configuration of another process that follows the demo's chain.
// What that process stores is in the same directory and outlives the demo: the other
// process may still run. The directory also holds the certificate of the demo's documents, and
// its roots of trust, which are in no configuration.
func (d *demo) follower(roots []devnet.Account) (file string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "repute-demo-")
	if err != nil {
		return "", nil, err
	}
	file = filepath.Join(dir, "follow.yaml")
	files := map[string][]byte{
		file:                              []byte(followerText(d.chain.Chain(), d.chain.RPCURL(), dir, d.docs)),
		filepath.Join(dir, followerCA):    d.docs.Certificate(),
		filepath.Join(dir, followerRoots): []byte(rootsText(d.chain.Chain().ID, roots)),
	}
	remove = func() {
		for name := range files {
			_ = os.Remove(name)
		}
		_ = os.Remove(dir) // fails where another process keeps its data
	}
	err = os.Chmod(dir, 0o755) // root's Postgres runs as another user
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(name, text, 0o644))
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return file, remove, nil
}

// Files next to the configuration: the certificate of the demo's documents, and the roots
// of its scores.
const (
	followerCA    = "documents.pem"
	followerRoots = "roots.yaml"
)

// watchtowerReason is why those who measure agents are roots of the demo.
const watchtowerReason = "measures agents of the demo and is paid by none of them"

// rootsText is a file for roots import.
func rootsText(chain uint64, roots []devnet.Account) string {
	var b strings.Builder
	for _, r := range roots {
		fmt.Fprintf(&b, "- {chain: %d, address: %q, reason: %q}\n", chain, r.Address.Hex(), watchtowerReason)
	}
	return b.String()
}

// followerText is a configuration in dir for a process that follows a demo.
func followerText(chain repute.Chain, rpc, dir string, docs *devnet.Documents) string {
	return fmt.Sprintf(`# The chain of a running demo of repute, for another process.
listen: 127.0.0.1:0
roles: [indexer, documents, trust, api]
data_dir: %q
allow_hosts: [%q]
ipfs_gateways: [%q]
chains:
  - name: %s
    id: %d
    identity: %q
    reputation: %q
    validations: [%s]
    start_block: %d
    rpc: %s
`, filepath.Join(dir, "data"), docs.Host(), docs.URL(), chain.Name, chain.ID, chain.Identity, chain.Reputation,
		quoted(chain.Validations), chain.StartBlock, rpc)
}

// quoted writes addresses as the members of a list in YAML.
func quoted(list []common.Address) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = strconv.Quote(a.Hex())
	}
	return strings.Join(out, ", ")
}
