// Package docstats counts the queue of documents for operators: by rank, by host and by outcome, and reports whether
// some process works on it.
//
// ReadURIStats and WorstHosts read every URI and are for commands; ReadQueue reads the scheduled ones and is for every
// few seconds; ReadFetching is for each request. Workers call NoteWorker to show that they live.
//
// It reads the tables of package docdb, and writes its row of cursors.
package docstats
