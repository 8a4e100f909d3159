// Package telemetry counts runs and their phases, and makes one trace of each root run.
package telemetry
