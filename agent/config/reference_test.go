package config_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"repute/agent/capability"
	"repute/agent/config"
	"repute/agent/llm/modelfile"
)

var update = flag.Bool("update", false, "write the reference page instead of comparing it")

const head = `# agent.yaml

Made from the program by ` + "`go test ./agent/config -run Reference -update`" + `. The members of the file that
` + "`repute agent serve --config`" + ` names. Variables of the environment, in parentheses, win over the file, and a
warning says so where both differ. Relative paths of ` + "`dir`, `oaf.dir`, `policy.uri`, `file:PATH`" + ` and of the program of
` + "`exec` and `mcp.command`" + ` are resolved against the directory of the file. ` + "`exec`" + ` needs a path, also for a program
in PATH; an ` + "`mcp.command`" + ` without a slash is searched in PATH. Arguments are not changed. Relative paths in variables
of the environment are resolved against the working directory. Unknown members are refused. How to use them:
[run an agent](../how-to/agent.md). The policy: [policy.json](agent-policy.md).
`

// docs/reference/agent.md has every member of agent.yaml.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	section(t, &b, reflect.TypeFor[config.Config](), "")
	b.WriteString("\n## A capability\n\n| member | type | default | meaning |\n|---|---|---|---|\n")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[capability.Definition]()) {
		meaning, known := definition()[name(f)]
		if !known {
			t.Errorf("capability.Definition: %s has no meaning here", name(f))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name(f), typeName(f.Type), meaning[1], meaning[0])
	}
	for _, row := range [][3]string{{"handler", "object", "what does the work: see below"},
		{"chargeFrom", "text", "scheme upto: JSON Pointer into the output, to the amount that is charged"},
		{"repeatable", "true or false", "the handler may be called again for a payment after a crash"},
		{"validates", "object",
			"a handler that judges results of this capability of other agents, for validation.answerer"}} {
		fmt.Fprintf(&b, "| `%s` | %s | | %s |\n", row[0], row[1], row[2])
	}
	rows(t, &b, "### manifest.commitments", reflect.TypeFor[config.Commitment]())
	rows(t, &b, "### handler", reflect.TypeFor[config.Handler]())
	rows(t, &b, "### handler.mcp", reflect.TypeFor[config.MCP]())
	rows(t, &b, "### handler.task", reflect.TypeFor[config.Task]())
	rows(t, &b, "### handler.oaf", reflect.TypeFor[config.OAF]())
	rows(t, &b, "### models", reflect.TypeFor[modelfile.Table]())
	rows(t, &b, "### models.table.NAME", reflect.TypeFor[modelfile.Entry]())
	const page = "../../docs/reference/agent.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil || string(want) != b.String() {
		t.Errorf("docs/reference/agent.md differs from the code (%v): go test ./agent/config -run Reference -update", err)
	}
}

// definition are the members of capability.Definition with their meaning and default.
func definition() map[string][2]string {
	return map[string][2]string{
		"name":               {"lower-case words joined by hyphens, such as code-review", ""},
		"version":            {"semantic version", ""},
		"description":        {"for people and catalogs", ""},
		"inputSchema":        {"JSON Schema that inputs are checked by, before any payment", ""},
		"outputSchema":       {"JSON Schema that answers are checked by", ""},
		"pricing":            {"one price or a list, of which a client pays one: `amount` in whole units, `currency`, and `network` (CAIP-2) and `asset` where they are not the agent's chain and its known token", "free"},
		"scheme":             {"`exact`, or `upto`: at most the price", "exact"},
		"estimatedDuration":  {"seconds", ""},
		"requiresValidation": {"a validator must confirm results", ""},
		"trustTier":          {"0 to 4: what the capability asks for", "0"},
		"sideEffects":        {"a run changes something outside: its payment is settled before", ""},
		"settle": {"`before` or `after` the run; for a failure after it nothing is charged",
			"after, before where sideEffects"},
		"maxRequestBytes": {"bytes of an input", "10485760"},
		"maxAnswerBytes":  {"bytes of an answer", "10485760"},
		"timeoutSeconds":  {"how long a run may take, 300 at most", "30"},
	}
}

// section writes the members of the file that are no objects, and then each object.
func section(t *testing.T, b *strings.Builder, of reflect.Type, path string) {
	t.Helper()
	rows(t, b, "## The file", of)
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == of.PkgPath() {
			rows(t, b, "## "+name(f), f.Type)
		}
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct && name(f) != "capabilities" {
			rows(t, b, "### "+name(f), f.Type.Elem())
		}
	}
	rows(t, b, "### payments.tokens", reflect.TypeFor[config.Token]())
}

func rows(t *testing.T, b *strings.Builder, title string, of reflect.Type) {
	t.Helper()
	fmt.Fprintf(b, "\n%s\n\n| member | type | default | meaning |\n|---|---|---|---|\n", title)
	for i := range of.NumField() {
		f := of.Field(i)
		if name(f) == "-" {
			continue
		}
		if f.Tag.Get("doc") == "" {
			t.Errorf("%s.%s has no doc", of, f.Name)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name(f), typeName(f.Type), f.Tag.Get("default"), f.Tag.Get("doc"))
	}
}

func name(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return n
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "JSON"
		}
		return "list"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return "number"
}
