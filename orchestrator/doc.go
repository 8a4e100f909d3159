// Package orchestrator runs tasks by agents as far as indexed trust allows: OpenFi's
// agent standard on top of the index. A run is one job of nine phases whose results are
// stored as they end, so that another process goes on where one died. Whatever an agent
// reaches outside itself it reaches through a Context, which counts it, keeps within the
// budget, and writes the receipts itself.
package orchestrator
