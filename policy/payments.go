package policy

import "fmt"

// paymentSteps are what an agent must reach before somebody without a policy pays it or
// delegates to it, by the value at risk. The numbers are low bounds that the gates of scores
// use as well: 50 is the line of full service. The values are 0.01, 0.1, 1 and 10 of the chain's native coin. Tier 2 is
// above what thin evidence gives. From 10 on, the agent must also show who it is. A changed number changes the API's
// answers to callers without thresholds.
const paymentSteps = `
version: "1"
trust:
  threshold: {minReputation: 0}
  byValue:
    - {fromWei: "10000000000000000", threshold: {minTier: 2}}
    - {fromWei: "100000000000000000", threshold: {minReputation: 25, minTier: 2}}
    - {fromWei: "1000000000000000000", threshold: {gates: [service]}}
    - {fromWei: "10000000000000000000", threshold: {minReputation: 65, gates: [service, identity]}}
`

// ForPayments is the policy of decisions about agents where the caller brings no thresholds:
// steps by the value at risk, in wei.
func ForPayments() (*Policy, error) {
	p, err := Parse([]byte(paymentSteps))
	if err != nil {
		return nil, fmt.Errorf("policy for payments: %w", err)
	}
	return p, nil
}
