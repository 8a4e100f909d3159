// Package policyfile keeps the operator's policy as its file says: it reads the file again when it changes, and keeps
// the last policy that compiled.
//
// Engines and the API call Current for each decision, which costs one atomic load, and store the text of the policy
// with the decision. So a change applies to running tasks from the next decision on, and every decision can be made
// again by the policy of its time. A policy that does not compile is logged and changes nothing: an operator's typing
// error must not open or close the gate. Without a file DefaultPolicy applies.
package policyfile
