package secret

import "testing"

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
