// Package agents has the commands that run an agent by the Agent Runtime Specification, and that
// verify what agents answer.
package agents
