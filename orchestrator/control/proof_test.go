package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// own makes an agent of an owner on an indexed chain.
func (h *house) own(owner common.Address) repute.AgentID {
	h.t.Helper()
	registry := common.HexToAddress("0x8004")
	ok(h.t, chaindb.AddChain(h.t.Context(), h.db, repute.Chain{ID: 7, Name: "seven", Identity: registry,
		Reputation: common.HexToAddress("0x8005"), StartBlock: 1}))
	parent, err := chaindb.Cursor(h.t.Context(), h.db, 7)
	ok(h.t, err)
	block := repute.Block{Number: 1, Parent: parent.Hash, Hash: common.Hash{1}, Time: time.Unix(1_750_000_000, 0).UTC()}
	batch := eventdb.Batch{ChainID: 7, Parent: parent, To: block, Blocks: []repute.Block{block}}
	for i, e := range []repute.Event{repute.Transfer{To: owner}, repute.Registered{Owner: owner}} {
		log := types.Log{Address: registry, Topics: []common.Hash{{1}}, BlockNumber: 1, BlockHash: block.Hash,
			Index: uint(i)}
		batch.Records = append(batch.Records, repute.Record{Log: log, Time: block.Time, Event: e})
	}
	ok(h.t, eventdb.Apply(h.t.Context(), h.db, batch))
	return repute.AgentID{ChainID: 7, Registry: registry}
}

// Outside development nobody works under an identity that is not theirs.
func TestIdentityMustBeProven(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(remote.Info{Protocol: remote.Protocol, Slug: "faraway", DisplayName: "Faraway",
			Version: "1.2.3", IdentityMode: standard.IdentityMode,
			Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "Faraway", Slug: "faraway",
				Version: "1.2.3"}})
	}))
	t.Cleanup(agent.Close)
	h := newHouse(t, func(o *options) { o.Agents, o.Lenient = agent.Client(), false })
	owner, err := crypto.GenerateKey()
	ok(t, err)
	stranger, err := crypto.GenerateKey()
	ok(t, err)
	id := h.own(crypto.PubkeyToAddress(owner.PublicKey))
	soon := time.Now().Add(time.Minute).Unix()
	sign := func(text string) string {
		b, err := crypto.Sign(accounts.TextHash([]byte(text)), owner)
		ok(t, err)
		return hexutil.Encode(b)
	}
	foreign, err := crypto.Sign(accounts.TextHash([]byte(control.ClaimText("faraway", agent.URL, id, soon))), stranger)
	ok(t, err)
	good := sign(control.ClaimText("faraway", agent.URL, id, soon))
	for name, c := range map[string]struct {
		expires   int64
		signature string
		says      string
	}{
		"none":          {0, "", "nothing shows"},
		"of a stranger": {soon, hexutil.Encode(foreign), "neither wallet nor owner"},
		"other time":    {soon + 1, good, "neither wallet nor owner"},
		"past":          {soon - 3600, sign(control.ClaimText("faraway", agent.URL, id, soon-3600)), "is past"},
		"for ever":      {soon + 7200, sign(control.ClaimText("faraway", agent.URL, id, soon+7200)), "an hour ahead"},
		"of another URL": {soon, sign(control.ClaimText("faraway", agent.URL+"/x", id, soon)),
			"neither wallet nor owner"},
		"no signature": {soon, "0x12", "is no signature"},
		"zeros":        {soon, "0x" + strings.Repeat("00", 65), "is no signature"},
	} {
		proof := fmt.Sprintf(`,"proof":{"expires":%d,"signature":%q}`, c.expires, c.signature)
		if c.signature == "" {
			proof = ""
		}
		r := h.ann(http.MethodPost, "/v1/agents",
			fmt.Sprintf(`{"slug":"faraway","url":%q,"agentId":"7:0"%s}`, agent.URL,
				proof))
		if r.status != http.StatusBadRequest || !strings.Contains(string(r.body), c.says) {
			t.Errorf("proof %s: %d %s", name, r.status, r.body)
		}
	}
	r := h.ann(http.MethodPost, "/v1/agents",
		fmt.Sprintf(`{"slug":"faraway","url":%q,"agentId":"7:0","proof":{"expires":%d,"signature":%q}}`,
			agent.URL, soon,
			good))
	if r.status != http.StatusCreated {
		t.Errorf("the owner's: %d %s", r.status, r.body)
	}
}
