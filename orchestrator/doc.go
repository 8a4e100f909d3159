// Package orchestrator runs tasks by agents as far as indexed trust allows: OpenFi's agent standard on top of the
// index.
//
// Package tasks stores tasks; an Engine works on their runs, any number of them on one database. A run is one job of
// nine phases whose results are stored as they end, so that another process continues where one died. Whatever an
// agent reaches outside itself it reaches through a Context, which counts it, keeps within the budget, and writes the
// receipts itself.
//
// The packages below have the parts: standard the types that agents and the runtime exchange, builtin the agents of the
// binary, lifecycle the rules of the phases, transaction what a transaction is and moves, trustgate and safety what is
// decided about agents and transactions, approval what a person sees who must approve, crosscheck the comparison of
// what an agent says with its receipts, journal the stored form of records, and audit the comparison of stored records.
package orchestrator
