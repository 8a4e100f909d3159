package oaf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"repute/manifest/oaf/problem"
)

// A secret is reported wherever a connection can have one, and no problem shows it.
func TestSecretsOfConnections(t *testing.T) {
	t.Parallel()
	for line, place := range map[string]string{
		"type: http, url: \"http://a\", headers: {Authorization: Bearer ghp_0123456789abcdef}": "/connection/headers/Authorization",
		"type: http, url: \"http://a/?api_key=sk-live-hunter2hunter2\"":                        "/connection/url",
		"type: http, url: \"http://bob:hunter2hunter2@a\"":                                     "/connection/url",
		"type: stdio, command: x, args: [--password, hunter2hunter2]":                          "/connection/args",
		"type: stdio, command: x, env: {API_KEY: hunter2hunter2}":                              "/connection/env/API_KEY",
	} {
		for profile, code := range map[problem.Profile]string{problem.Lenient: "WO802", problem.Strict: "EO802"} {
			problems := server("connection: {"+line+"}\n")(t, profile)
			if !slices.ContainsFunc(problems,
				func(p problem.Problem) bool { return p.Code == code && p.Path == place && p.Line == 1 }) {
				t.Errorf("%s: %+v", line, problems)
			}
			if text := fmt.Sprint(problems); strings.Contains(text, "hunter2") || strings.Contains(text, "ghp_") {
				t.Errorf("%s: the problem shows the secret: %s", line, text)
			}
		}
	}
	clean := server("connection: {type: http, url: \"http://a\", headers: {Authorization: \"Bearer ${KEY}\"}}\n")
	if got := codes(clean(t, problem.Lenient)); slices.Contains(got, "WO802") {
		t.Errorf("a reference is reported: %v", got)
	}
}
