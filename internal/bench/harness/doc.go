// Package harness has what all benchmarks share: a private Postgres, processes of the product, and reports.
//
// OnServer runs a benchmark on a private Server and completes its Report with the machine that it ran on, which makes
// reports of different days comparable. A Server gives out fresh migrated databases, each after a checkpoint, so that
// no measurement pays for the one before. A Database has a connection to look into it, and the processor time of its
// sessions, which depends less on what else the machine does than the clock.
//
// A Program is a binary, a Process a running one. On Linux processes die with the benchmark; they keep their standard
// error for its failures, and know the most memory that they held. Program.Serve starts the product with a
// configuration, and Program.StartServing another process of the benchmark itself that calls Announce. Database.Serve
// measures what the product takes of processors and of Postgres's log.
//
// A Target is a value that must reach a limit or keep to it: the exit code of a benchmark says whether all did.
package harness
