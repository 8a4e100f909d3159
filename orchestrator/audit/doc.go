// Package audit checks the stored decisions about a task, as somebody who does not trust the database would. It reads
// what store/rundb hands it, asks nothing else, and changes nothing.
//
// CheckDecisions checks that the decisions are the chain that the head names: each follows the one before and has the
// hash of its content. It then checks what should follow from them: that policies have the hash that decisions name,
// that the results and statuses of phases and runs agree with the decisions that were stored with them, that the
// answers of people are those in the chain, and that trust was decided for the terms of the task. CheckLinks checks
// one page of a chain. Each disagreement is a DecisionFault.
//
// It does not check the signature of the head (trust/statement does), nor make trust decisions again
// (trustgate.Verify does, with GateDecisionOf). Without a signature, anybody who can write to the database can rewrite
// the whole chain.
package audit
