// Package agentdb owns the tables of agents that are run here: payments, each claimed by one process before its work,
// the append-only log of what agents did, and the texts that they remember.
//
// # Payments
//
// A Payment is a payment of a client for one request. Claim gives the work for it to one owner for a time: of any
// number of processes of an agent that get the same payment, one works and the others are told ErrWorkedOn. SetRunning,
// SetRan, SetSettled and End store each step before the next one begins, and Renew extends the claim. Every one of them
// returns repute.ErrFenced where another process took the payment over. After a crash TakeOver tells the next process
// how far the work came, and whether a settlement was asked for whose end is not known, so that nobody runs or pays
// twice without noticing. A payment whose answer is stored is answered from the table when it is sent again.
// PrunePayments deletes old ones, but never one that is owed back or whose settlement is open.
//
// # The log
//
// An Entry is a line of the log: an execution, a decision, a payment, or an event. It is never changed. Steps of longer
// affairs are events with a name of their own, each stored once: validations that the agent asked for (Validation),
// validations that it is asked for (Asked), events of the chain, and policies that were in force. What is known of an
// affair is the sum of its steps, so that processes need no other table to agree.
//
// Add waits for the disk only where money moved or an event says how far the agent came; other entries may be lost
// where the server's machine fails within a second. Log gathers the entries of many requests into few statements.
//
// The log is partitioned by month. Maintain makes partitions ahead and drops those that no agent keeps any longer
// (Keep), never before 90 days.
//
// # Memory
//
// Memory, PutMemory and SearchMemory are for the texts that an agent that runs a model remembers, by session and label.
//
// Tables: agent_payments, agent_receipts and its partitions, agent_memory; retentions are in cursors.
package agentdb
