// Package repute is the vocabulary of the ERC-8004 index: identifiers, events, agents, feedback, documents and the
// arithmetic of summaries. It does no I/O and imports no other package of the module, so that every layer can speak of
// the same things without depending on another layer.
//
// A Record is a log of a registry with its Event; the indexer decodes and stores it. An AgentID names an agent, and an
// Agent is its state at one block, with its Document and Score. Feedback, Response and Validation are what others said
// of it. Everything that comes from the chain or from a document is hostile: texts are bytes of any encoding until a
// field says otherwise, and Partial or Cut tell what was shortened. Amounts are exact decimals (Amount), money is
// Micros, scores are Points; none of them is a float.
//
// Answers are true as of a block, which AsOf describes with its finality and the Completeness of the index. Task, Run,
// Receipt and RunDecision are the terms of the orchestrator.
//
// Some arithmetic lives here because several packages must agree on it: Summarize computes what the Reputation Registry
// returns, TagSummary its robust counterpart, PaymentCase.Judge decides whether a claimed payment counts, JudgeHash
// whether bytes are the ones that the chain names, and RunDecision.Sum the chain of decisions.
//
// Errors have kinds, which callers compare by errors.Is: ErrNotFound, ErrInvalid, ErrConflict, ErrGone, ErrUnavailable
// and ErrLimited. An InputError names the field and what is allowed. ErrReorged, ErrFinalized, ErrFenced and ErrHeld
// are outcomes that steer loops, and no failures.
package repute
