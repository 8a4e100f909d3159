package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"repute"
	"repute/contracts/bindings"
	"repute/devnet"
	"repute/internal/population"
	"repute/manifest"
	"repute/orchestrator/agents"
)

// crew are the demo's own agents: those that work for the orchestrator, and one with an endpoint that can be measured
// and paid. They are registered and rated on the demo's chain before its population is, as anybody's are. members are
// in the order of their registration.
type crew struct {
	members  []*member
	treasury common.Address
	coin     coin
	owner    devnet.Account // of the treasury
	operator devnet.Account // who executes for the payer
}

// member is one of the crew. id is 0 until the registration is mined.
type member struct {
	slug          string // of an agent that repute comes with, or of the one that is measured
	id            uint64
	owner, wallet devnet.Account
}

// weather is the agent that is measured.
const weather = "weather"

// Accounts of the devnet from which on the crew's are: the population has those before.
const crewAccounts = 200

// What the demo's treasury lets the payer move, in wei.
const (
	crewPerPayment = params.Ether / 100
	crewPerDay     = params.Ether / 10
)

// demoPolicy leaves tasks to a person that ask for one, and lets agents pay for answers of agents that
// the demo's index trusts.
const demoPolicy = `version: "1"
payments: {index: %q, maxCall: "0.05", maxTask: "0.10", minScore: 20}
rules:
  - {id: asked-for, when: '"ask" in task.tags && agent.slug == task.coordinator', effect: require_approval, reason: tasks with the tag ask are looked at}
`

// settleCrew registers the crew, has the watchtowers rate it, founds the treasury and deploys the token. selling is the
// address at which the seller sells. Each step is a block, since the next one needs what it made: the ids of
// registrations, then the addresses of contracts, which stand in the receipts behind those of the members' wallets.
func settleCrew(ctx context.Context, chain *devnet.Devnet, docs *devnet.Documents, selling string) (*crew, error) {
	c := &crew{owner: chain.Account(crewAccounts), operator: chain.Account(crewAccounts + 1)}
	for i, slug := range append(agents.Names(), weather, seller) {
		c.members = append(c.members, &member{slug: slug, owner: chain.Account(crewAccounts + 2 + 2*i),
			wallet: chain.Account(crewAccounts + 3 + 2*i)})
	}
	c.coin.settler = chain.Account(crewAccounts + 2 + 2*len(c.members))
	steps := []func(*devnet.Devnet, *devnet.Batch){
		func(chain *devnet.Devnet, b *devnet.Batch) { c.register(docs, b) },
		func(chain *devnet.Devnet, b *devnet.Batch) { c.setWallets(b); c.found(b); c.deployCoin(b) },
		func(chain *devnet.Devnet, b *devnet.Batch) { c.rate(chain, b) },
	}
	for i, fill := range steps {
		b := chain.Batch()
		fill(chain, b)
		mined, err := b.Mine(ctx)
		if err != nil {
			return nil, fmt.Errorf("settle the demo's agents: %w", err)
		}
		if i == 0 {
			for j, id := range mined.Registered() {
				c.members[j].id = id
			}
			c.publish(chain.Chain(), docs, selling)
		}
		if i == 1 {
			c.treasury = mined.Receipts[len(c.members)].ContractAddress
			c.coin.at = mined.Receipts[len(c.members)+1].ContractAddress
		}
	}
	return c, c.fund(ctx, chain)
}

// crewPath is where a file of a member is on the server of the demo's documents.
func crewPath(slug, file string) string { return "/crew/" + slug + "/" + file }

// register adds the registrations of all members to a batch, in their order, by which settleCrew finds their ids. The
// URIs lead to nothing until publish.
func (c *crew) register(docs *devnet.Documents, b *devnet.Batch) {
	for _, m := range c.members {
		b.Register(m.owner, docs.URL()+crewPath(m.slug, "registration.json"))
	}
}

// publish writes what the crew's URIs lead to, now that its ids are known.
func (c *crew) publish(chain repute.Chain, docs *devnet.Documents, selling string) {
	for _, m := range c.members {
		services := []map[string]any{{"name": "openfi-api", "endpoint": docs.URL() + crewPath(m.slug, "agent.json")}}
		if m.slug == weather {
			services = []map[string]any{{"name": "web", "endpoint": docs.URL() + crewPath(weather, "forecast")}}
			docs.Serve(crewPath(weather, "forecast"), "application/json",
				[]byte(`{"place":"harbor","wind":"4 Bft","rain":false}`))
		} else if m.slug == seller {
			services = []map[string]any{{"name": "web", "endpoint": forecastURL(selling)}}
		} else if a, err := agents.New(m.slug, agents.Self{ID: m.identity(chain), Wallet: m.wallet.Address,
			Owner: m.owner.Address}, agents.Options{}); err == nil {
			docs.Serve(crewPath(m.slug, "agent.json"), "application/json", encoded(a.Info().Manifest))
		}
		services = append(services,
			map[string]any{"name": "agentWallet",
				"endpoint": fmt.Sprintf("eip155:%d:%s", chain.ID, m.wallet.Address.Hex())})
		docs.Serve(crewPath(m.slug, "registration.json"), "application/json", encoded(map[string]any{
			"type": manifest.TypeRegistration, "name": m.title(), "description": "One of the demo's own agents.",
			"image":    docs.URL() + "/logo.png",
			"services": services, "active": true, "supportedTrust": []string{"reputation"},
			"registrations": []any{map[string]any{"agentId": m.id,
				"agentRegistry": fmt.Sprintf("eip155:%d:%s", chain.ID,
					chain.Identity)}}}))
	}
}

// encoded is a value that can be encoded, as JSON.
func encoded(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}

// title is a member's name for people.
func (m *member) title() string { return "Demo " + strings.ToUpper(m.slug[:1]) + m.slug[1:] }

// identity is the member's full id on the demo's chain.
func (m *member) identity(chain repute.Chain) *repute.AgentID {
	id := repute.AgentID{ChainID: chain.ID, Registry: chain.Identity}
	id.TokenID.SetUint64(m.id)
	return &id
}

// setWallets binds each member's wallet to its agent, with the signature of the wallet's key.
func (c *crew) setWallets(b *devnet.Batch) {
	for _, m := range c.members {
		b.SetAgentWallet(m.owner, m.id, m.wallet)
	}
}

// found deploys the treasury. Its address is in the receipt after those of setWallets.
func (c *crew) found(b *devnet.Batch) {
	t := bindings.NewOpenFiTreasury()
	b.Send(c.owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		t.PackConstructor(c.owner.Address)...))
}

// fund gives the treasury coins and the payer a policy: it may pay the agent that is measured, and
// nobody else.
func (c *crew) fund(ctx context.Context, chain *devnet.Devnet) error {
	b := chain.Batch()
	b.Pay(c.owner, c.treasury, big.NewInt(params.Ether))
	treasury, payer := bindings.NewOpenFiTreasury(), crypto.Keccak256Hash([]byte(agents.Payer))
	b.Send(c.owner, &c.treasury, treasury.PackSetPolicy(payer, true, c.operator.Address, big.NewInt(crewPerPayment),
		big.NewInt(crewPerDay), new(big.Int)))
	b.Send(c.owner, &c.treasury, treasury.PackSetCall(payer, c.member(weather).wallet.Address, [4]byte{}, true))
	c.mint(b)
	if _, err := b.Mine(ctx); err != nil {
		return fmt.Errorf("fund the demo's treasury: %w", err)
	}
	return nil
}

// rate has the watchtowers say what they measured: much of those that work here, less of
// the one that is to be measured, just enough that it is rated. Each says something else:
// who says the same in one block counts as one.
func (c *crew) rate(chain *devnet.Devnet, b *devnet.Batch) {
	for i, w := range population.Watchtowers(chain) {
		for j, m := range c.members {
			success, up := int64(96+(i+j)%4), int64(9900+10*i)
			if m.slug == weather {
				if success, up = int64(75+i), int64(9700+i); i >= 7 {
					continue
				}
			}
			b.GiveFeedback(w, devnet.Rating{Agent: m.id, Value: big.NewInt(success), Tag1: "successRate"})
			b.GiveFeedback(w, devnet.Rating{Agent: m.id, Value: big.NewInt(up), Decimals: 2, Tag1: "uptime"})
		}
	}
}

// member is the one of a slug.
func (c *crew) member(slug string) *member {
	for _, m := range c.members {
		if m.slug == slug {
			return m
		}
	}
	return c.members[0] // the slugs are those of this file: not reached
}

// ref is how callers name a member.
func (m *member) ref(chain uint64) string { return fmt.Sprintf("%d:%d", chain, m.id) }

// equip writes the crew's keys into files of dir and returns the configuration of the
// orchestrator with them, whose agents ask the index at a URL before they pay. The keys derive from a
// public seed: the files are private anyway.
func (c *crew) equip(dir string, chain repute.Chain, index string) (map[string]any, error) {
	var failed error
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		failed = errors.Join(failed, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key := func(name string, a devnet.Account) string {
		return "file:" + write(name, a.PrivateKey())
	}
	working, identities := map[string]string{}, map[string]string{}
	for _, m := range c.members {
		if m.slug != weather && m.slug != seller {
			working[m.slug], identities[m.slug] = m.ref(chain.ID), key(m.slug, m.wallet)
		}
	}
	identities[settlerSlug] = key(settlerSlug, c.coin.settler)
	wallet := map[string]any{"chain": fmt.Sprint(chain.ID), "treasury": c.treasury.Hex(),
		"operator": key("operator", c.operator), "owner": key("owner", c.owner),
		"identities": identities}
	return map[string]any{"agents": working, "wallets": []any{wallet}, "coordinator": agents.Coordinator,
		"policy": write("policy.yaml", fmt.Sprintf(demoPolicy, index))}, failed
}
