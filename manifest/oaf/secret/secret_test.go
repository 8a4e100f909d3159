package secret

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://api.example.org/mcp?api_key=sk-live-0123456789abcdef": true,
		"https://bob:hunter2hunter2@api.example.org/mcp":               true,
		"https://api.example.org/sk-live-0123456789abcdef/mcp":         true,
		"https://api.example.org/mcp?api_key=${KEY}":                   false,
		"https://${USER}:${PASSWORD}@api.example.org/mcp":              false,
		"https://api.example.org/@acme/mcp?page=2":                     false,
		"": false,
	} {
		if got := URL(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestArgument(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want bool // of the last one
	}{
		{[]string{"--password", "hunter2hunter2"}, true},
		{[]string{"--password=hunter2hunter2"}, true},
		{[]string{"ghp_0123456789abcdef0123"}, true},
		{[]string{"--password", "${PASSWORD}"}, false},
		{[]string{"--password", "--verbose"}, false},
		{[]string{"-y", "@acme/server"}, false},
	} {
		if got := Argument(tc.args, len(tc.args)-1); got != tc.want {
			t.Errorf("%v: %v", tc.args, got)
		}
	}
}

// A value is a secret by the name of its member, or by its own form; references, switches and digests are none.
func TestMember(t *testing.T) {
	t.Parallel()
	const random = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
	for _, tc := range []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "hunter2", true}, {"api-key", "hunter2", true}, {"Authorization", "Bearer hunter2", true},
		{"Authorization", "Bearer ${TOKEN}", false}, {"Authorization", "Bearer", false}, {"PASSWORD", "", false},
		{"PASSWORD", "true", false}, {"TOKEN_FILE", "/run/token", false}, {"AUTH_TYPE", "oauth", false},
		{"MAX_TOKENS", "4096", false}, {"MAX_TOKENS", "abcdefgh", false}, {"SHARED_TOKENS", "abcdefg1", true},
		{"PARTITION_KEY", "customers", false}, {"PARTITION_KEY", "k3y00000", true}, {"NAME", random, true},
		{"NAME", "two-words-" + "and-many-more-that-are-long-enough", false},
		{"IMAGE", "acme/app@" + strings.Repeat("0a", 32), false}, {"IMAGE", strings.Repeat("0a", 32), true},
		{"NOTE", "-----BEGIN PRIVATE KEY-----", true}, {"NOTE", "sk-0123456789ab", true}, {"NOTE", "sk-short", false},
	} {
		if got := Member(tc.name, tc.value); got != tc.want {
			t.Errorf("%s=%s: %v", tc.name, tc.value, got)
		}
	}
}
