package orchestrator_test

import (
	"fmt"
	"maps"
)

// edit is one way to change what was decided.
type edit struct {
	sql  string
	does func(*decided) // after sql
	says string         // part of one of the faults
	key  bool           // only a signature shows it
}

// edits are all of them by name.
func edits() map[string]edit {
	all := editsOfGateDecisions()
	maps.Copy(all, editsOfTheChain())
	maps.Copy(all, editsOfRecords())
	return all
}

// without is SQL for a column's text without the threshold that a task asked for.
func without(column string) string {
	return fmt.Sprintf(`replace(%s::text, '"threshold":{"minReputation":10}', '"threshold":{}')::json`, column)
}

// editsOfGateDecisions change what decisions follow from.
func editsOfGateDecisions() map[string]edit {
	const noProof = `regexp_replace(%s::text, '"proof":[{][^}]*[}],', '')::json`
	return map[string]edit{
		"decision of another run, in the phase": {sql: `update run_phases set result = (select result from run_phases
			where run_id = $rootB and phase = 3) where run_id = $rootA and phase = 3`,
			says: "phase trust, attempt 1, says something else"},
		"decision of another run, in the chain": {sql: `update run_decisions set input = (select input from run_decisions
			where root_id = $rootB and number = 1) where root_id = $rootA and number = 1`, says: "not that of its content"},
		"decision of another run, in both": {sql: `update run_phases set result = (select result from run_phases where run_id = $rootB and phase = 3)
			where run_id = $rootA and phase = 3;
			update run_decisions d set input = b.input from run_decisions b
			where d.root_id = $rootA and b.root_id = $rootB and d.kind = 'trust' and b.number = d.number`, says: "not that of its content"},
		"threshold erased, in the phase": {sql: `update run_phases set result = ` + without("result") +
			` where run_id = $rootA and phase = 3`, says: "says something else"},
		"threshold erased, in the chain": {sql: `update run_decisions set input = ` + without("input") + `
			where root_id = $rootA and kind = 'trust'`, says: "not that of its content"},
		"threshold erased, in the task": {sql: `update tasks set terms = ` + without("terms") + ` where id = $taskA`,
			says: "another threshold"},
		"policy replaced under its hash": {sql: `update trust_inputs set body = 'version: "1"' where hash = (select policy from run_decisions
			where root_id = $rootA and number = 1)`, says: "has another sha256"},
		"policy removed": {sql: `delete from trust_inputs where hash = (select policy from run_decisions
			where root_id = $rootA and number = 1)`, says: "is not stored"},
		"proof dropped, in the phase": {sql: `update run_phases set result = ` + fmt.Sprintf(noProof, "result") + `
			where run_id = $rootA and phase = 3`, says: "says something else"},
		"proof dropped, in the chain": {sql: `update run_decisions set input = ` + fmt.Sprintf(noProof, "input") + `
			where root_id = $rootA and kind = 'trust'`, says: "not that of its content"},
	}
}

// editsOfTheChain change decisions as they are linked.
func editsOfTheChain() map[string]edit {
	return map[string]edit{
		"decision removed in the middle": {sql: `delete from run_decisions where root_id = $rootA and number = 3`,
			says: "a decision was removed"},
		"removed and the rest moved up": {sql: `delete from run_decisions where root_id = $rootA and number = 3;
			update run_decisions set number = -number where root_id = $rootA and number > 3;
			update run_decisions set number = -number - 1 where root_id = $rootA and number < 0;
			update runs set decisions = decisions - 1 where id = $rootA`, says: "not that of its content"},
		"last decision removed": {sql: `delete from run_decisions d using runs r
			where r.id = $rootA and d.root_id = r.id and d.number = r.decisions`, says: "decisions, and"},
		"last decision removed, with head": {sql: `delete from run_decisions d using runs r
			where r.id = $rootA and d.root_id = r.id and d.number = r.decisions;
			update runs r set decisions = d.number, decisions_head = d.hash from run_decisions d
			where r.id = $rootA and d.root_id = r.id and d.number = r.decisions - 1`, says: "signature of the head", key: true},
		"decisions swapped": {sql: `update run_decisions set number = -number where root_id = $rootA and number in (2, 3);
			update run_decisions set number = 5 + number where root_id = $rootA and number < 0`, says: "not that of its content"},
		"decision of another run": {sql: `update run_decisions d set input = b.input, subject = b.subject, effect = b.effect, at = b.at, previous = b.previous, hash = b.hash from run_decisions b where d.root_id = $rootA and b.root_id = $rootB and d.number = 2 and b.number = 2`, says: "not that of its content"},
		"decision of another run, added": {sql: `insert into run_decisions (root_id, run_id, number, attempt, phase, kind, subject, effect, reasons, policy, input, at, previous, hash)
			select $rootA, $rootA, r.decisions + 1, b.attempt, b.phase, b.kind, b.subject, b.effect, b.reasons, b.policy,
				b.input, b.at, r.decisions_head, b.hash from run_decisions b, runs r where b.root_id = $rootB and b.number = 1
				and r.id = $rootA;
			update runs set decisions = decisions + 1, decisions_head = (select hash from run_decisions where root_id =
				$rootB and number = 1)
			where id = $rootA`, says: "not that of its content"},
		"evidence changed": {sql: `update run_decisions set input = replace(input::text, '"block":0', '"block":7')::json
			where root_id = $rootA and kind = 'trust'`, says: "not that of its content"},
		"manifest changed": {sql: `update run_decisions set input = regexp_replace(input::text, '"manifestSha256":"..', '"manifestSha256":"zz')::json where root_id = $rootA and kind = 'trust'`, says: "not that of its content"},
		"phase changed": {sql: `update run_decisions set phase = 6 where root_id = $rootA and number = 1`,
			says: "not that of its content"},
		"kind changed": {sql: `update run_decisions set kind = 'refused'
			where root_id = $rootA and kind = 'trust'`, says: "not that of its content"},
		"effect changed": {sql: `update run_decisions set effect = 'allow'
			where root_id = $rootA and effect = 'require_approval'`, says: "not that of its content"},
		"reasons changed": {sql: `update run_decisions set reasons = '[]' where root_id = $rootA`,
			says: "not that of its content"},
		"subject changed": {sql: `update run_decisions set subject = subject || '!'
			where root_id = $rootA and number = 4`, says: "not that of its content"},
		"time changed": {sql: `update run_decisions set at = at - interval '1 microsecond'
			where root_id = $rootA and number = 4`, says: "not that of its content"},
		"attempt changed": {sql: `update run_decisions set attempt = 2 where root_id = $rootA`,
			says: "not that of its content"},
		"policy's hash changed": {sql: `update run_decisions set policy = sha256('') where root_id = $rootA`,
			says: "not that of its content"},
		"run changed": {sql: `update run_decisions set run_id = $subA where root_id = $rootA and run_id = $rootA`,
			says: "not that of its content"},
		"moved to another chain": {sql: `update run_decisions set root_id = $rootB, number = number + 1000
			where root_id = $rootA and number = 2`, says: "it is of run"},
		"task changed": {sql: `update runs set task_id = $taskB where id = $subA`, says: "it is of run"},
		"task of all changed": {sql: `update runs set task_id = $taskB where root_id = $rootA`,
			says: "not that of its content"},
		"link changed": {sql: `update run_decisions set previous = sha256('')
			where root_id = $rootA and number = 3`, says: "not that of its content"},
		"hash changed": {sql: `update run_decisions set hash = sha256('') where root_id = $rootA and number = 3`,
			says: "follows another decision"},
	}
}

// editsOfRecords change what must agree with the chain, and its end.
func editsOfRecords() map[string]edit {
	return map[string]edit{
		"policy's result changed": {sql: `update run_phases set result = replace(result::text, '"effect":"allow"', '"effect":"deny"')::json where run_id = $rootA and phase = 4`, says: "phase policy, attempt 1, says something else"},
		"phase removed":           {sql: `delete from run_phases where run_id = $rootA and phase = 3`, says: "is gone"},
		"decision invented": {sql: `update run_phases set result = (select json_build_object('regate', t.result)
			from run_phases t where t.run_id = $rootA and t.phase = 3) where run_id = $rootA and phase = 6`, says: "follows from no decision"},
		"sub-run's trust decision edited": {sql: `update run_phases set result = ` + without("result") + `
			where run_id = $subA and phase = 3`, says: "says something else"},
		"sub-run's decision removed, in the phase": {sql: `update run_phases set result = 'null' where run_id = $subA and phase = 3`, says: "says something else"},
		"sub-run's phase removed": {sql: `delete from run_phases where run_id = $subA and phase = 3`,
			says: "is gone"},
		"sub-run's decision edited": {sql: `update run_decisions set input = ` + without("input") + `
			where run_id = $subA and kind = 'trust'`, says: "not that of its content"},
		"sub-run's decision removed": {sql: `delete from run_decisions where run_id = $subA and kind = 'trust'`,
			says: "a decision was removed"},
		"value decision edited": {sql: `update run_decisions set input = replace(input::text, '"5000"', '"5"')::json
			where root_id = $rootA and kind = 'value'`, says: "not that of its content"},
		"value decision removed": {sql: `delete from run_decisions where root_id = $rootA and kind = 'value'`,
			says: "a decision was removed"},
		"phase's status changed to failed":   {sql: `update run_phases set status = 'failed' where run_id = $rootA and phase = 3`, says: "phase trust, attempt 1, is failed"},
		"phase's status changed to rejected": {sql: `update run_phases set status = 'rejected' where run_id = $rootA and phase = 4`, says: "phase policy, attempt 1, is rejected"},
		"phase's status changed to waiting":  {sql: `update run_phases set status = 'waiting' where run_id = $rootA and phase = 3`, says: "phase trust, attempt 1, is waiting"},
		"status of execute changed":          {sql: `update run_phases set status = 'rejected' where run_id = $rootA and phase = 6`, says: "phase execute, attempt 1, is rejected"},
		"phase failed without a result":      {sql: `update run_phases set status = 'failed', error = 'x', result = 'null' where run_id = $rootA and phase = 4`, says: "phase policy, attempt 1, says something else"},
		"run's status changed to failed": {sql: `update runs set status = 'failed' where id = $rootA`,
			says: "none of its phases failed"},
		"run's status changed to cancelled": {sql: `update runs set status = 'cancelled' where id = $rootA`,
			says: "none of its phases failed"},
		"run's status changed to running": {sql: `update runs set status = 'running' where id = $subA`,
			says: "its phases say otherwise"},
		"approval denied, in the phase": {sql: `update run_phases set status = 'rejected' where run_id = $subA and phase = 3`, says: "phase trust, attempt 1, is rejected"},
		"dry run's status changed":      {sql: `update run_phases set status = 'rejected' where run_id = $rootA and phase = 5`, says: "one of its phases was not"},
		"answer changed": {sql: `update run_approvals set by = 'eve' where run_id = $rootA`,
			says: "stored answer is gone or says something else"},
		"answer removed": {sql: `delete from run_approvals where run_id = $rootA`,
			says: "stored answer is gone"},
		"answer added": {sql: `insert into run_approvals (run_id, attempt, subject, approved, by, reason) values ($rootA, 1, 'policy', true, 'eve', '')`, says: "nobody gave"},
		"head replaced": {sql: `update runs set decisions_head = (select decisions_head from runs where id = $rootB)
			where id = $rootA`, says: "the head of the run"},
		"number of decisions changed": {sql: `update runs set decisions = decisions - 1 where id = $rootA`,
			says: "decisions, and"},
		"signature dropped": {sql: `update runs set decisions_signature = null, decisions_signer = null
			where id = $rootA`, says: "not signed although", key: true},
		"signature of another run": {sql: `update runs r set decisions_signature = b.decisions_signature, decisions_signer = b.decisions_signer from runs b where r.id = $rootA and b.id = $rootB`, says: "signature of the head", key: true},
		"all of it rewritten":      {does: (*decided).rewrite, says: "signature of the head", key: true},
		"all of it rewritten, signed by another": {does: func(d *decided) { d.rewrite(); d.sealAs(9) },
			says: "not trusted",
			key:  true},
	}
}
