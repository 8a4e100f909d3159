package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"repute"
	"repute/api/wire"
	"repute/devnet"
	"repute/internal/freeport"
	"repute/internal/pg"
	"repute/internal/population"
	"repute/store"
	"repute/store/rootdb"
)

// demo is a running demonstration. run sets its fields in the order in which the parts start. No field changes
// afterwards, so that the parts read them without a lock.
type demo struct {
	options
	tokens map[string]string // by the role they are for
	chain  *devnet.Devnet
	docs   *devnet.Documents
	base   string // URL of the API
	dbURL  string
	dir    string // of the files that the product reads
	crew   *crew
	rival  net.Listener // of the agent that the ring praises
	// selling is the address of the runtime that sells forecasts.
	selling string
	model   net.Listener // of the scripted model that drives the guide
}

// newDemo checks the options and chooses the address of the API. Tokens are random for each run, so that no page in a
// browser can guess one.
func newDemo(o options) (*demo, error) {
	address, err := freeAddress(o.listen)
	if err != nil {
		return nil, err
	}
	o.listen = address
	d := &demo{options: o, base: "http://" + address, tokens: map[string]string{}}
	for _, r := range demoRoles() {
		d.tokens[r[0]] = rand.Text()
	}
	return d, nil
}

// freeAddress replaces port 0 of an address by one that is free. repute.ErrInvalid when nothing can listen there.
// Between this and the use of the port another process may take it, which the part that listens then tells.
func freeAddress(address string) (string, error) {
	free, err := freeport.Of(address)
	if err != nil {
		return "", repute.Invalid("listen", err.Error(),
			"give --listen a free host:port, such as 127.0.0.1:0; with make: ARGS='--listen 127.0.0.1:0'")
	}
	return free, nil
}

// run starts the parts from the bottom up and takes them down in reverse.
func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "repute-demo-keys-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	d.progress("starting a private Postgres")
	database, err := pg.Start(ctx, pg.Options{Log: d.log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDatabase(database)) }()
	database.Keep()
	d.dbURL = database.URL()
	d.progress("starting an Ethereum chain and deploying the registries")
	if d.docs, err = devnet.StartDocuments(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.docs.Close()) }()
	if d.chain, err = startChain(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.chain.Close()) }()
	if d.selling, err = freeAddress("127.0.0.1:0"); err != nil {
		return err
	}
	if d.crew, err = settleCrew(ctx, d.chain, d.docs, d.selling); err != nil {
		return err
	}
	if d.rival, err = net.Listen("tcp", "127.0.0.1:0"); err != nil { // the orchestrator must be told the address
		return err
	}
	defer d.rival.Close()
	stopModel, err := d.serveModel()
	if err != nil {
		return err
	}
	defer stopModel()
	if err := d.trustWatchtowers(ctx); err != nil {
		return err
	}
	config, err := d.configure()
	if err != nil {
		return err
	}
	agent, err := d.writeSeller()
	if err != nil {
		return err
	}
	return d.serve(ctx, config, agent)
}

// stopDatabase ends the private Postgres. The context of the demo has ended by then, so that it has one of its own.
func stopDatabase(s *pg.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Stop(ctx)
}

// startChain prefers the usual JSON-RPC port.
func startChain(ctx context.Context) (*devnet.Devnet, error) {
	port := 8545
	probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		port = 0
	} else if err := probe.Close(); err != nil {
		return nil, err
	}
	return devnet.Start(ctx, devnet.Options{Port: port, Seed: "demo"})
}

// serve runs the product, and the runtime of the agent that a file describes, while the population acts. The first part
// that fails ends all others; with --once the end of the comparison does.
func (d *demo) serve(ctx context.Context, config, agent string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return d.product(ctx, "serve", "--config", config, "--log-format", d.logFormat,
			"--log-level", d.logLevel)
	})
	g.Go(func() error {
		return d.product(ctx, "agent", "serve", "--config", agent, "--main-config", config)
	})
	g.Go(func() error {
		defer cancel() // the life's end is the demo's
		d.progress("populating the chain")
		p, err := population.Populate(ctx, d.chain, population.Options{Documents: d.docs, Seed: 1,
			Until: time.Now()})
		if err != nil {
			return err
		}
		if d.once {
			return d.verify(ctx, p)
		}
		follow, remove, err := d.follower(p.Watchtowers)
		if err != nil {
			return err
		}
		defer remove()
		d.banner(follow)
		g.Go(func() error { return d.announceTasks(ctx, p) })
		return d.live(ctx, p)
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// trustWatchtowers makes those who measure agents the chain's roots of trust, before
// anything is scored.
func (d *demo) trustWatchtowers(ctx context.Context) error {
	if err := store.Migrate(ctx, d.dbURL); err != nil {
		return err
	}
	db, err := store.Open(ctx, d.dbURL, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	var roots []repute.TrustRoot
	for _, w := range population.Watchtowers(d.chain) {
		roots = append(roots, repute.TrustRoot{Address: w.Address, Weight: repute.RootUnit, Reason: watchtowerReason})
	}
	return rootdb.AddRoots(ctx, db, d.chain.Chain().ID, repute.DefaultRoots, roots, true)
}

// live adds a little activity each second, and every other second a block of what
// people sent to the devnet themselves. A period that never comes round makes
// those blocks follow the clock.
func (d *demo) live(ctx context.Context, p *population.Population) error {
	d.chain.SetPeriod(24 * time.Hour)
	for second := 1; ; second++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		var err error
		if second%2 == 0 {
			_, err = d.chain.Mine(ctx)
		} else {
			err = p.Tick(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("demo activity: %w", err)
		}
	}
}

// verify lets the population live through a few blocks and a reorganization,
// waits for the index and compares.
func (d *demo) verify(ctx context.Context, p *population.Population) error {
	started := time.Now()
	for range 5 {
		if err := p.Tick(ctx); err != nil {
			return err
		}
	}
	d.progress("reorganizing the last three blocks")
	if err := d.chain.Reorg(ctx, 3, 5); err != nil {
		return err
	}
	d.progress("waiting for the index")
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.progress("comparing the API with the chain's view functions")
	v := newVerification(d.base, d.chain)
	if err := v.run(ctx); err != nil {
		return err
	}
	if err := v.scores(ctx, p); err != nil {
		return err
	}
	tasks, err := d.mineTasks(ctx, p)
	if err != nil {
		return err
	}
	v.tasks(tasks)
	v.sold(tasks.Sold)
	d.caps(ctx, v)
	summary := struct {
		OK bool `json:"ok"`
		*verification
		Tasks   shown   `json:"tasks"`
		Seconds float64 `json:"seconds"`
	}{len(v.Mismatches) == 0, v, tasks, time.Since(started).Round(time.Millisecond).Seconds()}
	if err := printJSON(d.stdout, summary); err != nil {
		return err
	}
	if !summary.OK {
		return fmt.Errorf("%d answers differ from the chain", len(v.Mismatches))
	}
	return nil
}

// settle waits until the index has the chain's head, no document is due, and each was read: one that is
// being fetched is not due.
func (d *demo) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var last error
	for {
		var status wire.StatusAnswer
		var unread wire.AgentList
		if last = getJSON(ctx, d.base+"/status", &status); last == nil && d.settled(status) {
			last = getJSON(ctx, d.base+"/agents?status=pending&limit=1", &unread)
			if last == nil && len(unread.Items) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the index did not settle: %+v: %w", status, errors.Join(ctx.Err(), last))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// settled reports whether the index has the chain's newest block, by its hash, and no document is due.
func (d *demo) settled(status wire.StatusAnswer) bool {
	head := d.chain.Head()
	for _, c := range status.Chains {
		if uint64(c.ChainID) == d.chain.Chain().ID {
			atHead := uint64(c.AsOf.Block) == head.Number && c.AsOf.Hash != nil &&
				string(*c.AsOf.Hash) == head.Hash.Hex()
			return atHead && c.Documents.Due == 0
		}
	}
	return false
}

// progress tells a person what takes time. Standard output has the summary or the banner alone.
func (d *demo) progress(what string) { fmt.Fprintln(d.stderr, "demo:", what) }

// banner prints the addresses of everything for a person.
func (d *demo) banner(follow string) {
	faucet := d.chain.Faucet()
	fmt.Fprintf(d.stdout, `
repute is running. Ctrl-C ends it; nothing is kept.

  start here  %[1]s/
  API         %[1]s/agents   documentation at %[1]s/docs
  GraphQL     %[1]s/graphql  try it at %[1]s/graphiql
  tasks       %[1]s/v1/tasks  described at %[1]s/docs
  tokens      one for each role
%[11]s  status      %[1]s/status   metrics at %[1]s/metrics
  devnet RPC  %[2]s  (chain id %[3]d, also as WebSocket)
  faucet      %[4]s, key %[5]s
  database    %[7]s
  admin       %[1]s/admin/jobs  (any user, password %[8]s)

Try:

  curl -s '%[1]s/agents?sort=feedback&order=desc&limit=3'
  curl -s '%[1]s/agents/%[3]d:1/reputation'
  curl -s '%[1]s/v1/tasks' -H 'authorization: Bearer %[10]s' \
    -d '{"goal":"measure an agent","input":{"report":{"agent":"%[3]d:5"}},"threshold":{"minReputation":20}}'

With "tags":["ask"] the task waits for you: repute task approve TASK shows for what, and how to answer.

The command line works on the demo's database:

  export PATH='%[14]s':"$PATH"
  export DATABASE_URL='%[7]s'
  repute score explain %[3]d:1

Make an agent of your own, and run it here:

  repute agent new my-agent    (--remote: in Python)
  repute agent run ./my-agent --orchestrator %[1]s --token %[12]s

Follow the same chain from another process, with an index of its own:

  unset DATABASE_URL
  repute roots import %[9]s --config %[6]s
  SSL_CERT_FILE=%[13]s repute serve --config %[6]s

One file of its ipfs gateway is wrong on purpose: the log warns of it. Four tasks are given now:

`, d.base, d.chain.RPCURL(), d.chain.Chain().ID, faucet.Address, faucet.PrivateKey(), follow, d.dbURL, d.tokens[demoOperate],
		filepath.Join(filepath.Dir(follow), followerRoots),
		d.tokens[demoAsk], d.tokenLines(), d.tokens[demoOperate], filepath.Join(filepath.Dir(follow), followerCA),
		filepath.Dir(d.program))
}
