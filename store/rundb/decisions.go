package rundb

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Decision is what a policy, a rule of the runtime or a person decided about a run.
type Decision struct {
	Phase   repute.Phase
	Kind    repute.DecisionKind
	Subject string // trust, policy, or the key of a call
	Effect  string
	Reasons json.RawMessage
	Policy  [32]byte // sha256 of the policy's bytes
	Input   json.RawMessage
}

// addDecisions appends decisions about a run to the chain of its root run, whose row the
// transaction MUST have locked: the chain cannot fork. What the decisions pin stays stored.
func addDecisions(ctx context.Context, db *store.DB, tx pgx.Tx, root, run string, list []Decision) error {
	if len(list) == 0 {
		return nil
	}
	head := repute.SealedHead{DecisionsHead: repute.DecisionsHead{Root: root}}
	var attempt int
	var last []byte
	var at time.Time
	if err := tx.QueryRow(ctx, `
		select o.task_id, o.decisions, o.decisions_head, r.attempt, clock_timestamp() from runs o join runs r on r.root_id = o.id
		where o.id = $1 and r.id = $2`, root, run).Scan(&head.Task, &head.Count, &last, &attempt, &at); err != nil {
		return err
	}
	head.Hash = common.BytesToHash(last)
	b := &pgx.Batch{}
	for _, d := range list {
		linked := repute.RunDecision{Task: head.Task, Root: root, Run: run, Number: head.Count + 1, Attempt: attempt, Phase: d.Phase, Kind: d.Kind, Subject: store.CleanText(d.Subject),
			Effect: d.Effect, Reasons: store.OrNull(d.Reasons), Policy: d.Policy, Input: store.OrNull(d.Input), At: at, Previous: head.Hash}
		var err error
		if linked.Hash, err = linked.Sum(); err != nil {
			return err
		}
		queueDecision(b, &linked)
		head.Count, head.Hash = linked.Number, linked.Hash
	}
	if seal := db.Options().Seal; seal != nil {
		var err error
		if head, err = seal(head.DecisionsHead); err != nil {
			return err
		}
	}
	b.Queue(`update runs set decisions = $2, decisions_head = $3, decisions_signer = $4, decisions_signature = $5 where id = $1`,
		root, head.Count, head.Hash.Bytes(), signerOf(&head), head.Signature)
	return tx.SendBatch(ctx, b).Close()
}

// signerOf is null where nobody signed.
func signerOf(h *repute.SealedHead) []byte {
	if len(h.Signature) == 0 {
		return nil
	}
	return h.Signer.Bytes()
}

func queueDecision(b *pgx.Batch, d *repute.RunDecision) {
	b.Queue(`
		insert into run_decisions (root_id, run_id, number, attempt, phase, kind, subject, effect, reasons, policy, input, at, previous, hash, pins)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, array(
			select i.hash from regexp_matches($15, '"(?:evidence|policy)":"(?:0x)?([0-9a-f]{64})"', 'g') m
			join trust_inputs i on i.hash = decode(m[1], 'hex')))`, d.Root, d.Run, d.Number, d.Attempt, int(d.Phase), string(d.Kind), d.Subject, d.Effect,
		d.Reasons, d.Policy.Bytes(), d.Input, d.At, d.Previous.Bytes(), d.Hash.Bytes(), string(d.Input))
}

// AddDecision stores what a policy decided where nothing else is stored with it. An
// equal one of the same attempt, subject and reasons is kept once.
func AddDecision(ctx context.Context, db *store.DB, l Lease, run string, d Decision) error {
	return db.InTx(ctx, pgx.TxOptions{}, "add decision", func(tx pgx.Tx) error {
		if err := lockRoot(ctx, tx, l); err != nil {
			return err
		}
		return addDecision(ctx, db, tx, l.Root, run, d)
	})
}

func addDecision(ctx context.Context, db *store.DB, tx pgx.Tx, root, run string, d Decision) error {
	var known bool
	err := tx.QueryRow(ctx, `
		select exists (select from run_decisions d join runs r on r.id = d.run_id and r.attempt = d.attempt
			where d.run_id = $1 and d.subject = $2 and d.effect = $3 and d.policy = $4 and d.reasons::text = $5::json::text)`,
		run, store.CleanText(d.Subject), d.Effect, d.Policy[:], store.OrNull(d.Reasons)).Scan(&known)
	if err != nil || known {
		return err
	}
	return addDecisions(ctx, db, tx, root, run, []Decision{d})
}

const selectDecisions = `
	select d.run_id, d.root_id, d.number, d.attempt, d.phase, d.kind, d.subject, d.effect, d.reasons, d.policy, d.input, d.at, d.previous, d.hash, r.task_id
	from run_decisions d join runs r on r.id = d.run_id `

func scanDecision(row pgx.CollectableRow) (d repute.RunDecision, err error) {
	var policy, previous, hash []byte
	err = row.Scan(&d.Run, &d.Root, &d.Number, &d.Attempt, &d.Phase, &d.Kind, &d.Subject, &d.Effect, &d.Reasons, &policy, &d.Input, &d.At, &previous, &hash, &d.Task)
	d.At, d.Policy, d.Previous, d.Hash = d.At.UTC(), common.BytesToHash(policy), common.BytesToHash(previous), common.BytesToHash(hash)
	return d, err
}

// Decisions returns the newest decisions about a run, up to most, in order.
func Decisions(ctx context.Context, db *store.DB, run string, most int) ([]repute.RunDecision, error) {
	rows, err := db.Readers().Query(ctx, selectDecisions+`where d.run_id = $1 order by d.number desc, d.id desc limit $2`, store.CleanText(run), most)
	if err != nil {
		return nil, store.Failed("read decisions", err)
	}
	list, err := pgx.CollectRows(rows, scanDecision)
	slices.Reverse(list)
	return list, store.Failed("read decisions", err)
}

// DecidedTask is all that was decided about the runs of a task, with what it must agree
// with, out of one snapshot.
type DecidedTask struct {
	Head      repute.SealedHead
	Terms     json.RawMessage      // of the task
	Decisions []repute.RunDecision // the whole chain, in order
	Runs      map[string]DecidedRun
	Phases    map[string][]repute.RunPhase
	Approvals map[string][]GivenApproval // by run
	Policies  map[common.Hash][]byte     // bodies, as stored under the hashes that decisions name
}

// DecidedRun is what a run came to.
type DecidedRun struct {
	Attempt int
	Status  repute.RunStatus
	Cancel  string // who cancelled the task and why; empty: nobody did
	Dropped bool   // of a plan that a later attempt replaced
}

// GivenApproval is an answer with the attempt that it was given in.
type GivenApproval struct {
	Approval
	Attempt int
}

// ReadDecidedTask reads what was decided about a run's task. repute.ErrNotFound when there is
// no such run.
func ReadDecidedTask(ctx context.Context, db *store.DB, run string) (out DecidedTask, err error) {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, o, "read decisions", func(tx pgx.Tx) error {
		if out.Head, err = readHead(ctx, tx, run); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select terms from tasks where id = $1`, out.Head.Task).Scan(&out.Terms); err != nil {
			return err
		}
		// Also decisions whose run or root was changed belong to the task.
		if out.Decisions, err = queryDecisions(ctx, tx, `where d.root_id = $1 or r.task_id = $2 order by d.number, d.id`, out.Head.Root, out.Head.Task); err != nil {
			return err
		}
		if out.Runs, err = readRuns(ctx, tx, out.Head.Task); err != nil {
			return err
		}
		if out.Phases, out.Approvals, err = readDecided(ctx, tx, out.Head.Task); err != nil {
			return err
		}
		out.Policies, err = readPolicies(ctx, tx, out.Decisions)
		return err
	})
	return out, err
}

// DecisionPage is a part of a task's chain of decisions, out of one snapshot.
type DecisionPage struct {
	Head     repute.SealedHead
	Before   *repute.RunDecision // the last one at or before the cursor; nil: the page begins the chain
	List     []repute.RunDecision
	Policies map[common.Hash][]byte // bodies, as stored under the hashes that List names
}

// ReadDecisionPage reads up to most decisions about a run's task with numbers above after.
// repute.ErrNotFound when there is no such run.
func ReadDecisionPage(ctx context.Context, db *store.DB, run string, after int64, most int) (out DecisionPage, err error) {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, o, "read decisions", func(tx pgx.Tx) error {
		if out.Head, err = readHead(ctx, tx, run); err != nil {
			return err
		}
		before, err := queryDecisions(ctx, tx, `where d.root_id = $1 and d.number <= $2 order by d.number desc limit 1`, out.Head.Root, after)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			out.Before = &before[0]
		}
		if out.List, err = queryDecisions(ctx, tx, `where d.root_id = $1 and d.number > $2 order by d.number limit $3`, out.Head.Root, after, most); err != nil {
			return err
		}
		out.Policies, err = readPolicies(ctx, tx, out.List)
		return err
	})
	return out, err
}

func queryDecisions(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]repute.RunDecision, error) {
	rows, err := tx.Query(ctx, selectDecisions+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanDecision)
}

// DecisionsHead is the end of the chain of decisions about a run's task. repute.ErrNotFound
// when there is no such run.
func DecisionsHead(ctx context.Context, db *store.DB, run string) (h repute.SealedHead, err error) {
	err = db.InTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, "read the head of decisions", func(tx pgx.Tx) error {
		h, err = readHead(ctx, tx, run)
		return err
	})
	return h, err
}

// readHead is the head of the chain that a run belongs to.
func readHead(ctx context.Context, tx pgx.Tx, run string) (h repute.SealedHead, err error) {
	var last, signer []byte
	err = tx.QueryRow(ctx, `
		select o.task_id, o.id, o.decisions, o.decisions_head, o.decisions_signer, o.decisions_signature from runs r join runs o on o.id = r.root_id where r.id = $1`,
		store.CleanText(run)).Scan(&h.Task, &h.Root, &h.Count, &last, &signer, &h.Signature)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, repute.Unknown("run %q", run)
	}
	h.Hash, h.Signer = common.BytesToHash(last), common.BytesToAddress(signer)
	return h, err
}

// readRuns are the runs of a task by their ids.
func readRuns(ctx context.Context, tx pgx.Tx, task string) (map[string]DecidedRun, error) {
	rows, err := tx.Query(ctx, `
		with recursive dropped as (
			select id from runs where task_id = $1 and parent_step like 'attempt %: %'
			union select r.id from runs r join dropped d on r.parent_id = d.id)
		select id, attempt, status, cancel, id in (select id from dropped) from runs where task_id = $1`, task)
	if err != nil {
		return nil, err
	}
	out := map[string]DecidedRun{}
	var id string
	var r DecidedRun
	_, err = pgx.ForEachRow(rows, []any{&id, &r.Attempt, &r.Status, &r.Cancel, &r.Dropped}, func() error {
		out[id] = r
		return nil
	})
	return out, err
}

// readDecided are the phases and approvals of a task's runs.
func readDecided(ctx context.Context, tx pgx.Tx, task string) (map[string][]repute.RunPhase, map[string][]GivenApproval, error) {
	phases, approvals := map[string][]repute.RunPhase{}, map[string][]GivenApproval{}
	rows, err := tx.Query(ctx, `
		select run_id, phase, attempt, status, result, error from run_phases where run_id in (select id from runs where task_id = $1) order by run_id, attempt, phase`, task)
	if err != nil {
		return nil, nil, err
	}
	var run string
	var p repute.RunPhase
	if _, err := pgx.ForEachRow(rows, []any{&run, &p.Phase, &p.Attempt, &p.Status, &p.Result, &p.Error}, func() error {
		phases[run] = append(phases[run], p)
		p.Result = nil
		return nil
	}); err != nil {
		return nil, nil, err
	}
	rows, err = tx.Query(ctx, `
		select run_id, attempt, subject, approved, by, reason, at from run_approvals where run_id in (select id from runs where task_id = $1)`, task)
	if err != nil {
		return nil, nil, err
	}
	var a GivenApproval
	_, err = pgx.ForEachRow(rows, []any{&run, &a.Attempt, &a.Subject, &a.Approved, &a.By, &a.Reason, &a.At}, func() error {
		approvals[run] = append(approvals[run], a)
		return nil
	})
	return phases, approvals, err
}

// readPolicies are the stored bodies of the policies that decisions name.
func readPolicies(ctx context.Context, tx pgx.Tx, list []repute.RunDecision) (map[common.Hash][]byte, error) {
	hashes := make([][]byte, 0, len(list))
	for _, d := range list {
		hashes = append(hashes, d.Policy.Bytes())
	}
	rows, err := tx.Query(ctx, `select hash, body from trust_inputs where hash = any($1)`, hashes)
	if err != nil {
		return nil, err
	}
	out := map[common.Hash][]byte{}
	var hash, body []byte
	_, err = pgx.ForEachRow(rows, []any{&hash, &body}, func() error {
		out[common.BytesToHash(hash)] = body
		hash, body = nil, nil
		return nil
	})
	return out, err
}
