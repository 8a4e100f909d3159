package manifest_test

import (
	"fmt"

	"repute/manifest"
)

// Parse returns what it can read and lists the problems; it has no error.
func ExampleParse() {
	reg, problems := manifest.Parse([]byte(`{
		"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
		"name": "Translator",
		"description": "Translates short texts.",
		"image": "https://agent.example/icon.png",
		"services": [{"name": "MCP", "endpoint": "http://agent.example/mcp"}]
	}`))
	fmt.Println(reg.Name)
	for _, p := range problems {
		fmt.Println(p.Code, p.Path)
	}
	// Output:
	// Translator
	// IA537 /services/0/endpoint
	// IA543 /registrations
}
