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
	"repute/store/column"
)

// Decision is what a policy, a rule of the runtime or a person decided about a run.
type Decision struct {
	// Phase is the phase that the run was in.
	Phase repute.Phase
	// Kind says what decided: a gate, a policy, a rule of the runtime, or a person.
	Kind repute.DecisionKind
	// Subject is "trust", "policy", or the key of a call.
	Subject string
	// Effect is allow, require_approval or deny.
	Effect string
	// Reasons is a JSON list of texts.
	Reasons json.RawMessage
	// Policy is the sha256 of the policy's bytes.
	Policy [32]byte
	// Input is everything that the decision follows from, so that it can be checked again.
	Input json.RawMessage
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
		select o.task_id, o.decisions, o.decisions_head, r.attempt, clock_timestamp() from runs o join runs r on r.root_id
			= o.id
		where o.id = $1 and r.id = $2`, root, run).Scan(&head.Task, &head.Count, &last, &attempt, &at); err != nil {
		return err
	}
	head.Hash = common.BytesToHash(last)
	b := &pgx.Batch{}
	for _, d := range list {
		linked := repute.RunDecision{Task: head.Task, Root: root, Run: run, Number: head.Count + 1, Attempt: attempt,
			Phase: d.Phase, Kind: d.Kind, Subject: column.CleanText(d.Subject),
			Effect: d.Effect, Reasons: column.OrNull(d.Reasons), Policy: d.Policy, Input: column.OrNull(d.Input),
			At:       at,
			Previous: head.Hash}
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
	var signer []byte // null when the head is not signed
	if len(head.Signature) > 0 {
		signer = head.Signer.Bytes()
	}
	b.Queue(`update runs set decisions = $2, decisions_head = $3, decisions_signer = $4, decisions_signature = $5 where id = $1`,
		root, head.Count, head.Hash.Bytes(), signer, head.Signature)
	return tx.SendBatch(ctx, b).Close()
}

// queueDecision stores a decision with the hashes of the policies and manifests of evidence that
// its input names.
func queueDecision(b *pgx.Batch, d *repute.RunDecision) {
	b.Queue(`
		insert into run_decisions (root_id, run_id, number, attempt, phase, kind, subject, effect, reasons, policy, input,
			at, previous, hash, pins)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, array(
			select i.hash from regexp_matches($15, '"(?:evidence|policy)":"(?:0x)?([0-9a-f]{64})"', 'g') m
			join trust_inputs i on i.hash = decode(m[1], 'hex')))`, d.Root, d.Run, d.Number, d.Attempt, int(d.Phase), string(d.Kind), d.Subject, d.Effect,
		d.Reasons, d.Policy.Bytes(), d.Input, d.At, d.Previous.Bytes(), d.Hash.Bytes(), string(d.Input))
}

// AddDecision stores a decision of a policy with which nothing else is stored. Decisions that
// differ in nothing but their input are stored once per attempt.
func AddDecision(ctx context.Context, db *store.DB, l Lease, run string, d Decision) error {
	return l.inTx(ctx, db, "add decision", func(tx pgx.Tx) error {
		return addDecision(ctx, db, tx, l.Root, run, d)
	})
}

// addDecision adds a decision unless an equal one of the attempt is stored.
func addDecision(ctx context.Context, db *store.DB, tx pgx.Tx, root, run string, d Decision) error {
	var known bool
	err := tx.QueryRow(ctx, `
		select exists (select from run_decisions d join runs r on r.id = d.run_id and r.attempt = d.attempt
			where d.run_id = $1 and d.subject = $2 and d.effect = $3 and d.policy = $4 and d.reasons::text = $5::json::text)`,
		run, column.CleanText(d.Subject), d.Effect, d.Policy[:], column.OrNull(d.Reasons)).Scan(&known)
	if err != nil || known {
		return err
	}
	return addDecisions(ctx, db, tx, root, run, []Decision{d})
}

// selectDecisions begins the statements that scanDecision reads.
const selectDecisions = `
	select d.run_id, d.root_id, d.number, d.attempt, d.phase, d.kind, d.subject, d.effect, d.reasons, d.policy,
		d.input, d.at, d.previous, d.hash, r.task_id
	from run_decisions d join runs r on r.id = d.run_id `

// scanDecision reads a row of selectDecisions.
func scanDecision(row pgx.CollectableRow) (d repute.RunDecision, err error) {
	var policy, previous, hash []byte
	err = row.Scan(&d.Run, &d.Root, &d.Number, &d.Attempt, &d.Phase, &d.Kind, &d.Subject, &d.Effect, &d.Reasons,
		&policy,
		&d.Input, &d.At, &previous, &hash, &d.Task)
	d.At, d.Policy, d.Previous, d.Hash = d.At.UTC(), common.BytesToHash(policy), common.BytesToHash(previous),
		common.BytesToHash(hash)
	return d, err
}

// Decisions returns the newest decisions about a run, up to most, in order.
func Decisions(ctx context.Context, db *store.DB, run string, most int) ([]repute.RunDecision, error) {
	rows, _ := db.Readers().Query(ctx,
		selectDecisions+`where d.run_id = $1 order by d.number desc, d.id desc limit $2`, column.CleanText(run), most)
	list, err := pgx.CollectRows(rows, scanDecision)
	slices.Reverse(list)
	return list, store.Failed("read decisions", err)
}

// DecidedTask is everything that was decided about the runs of a task, with the rows that it must
// agree with, on one snapshot.
type DecidedTask struct {
	// Head is the signed head of the chain of decisions.
	Head repute.SealedHead
	// Terms are the budgets and conditions of the task.
	Terms json.RawMessage
	// Decisions is the whole chain in order.
	Decisions []repute.RunDecision
	// Runs are the runs of the task by id.
	Runs map[string]DecidedRun
	// Phases are the recorded phases by run.
	Phases map[string][]repute.RunPhase
	// Approvals are the answers of people by run.
	Approvals map[string][]GivenApproval
	// Policies are the stored policies by the hashes that decisions name.
	Policies map[common.Hash][]byte
}

// DecidedRun is the outcome of a run.
type DecidedRun struct {
	// Attempt is the newest attempt, from 1.
	Attempt int
	Status  repute.RunStatus
	// Cancel says who canceled the task and why; empty when nobody did.
	Cancel string
	// Dropped says that the run belongs to a plan that a later attempt replaced.
	Dropped bool
}

// GivenApproval is an answer with the attempt in which it was given.
type GivenApproval struct {
	Approval
	Attempt int
}

// ReadDecidedTask reads the decisions about a run's task. repute.ErrNotFound when there is no such
// run.
func ReadDecidedTask(ctx context.Context, db *store.DB, run string) (out DecidedTask, err error) {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, o, "read decisions", func(tx pgx.Tx) error {
		if out.Head, err = readHead(ctx, tx, run); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select terms from tasks where id = $1`,
			out.Head.Task).Scan(&out.Terms); err != nil {
			return err
		}
		// Also decisions whose run or root was changed belong to the task.
		if out.Decisions, err = queryDecisions(ctx, tx,
			`where d.root_id = $1 or r.task_id = $2 order by d.number, d.id`,
			out.Head.Root, out.Head.Task); err != nil {
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

// DecisionPage is a part of a task's chain of decisions, on one snapshot.
type DecisionPage struct {
	// Head is the signed head of the whole chain.
	Head repute.SealedHead
	// Before is the last decision before the page; nil when the page begins the chain.
	Before *repute.RunDecision
	// List is the page in order.
	List []repute.RunDecision
	// Policies are the stored policies by the hashes that List names.
	Policies map[common.Hash][]byte
}

// ReadDecisionPage reads up to most decisions about a run's task with numbers above after.
// repute.ErrNotFound when there is no such run.
func ReadDecisionPage(ctx context.Context, db *store.DB, run string, after int64, most int) (out DecisionPage,
	err error) {
	o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = db.InTx(ctx, o, "read decisions", func(tx pgx.Tx) error {
		if out.Head, err = readHead(ctx, tx, run); err != nil {
			return err
		}
		before, err := queryDecisions(ctx, tx, `where d.root_id = $1 and d.number <= $2 order by d.number desc limit 1`,
			out.Head.Root, after)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			out.Before = &before[0]
		}
		if out.List, err = queryDecisions(ctx, tx, `where d.root_id = $1 and d.number > $2 order by d.number limit $3`,
			out.Head.Root, after, most); err != nil {
			return err
		}
		out.Policies, err = readPolicies(ctx, tx, out.List)
		return err
	})
	return out, err
}

// queryDecisions returns the decisions that meet a condition.
func queryDecisions(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]repute.RunDecision, error) {
	rows, _ := tx.Query(ctx, selectDecisions+where, args...)
	return pgx.CollectRows(rows, scanDecision)
}

// DecisionsHead returns the head of the chain of decisions about a run's task. repute.ErrNotFound
// when there is no such run.
func DecisionsHead(ctx context.Context, db *store.DB, run string) (h repute.SealedHead, err error) {
	err = db.InTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, "read the head of decisions", func(tx pgx.Tx) error {
		h, err = readHead(ctx, tx, run)
		return err
	})
	return h, err
}

// readHead returns the head of the chain that a run belongs to.
func readHead(ctx context.Context, tx pgx.Tx, run string) (h repute.SealedHead, err error) {
	var last, signer []byte
	err = tx.QueryRow(ctx, `
		select o.task_id, o.id, o.decisions, o.decisions_head, o.decisions_signer, o.decisions_signature from runs r join
			runs o on o.id = r.root_id where r.id = $1`,
		column.CleanText(run)).Scan(&h.Task, &h.Root, &h.Count, &last, &signer, &h.Signature)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, repute.Unknown("run %q", run)
	}
	h.Hash, h.Signer = common.BytesToHash(last), common.BytesToAddress(signer)
	return h, err
}

// readRuns returns the runs of a task by id.
func readRuns(ctx context.Context, tx pgx.Tx, task string) (map[string]DecidedRun, error) {
	rows, _ := tx.Query(ctx, `
		with recursive dropped as (
			select id from runs where task_id = $1 and parent_step like 'attempt %: %'
			union select r.id from runs r join dropped d on r.parent_id = d.id)
		select id, attempt, status, cancel, id in (select id from dropped) from runs where task_id = $1`, task)
	out := map[string]DecidedRun{}
	var id string
	var r DecidedRun
	_, err := pgx.ForEachRow(rows, []any{&id, &r.Attempt, &r.Status, &r.Cancel, &r.Dropped}, func() error {
		out[id] = r
		return nil
	})
	return out, err
}

// readDecided returns the phases and approvals of a task's runs by run.
func readDecided(ctx context.Context, tx pgx.Tx, task string) (map[string][]repute.RunPhase,
	map[string][]GivenApproval, error) {
	phases, approvals := map[string][]repute.RunPhase{}, map[string][]GivenApproval{}
	rows, _ := tx.Query(ctx, `
		select run_id, phase, attempt, status, result, error from run_phases where run_id in (select id from runs where
			task_id = $1) order by run_id, attempt, phase`, task)
	var run string
	var p repute.RunPhase
	if _, err := pgx.ForEachRow(rows, []any{&run, &p.Phase, &p.Attempt, &p.Status, &p.Result, &p.Error}, func() error {
		phases[run] = append(phases[run], p)
		p.Result = nil
		return nil
	}); err != nil {
		return nil, nil, err
	}
	rows, _ = tx.Query(ctx, `
		select run_id, attempt, subject, approved, by, reason, at from run_approvals where run_id in (select id from runs
			where task_id = $1)`, task)
	var a GivenApproval
	_, err := pgx.ForEachRow(rows, []any{&run, &a.Attempt, &a.Subject, &a.Approved, &a.By, &a.Reason, &a.At},
		func() error {
			approvals[run] = append(approvals[run], a)
			return nil
		})
	return phases, approvals, err
}

// readPolicies returns the stored policies that decisions name, by hash.
func readPolicies(ctx context.Context, tx pgx.Tx, list []repute.RunDecision) (map[common.Hash][]byte, error) {
	hashes := make([][]byte, 0, len(list))
	for _, d := range list {
		hashes = append(hashes, d.Policy.Bytes())
	}
	rows, _ := tx.Query(ctx, `select hash, body from trust_inputs where hash = any($1)`, hashes)
	out := map[common.Hash][]byte{}
	var hash, body []byte
	_, err := pgx.ForEachRow(rows, []any{&hash, &body}, func() error {
		out[common.BytesToHash(hash)] = body
		hash, body = nil, nil
		return nil
	})
	return out, err
}
