package orchestrator_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/audit"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/trust/explain"
	"repute/trust/statement"
)

// decidedByPeople asks a person about an agent where the task demands a reputation, and again
// where more is moved than the task declared.
const decidedByPeople = `version: "1"
trust:
  unrated: require_approval
  byValue: [{fromWei: "1000", threshold: {minReputation: 50}}]
`

// decided is a database with two tasks that people decided about, each with a sub-run.
type decided struct {
	*house
	signer *statement.Signer // nil: heads are not signed
	plane  *control.Control
	routes http.Handler
	a, b   repute.Task
	subA   string
	subB   string
}

func statementKey(t *testing.T, n byte) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{n}, 32))
	ok(t, err)
	return key
}

func newDecided(t *testing.T, signer *statement.Signer) *decided {
	t.Helper()
	o := store.Options{}
	var keys []statement.Key
	if signer != nil {
		keys = signer.Keys().Keys
		o.Seal = func(h repute.DecisionsHead) (repute.SealedHead, error) { return signer.SealHead(h, time.Now()) }
	}
	db, err := store.Open(t.Context(), pgtest.New(t), o)
	ok(t, err)
	t.Cleanup(db.Close)
	client, err := tasks.NewClient(db)
	ok(t, err)
	d := &decided{house: &house{t, db, client}, signer: signer}
	head, hand := newWorker("head"), newWorker("hand")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "hand"}}}
	}
	hand.do = sends(pays(1, "5000"))
	current := rules(t, decidedByPeople)
	d.start(orchestrator.Options{Lenient: true, Policy: current, Chain: &outside{}, ExecutionChain: 7,
		Modules: []orchestrator.Module{head, hand}})
	d.a, d.subA = d.decide()
	d.b, d.subB = d.decide()
	replay, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	server, err := httpapi.NewServer(httpapi.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	ok(t, err)
	d.plane, err = control.New(control.Options{Server: server, DB: db, Client: client, Policy: current, Lenient: true,
		Replay: replay, Keys: keys})
	ok(t, err)
	d.routes, err = server.Handler()
	ok(t, err)
	return d
}

// decide submits a task and approves of all that it asks.
func (d *decided) decide() (task repute.Task, sub string) {
	d.t.Helper()
	least := 10.0
	task = d.submit(standard.Request{Coordinator: "head",
		Terms: standard.Terms{Threshold: policy.Threshold{MinReputation: &least}}})
	d.until("task ends", func() bool {
		runs, err := rundb.TaskRuns(d.t.Context(), d.db, task.ID)
		ok(d.t, err)
		for _, r := range runs {
			open, err := rundb.Awaited(d.t.Context(), d.db, r.ID)
			ok(d.t, err)
			for _, o := range open {
				_ = d.client.Approve(d.t.Context(), r.ID, o.Subject, true, "ann",
					"fine") // the run may be about to wait
			}
		}
		return runs[0].Status.Ended()
	})
	task, run := d.ended(task)
	if task.Status != repute.TaskCompleted {
		d.t.Fatalf("task %s: %s", task.Status, run.Error)
	}
	runs, err := rundb.TaskRuns(d.t.Context(), d.db, task.ID)
	ok(d.t, err)
	return task, runs[1].ID
}

func (d *decided) exec(sql string) {
	d.t.Helper()
	sql = strings.NewReplacer("$rootA", "'"+d.a.Run+"'", "$rootB", "'"+d.b.Run+"'", "$subA", "'"+d.subA+"'", "$subB",
		"'"+d.subB+"'", "$taskA", "'"+d.a.ID+"'", "$taskB", "'"+d.b.ID+"'").Replace(sql)
	if _, err := d.db.Pool().Exec(d.t.Context(), sql); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

func (d *decided) check(run string) control.GateCheck {
	d.t.Helper()
	got, err := d.plane.VerifyGate(d.t.Context(), run, 0, 1000)
	ok(d.t, err)
	return got
}

// keep remembers the tables that a test edits; restore puts them back.
func (d *decided) keep() {
	d.exec(`create schema kept; create table kept.run_decisions as table run_decisions; create table kept.run_phases as table run_phases;
		create table kept.run_approvals as table run_approvals; create table kept.trust_inputs as table trust_inputs; create table kept.tasks as table tasks;
		create table kept.runs as table runs`)
}

func (d *decided) restore() {
	d.exec(`delete from run_decisions; insert into run_decisions overriding system value table kept.run_decisions;
		delete from run_phases; insert into run_phases table kept.run_phases; delete from run_approvals; insert into
			run_approvals table kept.run_approvals;
		delete from trust_inputs; insert into trust_inputs table kept.trust_inputs;
		update tasks t set terms = k.terms from kept.tasks k where k.id = t.id;
		update runs r set task_id = k.task_id, status = k.status, decisions = k.decisions, decisions_head =
			k.decisions_head, decisions_signer = k.decisions_signer,
			decisions_signature = k.decisions_signature from kept.runs k where k.id = r.id`)
}

// rewrite edits the trust decision of a root run, in both places, and links the whole chain
// anew: all that somebody can do who may write the database.
func (d *decided) rewrite() {
	d.t.Helper()
	ctx := d.t.Context()
	d.exec(`update run_decisions set input = replace(input::text, '"minReputation":10', '"minReputation":1')::json where root_id = $rootA;
		update run_phases set result = replace(result::text, '"minReputation":10', '"minReputation":1')::json where run_id in ($rootA, $subA);
		update tasks set terms = replace(terms::text, '"minReputation":10', '"minReputation":1')::json where id = $taskA`)
	t, err := rundb.ReadDecidedTask(ctx, d.db, d.a.Run)
	ok(d.t, err)
	var last common.Hash
	for _, link := range t.Decisions {
		link.Previous = last
		last, err = link.Sum()
		ok(d.t, err)
		_, err = d.db.Pool().Exec(ctx,
			`update run_decisions set previous = $3, hash = $4 where root_id = $1 and number = $2`, link.Root,
			link.Number,
			link.Previous.Bytes(), last.Bytes())
		ok(d.t, err)
	}
	_, err = d.db.Pool().Exec(ctx, `update runs set decisions_head = $2 where id = $1`, d.a.Run, last.Bytes())
	ok(d.t, err)
}

// sealAs signs the present head of the first task with another key.
func (d *decided) sealAs(n byte) {
	d.t.Helper()
	head, err := rundb.DecisionsHead(d.t.Context(), d.db, d.a.Run)
	ok(d.t, err)
	sealed, err := statement.NewSigner(statementKey(d.t, n), time.Hour, time.Time{}, nil).SealHead(head.DecisionsHead,
		time.Now())
	ok(d.t, err)
	_, err = d.db.Pool().Exec(d.t.Context(),
		`update runs set decisions_signer = $2, decisions_signature = $3 where id = $1`, d.a.Run, sealed.Signer.Bytes(),
		sealed.Signature)
	ok(d.t, err)
}

// untouched fails where something is wrong with decisions that nobody edited.
func (d *decided) untouched(run string) {
	d.t.Helper()
	got, signed := d.check(run), d.signer != nil
	if !got.Verified || len(got.Faults) > 0 || got.Signed != signed || (got.Note == "") != signed {
		d.t.Fatalf("untouched: %+v", got)
	}
	kinds := map[repute.DecisionKind]int{}
	for _, v := range got.Decisions {
		kinds[v.Kind]++
	}
	if kinds[repute.DecisionTrust] < 2 || kinds[repute.DecisionValue] < 2 {
		d.t.Fatalf("decisions that were made again: %v", kinds)
	}
}

// What was decided about a run cannot be edited without being noticed; without a key somebody
// who rewrites all of it can, and the answer says so.
func TestEditedDecisionsAreFound(t *testing.T) {
	t.Parallel()
	for name, signer := range map[string]*statement.Signer{"signed": statement.NewSigner(statementKey(t, 1), time.Hour,
		time.Time{}, nil), "unsigned": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDecided(t, signer)
			d.untouched(d.a.Run)
			d.untouched(d.subA)
			d.keep()
			for name, e := range edits() {
				if e.key && signer == nil {
					continue
				}
				d.exec(e.sql)
				if e.does != nil {
					e.does(d)
				}
				got := d.check(d.a.Run)
				if text := fmt.Sprintf("%+v", got.Faults); got.Verified || !strings.Contains(text, e.says) {
					t.Errorf("%s: verified %v, want a fault with %q: %s", name, got.Verified, e.says, text)
				}
				d.restore()
			}
			d.untouched(d.a.Run)
			if signer == nil {
				d.rewrite()
				if got := d.check(d.a.Run); !got.Verified || !strings.Contains(got.Note, "can rewrite all of it") {
					t.Errorf("a whole chain that was rewritten without a key: %+v", got)
				}
			}
		})
	}
}

// chainAnswer is what somebody outside reads of GET /v1/runs/{id}/decisions.
type chainAnswer struct {
	TaskID    string `json:"taskId"`
	Root      string `json:"rootRunId"`
	Decisions int64  `json:"decisions"`
	Head      string `json:"head"`
	Signer    string `json:"signer"`
	Signature string `json:"signature"`
	Chain     []struct {
		Number         int64
		Previous, Hash string
		Record         string
	}
	Policies []struct{ SHA256, Text string }
	Next     string `json:"nextCursor"`
}

// verifyOutside checks a chain by what docs/reference/orchestrator.md says alone: nothing of this
// module but the answer is used.
func verifyOutside(a chainAnswer, signer string) error {
	last, policies := "0x"+strings.Repeat("0", 64), map[string]bool{}
	for _, p := range a.Policies {
		policies[p.SHA256] = fmt.Sprintf("0x%x", sha256.Sum256([]byte(p.Text))) == p.SHA256
	}
	for i, d := range a.Chain {
		var r struct {
			TaskID, RootRunID, Previous, Policy string
			Number                              int64
		}
		if err := json.Unmarshal([]byte(d.Record), &r); err != nil {
			return err
		}
		switch sum := fmt.Sprintf("0x%x", sha256.Sum256([]byte(d.Record))); {
		case sum != d.Hash, r.Previous != last, r.Number != int64(i+1), r.TaskID != a.TaskID, r.RootRunID != a.Root:
			return fmt.Errorf("decision %d does not follow", i+1)
		case !policies[r.Policy]:
			return fmt.Errorf("decision %d: no policy %s", i+1, r.Policy)
		}
		last = d.Hash
	}
	if last != a.Head || int64(len(a.Chain)) != a.Decisions {
		return fmt.Errorf("the head is of another chain")
	}
	typed := apitypes.TypedData{Types: apitypes.Types{"EIP712Domain": {{Name: "name", Type: "string"},
		{Name: "version", Type: "string"}},
		"DecisionsHead": {{Name: "taskId", Type: "string"}, {Name: "runId", Type: "string"},
			{Name: "decisions", Type: "uint256"}, {Name: "head", Type: "bytes32"}}},
		PrimaryType: "DecisionsHead", Domain: apitypes.TypedDataDomain{Name: "repute decisions", Version: "1"},
		Message: apitypes.TypedDataMessage{"taskId": a.TaskID, "runId": a.Root, "decisions": fmt.Sprint(a.Decisions),
			"head": a.Head}}
	hash, _, err := apitypes.TypedDataAndHash(typed)
	if err != nil {
		return err
	}
	signature, err := hexutil.Decode(a.Signature)
	if err != nil || len(signature) != 65 {
		return fmt.Errorf("no signature: %w", err)
	}
	signature[64] -= 27
	key, err := crypto.SigToPub(hash, signature)
	if err != nil {
		return err
	}
	if by := crypto.PubkeyToAddress(*key).Hex(); !strings.EqualFold(by, signer) ||
		!strings.EqualFold(a.Signer, signer) {
		return fmt.Errorf("signed by %s", by)
	}
	return nil
}

// Somebody outside can check a chain of decisions by the answer of the route alone.
func TestDecisionsAreVerifiedOutside(t *testing.T) {
	t.Parallel()
	signer := statement.NewSigner(statementKey(t, 1), time.Hour, time.Time{}, nil)
	d := newDecided(t, signer)
	read := func() (all chainAnswer) {
		for cursor := ""; ; {
			w := httptest.NewRecorder()
			d.routes.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
				"/v1/runs/"+d.subA+"/decisions?limit=3"+cursor, nil))
			var page chainAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			page.Chain, page.Policies = append(all.Chain, page.Chain...), append(all.Policies, page.Policies...)
			if all = page; page.Next == "" {
				return all
			}
			cursor = "&cursor=" + page.Next
		}
	}
	good := read()
	ok(t, verifyOutside(good, signer.Address().Hex()))
	if good.Root != d.a.Run || len(good.Chain) < 8 {
		t.Errorf("chain of %s with %d decisions", good.Root, len(good.Chain))
	}
	for i := range good.Chain { // each record is part of what is signed
		edited := read()
		edited.Chain[i].Record = strings.Replace(edited.Chain[i].Record, `"attempt":1`, `"attempt":2`, 1)
		if err := verifyOutside(edited, signer.Address().Hex()); err == nil {
			t.Errorf("decision %d may be edited", i+1)
		}
	}
	d.rewrite()
	if err := verifyOutside(read(), signer.Address().Hex()); err == nil || !strings.Contains(err.Error(), "signed by") {
		t.Errorf("rewritten: %v", err)
	}
}

// The decisions of a task stay whole where persons answer, attempts fail and are made again.
func TestDecisionsOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	agent, fails := newWorker("plain"), true
	agent.do = func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		if fails {
			return nil, fmt.Errorf("not today")
		}
		return json.RawMessage(`{}`), nil
	}
	rule := &changing{t: t}
	rule.set(unrated("allow"))
	h.start(orchestrator.Options{Lenient: true, Policy: rule.now.Load, Modules: []orchestrator.Module{agent}})
	least := 1.0
	task := h.submit(standard.Request{Coordinator: "plain",
		Terms: standard.Terms{Threshold: policy.Threshold{MinReputation: &least}}})
	if task, _ = h.ended(task); task.Status != repute.TaskFailed {
		t.Fatalf("task %s", task.Status)
	}
	fails = false
	rule.set(unrated("require_approval")) // execute asks a person
	ok(t, h.client.Retry(t.Context(), task.ID, 0, "ann"))
	h.awaits(task.Run)
	h.checked(task.Run)
	h.approve(task.Run, true, "fine")
	if task, run := h.ended(task); task.Status != repute.TaskCompleted || run.Attempt != 2 {
		t.Fatalf("task %s, attempt %d: %s", task.Status, run.Attempt, run.Error)
	}
	h.checked(task.Run)
}

// checked fails where something about the decisions of a run's task does not agree.
func (h *house) checked(run string) {
	h.t.Helper()
	decided, err := rundb.ReadDecidedTask(h.t.Context(), h.db, run)
	ok(h.t, err)
	for _, f := range audit.CheckDecisions(&decided) {
		h.t.Errorf("%+v", f)
	}
}
