package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/indexer/documents"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// registration is the n-th agent's file: of the usual members and length, about a
// kilobyte, and unlike all others. Its domains are shared by some agents and exist
// nowhere: their proofs are planned and refused without a question to anybody.
func registration(n int) []byte {
	domain := fmt.Sprintf("a%d.bench.invalid", n%200)
	body, err := json.Marshal(map[string]any{
		"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
		"name": fmt.Sprintf("Agent %d of the bench", n),
		"description": fmt.Sprintf("Answers questions about market number %d: prices, liquidity and risk, with sources, in %d languages. "+
			"Reads on-chain data, explains what it found step by step, and says how sure it is. Paid per call; the first ten are free.", n, 2+n%30),
		"image": fmt.Sprintf("https://%s/images/%d.png", domain, n),
		"services": []map[string]any{
			{"name": "A2A", "endpoint": fmt.Sprintf("https://%s/agents/%d/.well-known/agent-card.json", domain, n),
				"version": "0.3.0",
				"skills":  []string{"analytical_skills/data_analysis", fmt.Sprintf("finance/market_%d", n%50)}},
			{"name": "MCP", "endpoint": fmt.Sprintf("https://%s/mcp/%d", domain, n), "version": "2025-06-18",
				"tools": []string{"quote", "explain"}},
			{"name": "agentWallet", "endpoint": fmt.Sprintf("eip155:1:0x%040x", n)},
		},
		"registrations": []map[string]any{{"agentId": n, "agentRegistry": fmt.Sprintf("eip155:%d:%s", benchChain().ID,
			benchChain().Identity.Hex())}},
		"supportedTrust": []string{"reputation", "crypto-economic"},
		"x402Support":    n%2 == 0,
		"active":         true,
	})
	if err != nil {
		return nil // strings, numbers and lists of them cannot fail
	}
	return body
}

// dataURI is the n-th agent's file as a URI.
func dataURI(n int) string {
	return "data:application/json;base64," + base64.StdEncoding.EncodeToString(registration(n))
}

// benchChain is the chain whose agents have the documents. Nothing follows it: the product has the role documents
// alone.
func benchChain() repute.Chain {
	return repute.Chain{ID: 31337, Name: "bench", Identity: common.HexToAddress("0x8004"),
		Reputation: common.HexToAddress("0x8005"), StartBlock: 1}
}

// perBlock is how many agents register in one block: enough that storing them takes a small part of a run.
const perBlock = 500

// makeDue stores the registration of one agent per URI, as indexing would, which
// makes the documents due. It MUST end before the product starts, which would else be
// measured while it waits for work.
func makeDue(ctx context.Context, url string, uris []string) error {
	db, err := store.Open(ctx, url, store.Options{Classify: documents.Classify, MaxConns: 2})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := chaindb.AddChain(ctx, db, benchChain()); err != nil {
		return err
	}
	var parent repute.Block
	for from := 0; from < len(uris); from += perBlock {
		b := registrations(parent, from, uris[from:min(from+perBlock, len(uris))])
		if err := eventdb.Apply(ctx, db, b); err != nil {
			return fmt.Errorf("register agents: %w", err)
		}
		parent = b.To
	}
	return nil
}

// registrations is the block behind parent in which the agents from number first on
// register with their URIs.
func registrations(parent repute.Block, first int, uris []string) eventdb.Batch {
	to := repute.Block{Number: parent.Number + 1, Parent: parent.Hash,
		Time: time.Unix(1_700_000_000+int64(parent.Number), 0).UTC()}
	to.Hash = crypto.Keccak256Hash(fmt.Append(nil, to.Number))
	b := eventdb.Batch{ChainID: benchChain().ID, Parent: parent, To: to, Blocks: []repute.Block{to}}
	for i, uri := range uris {
		id := *uint256.NewInt(uint64(first + i))
		owner := common.BigToAddress(uint256.NewInt(uint64(first + i + 1)).ToBig())
		for _, e := range []repute.Event{repute.Transfer{To: owner, TokenID: id},
			repute.Registered{TokenID: id, URI: uri, Owner: owner}} {
			b.Records = append(b.Records, repute.Record{Time: to.Time, Event: e,
				Log: types.Log{Address: benchChain().Identity,
					Topics: []common.Hash{crypto.Keccak256Hash(fmt.Append(nil, e.Kind()))}, BlockNumber: to.Number,
					BlockHash: to.Hash,
					TxHash:    crypto.Keccak256Hash(id.Bytes()), TxIndex: uint(i), Index: uint(len(b.Records))}})
		}
	}
	return b
}
