// Package bench measures the product as its users run it: another process of the same program, a real Postgres, a
// node that answers over HTTP. A measurement ends in a harness.Report, whose Targets say whether it was good enough.
//
// Index measures how fast histories of package synth are indexed from a node in a process of its own (ServeHistory),
// honest or not. Its yardstick is COPY: the rows that the index ended with are stored again, by one connection and in
// as many transactions, so that a target is a share of what Postgres can do on the same machine. Follow measures how
// soon a block of a devnet is visible, Documents how fast documents are read from slow and dead hosts, and Runs what
// the nine phases of a run cost and that killed workers lose nothing.
//
// Other benchmarks have packages of their own: apibench, agentbench, exportbench, manifestbench and trustbench. What
// all share is in harness. Command cmd/bench runs them; docs/bench has recorded reports.
package bench
