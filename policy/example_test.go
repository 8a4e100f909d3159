package policy_test

import (
	"fmt"
	"log"

	"repute/policy"
)

// A threshold is compared with the lower bound of a score, so an agent with a good score
// and little evidence is denied.
func ExamplePolicy_Gate() {
	p, err := policy.Parse([]byte(`
version: "1"
default: allow
trust: {threshold: {minReputation: 20}}
`))
	if err != nil {
		log.Fatal(err)
	}
	agent := policy.Agent{Slug: "translator", IdentityExists: true, Status: policy.StatusRated, Score: 28, Low: 17.5,
		High: 38}
	d := p.Gate(policy.Task{Value: "0"}, policy.Threshold{}, agent)
	fmt.Println(d.Effect)
	for _, r := range d.Reasons {
		fmt.Printf("%s: has %s, needs %s\n", r.ID, r.Have, r.Need)
	}
	// Output:
	// deny
	// trust.minReputation: has 17.5, needs 20
}
