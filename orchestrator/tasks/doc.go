// Package tasks submits, cancels, retries and approves tasks, for every caller except the engine. A Client has a method
// for each.
//
// Each method writes its rows and, where work follows, a job of river in one transaction: there is no task without a
// job and no job without a task. The client needs the database alone, so that the API, the command line and tests can
// use it in processes that run no engine. An orchestrator.Engine takes the jobs from Queue, in this process or
// another.
//
// A job names a root run and nothing else. Any number of jobs for one run is harmless, because the lease of the run
// has one owner: a job that finds the run taken, ended or waiting does nothing. Therefore jobs are not unique, and an
// engine inserts another one for each run whose lease expired.
//
// Submit returns the task that was stored first where a key is repeated. Whether it is the same task is for its
// caller to compare. Cancel only asks for the end: the owner of the run sees it when it renews its lease.
package tasks
