// Package telemetry counts runs and their phases for Prometheus, and makes one OpenTelemetry trace of each root run.
//
// Several processes can work on one run, one after the other. Therefore the ids of a run's trace and of its own span
// follow from the id of the run and its attempt: each process that works on it adds spans of phases and calls below
// that span (Join, Start), and the process that ends the run sends the span itself (Ended). TraceIDs gives the SDK
// these ids, and random ones for everything else. A nil Trace does nothing, so that callers need no condition.
//
// Labels of metrics are phases and statuses, which are few. Names of agents and tasks are attributes of spans alone.
package telemetry
