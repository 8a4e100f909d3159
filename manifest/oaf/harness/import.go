package harness

import (
	"cmp"
	"fmt"

	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
)

// Import is an agent that was read from a harness.
// Agent is never nil, also where its file could not be read: Problems then say why, and the name is made of the
// file's.
type Import struct {
	Agent    *oaf.Agent
	Problems []problem.Problem
	Notes    []Note
}

// derive gives an agent the name and the key that its source does not say. otherwise is what the source calls it: a
// file or an id.
func derive(a *oaf.Agent, n *notes, otherwise string) {
	if a.AgentKey == "" {
		a.AgentKey = cmp.Or(kebab(a.Name), kebab(otherwise), "agent")
		n.guess(true, "agentKey", "%s is made of %.80q", a.AgentKey, cmp.Or(a.Name, otherwise))
	}
	if a.Name == "" {
		a.Name = a.AgentKey
		n.guess(true, "name", "%s is the key", a.Name)
	}
}

// distinguish gives agents of one key keys of their own: each becomes a directory.
//
// It works in the order of the imports, so that the first of a key keeps it and a second import of the same files
// gives the same keys.
func distinguish(all []Import) {
	taken := map[string]bool{}
	for i := range all {
		a := all[i].Agent
		key := a.AgentKey
		for n := 2; taken[key]; n++ {
			key = fmt.Sprintf("%s-%d", a.AgentKey, n)
		}
		taken[key] = true
		if key == a.AgentKey {
			continue
		}
		all[i].Notes = append(all[i].Notes, Note{Kind: Guessed, Agent: a.AgentKey, Field: "agentKey",
			Reason: "another agent has the key: this one becomes " + key})
		if a.Slug == a.VendorKey+"/"+a.AgentKey {
			a.Slug = a.VendorKey + "/" + key
		}
		a.AgentKey = key
		for j := range all[i].Notes {
			all[i].Notes[j].Agent = cmp.Or(a.ID(), key)
		}
	}
}

// importOf returns an agent with its problems and notes.
func importOf(a *oaf.Agent, list *problem.List, n *notes) Import {
	return Import{Agent: a, Problems: list.Problems(), Notes: n.of(cmp.Or(a.ID(), a.AgentKey))}
}
