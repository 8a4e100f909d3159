package harness

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"repute/manifest/oaf/secret"
)

// withhold returns the connection of a server without what looks like a secret in the open, and the parts that had one.
// A variable and an argument become references to the environment. A header is left out, and so is a url as a whole,
// because what remains of it is another address.
//
// The maps and lists of entry are not changed: they may be an agent's own.
func withhold(entry mcpEntry) (out mcpEntry, parts []string) {
	out = entry
	out.Headers, out.Env, out.Args = maps.Clone(entry.Headers), maps.Clone(entry.Env), slices.Clone(entry.Args)
	for _, name := range slices.Sorted(maps.Keys(entry.Headers)) {
		if secret.Member(name, entry.Headers[name]) {
			delete(out.Headers, name)
			parts = append(parts, "the header "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entry.Env)) {
		if secret.Member(name, entry.Env[name]) {
			out.Env[name] = variable(name)
			parts = append(parts, "the variable "+name)
		}
	}
	for i := range entry.Args {
		if secret.Argument(entry.Args, i) {
			out.Args[i] = hidden(entry.Args, i)
			parts = append(parts, fmt.Sprintf("argument %d", i+1))
		}
	}
	if secret.URL(entry.URL) {
		out.URL = ""
		parts = append(parts, "the url")
	}
	return out, parts
}

// hidden returns an argument with a reference in place of its value. The reference is named by the option that the
// value belongs to.
func hidden(args []string, i int) string {
	option, _, given := strings.Cut(args[i], "=")
	switch {
	case given && strings.HasPrefix(option, "-"):
		return option + "=" + variable(option)
	case i > 0 && strings.HasPrefix(args[i-1], "-"):
		return variable(args[i-1])
	}
	return variable("secret")
}

// variable returns a reference to a variable of the environment, with the characters that its name may have.
// Digits and underscores are cut at the beginning, where no name of a variable may have a digit.
func variable(name string) string {
	name = regexp.MustCompile(`[^A-Z0-9]+`).ReplaceAllString(strings.ToUpper(name), "_")
	return "${" + cmp.Or(strings.TrimLeft(name, "_0123456789"), "SECRET") + "}"
}

// withheld says why parts of a connection are not carried.
func withheld(server string, parts []string) string {
	return fmt.Sprintf("%s: %s is withheld, as it has what looks like a secret in the open: write ${NAME} and set the "+
		"variable", server, strings.Join(parts, ", "))
}
