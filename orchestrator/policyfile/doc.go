// Package policyfile keeps the operator's policy as its file says: it reads the file again when
// it changes, and keeps the last policy that compiled.
package policyfile
