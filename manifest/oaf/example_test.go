package oaf_test

import (
	"fmt"
	"testing/fstest"

	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
)

// Load returns what it can read and lists the problems; it has no error.
func ExampleLoad() {
	files := fstest.MapFS{"code-reviewer/AGENTS.md": {Data: []byte(`---
name: "code-reviewer"
vendorKey: "acme"
agentKey: "code-reviewer"
version: "1.0.0"
slug: "code-reviewer"
description: "Reviews code for quality, security and performance, worst finding first."
author: "@acme"
license: "MIT"
tags: ["review"]
---

You review code.

## Answer

One finding in each line.
`)}}
	agent, problems := oaf.Load(files, "code-reviewer", problem.Lenient)
	fmt.Println(agent.ID(), agent.Version, agent.IsStructured())
	for _, p := range problems {
		fmt.Printf("%s %s:%d %s\n", p.Code, p.File, p.Line, problem.Hint(p.Code))
	}
	// Output:
	// acme/code-reviewer 1.0.0 false
	// WO744 AGENTS.md:6 write vendorKey/agentKey
}
