// Package secret recognizes secrets that are written as plain text in the files of an agent, where a reference such as
// ${NAME} belongs. It judges by names and formats: a short secret under a harmless name is not recognized.
//
// A check of an agent warns of such texts, a runtime refuses to use them, and exports leave them out. Member, Argument
// and URL judge a text by where it stands; all of them also by form, which knows the keys of providers.
package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Reference returns the expression that matches ${NAME}; its first group is the name.
func Reference() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) }

// Member reports whether a value that a file has may be a secret: by the name of its member, or by its own
// form. What the file takes from the environment is none.
func Member(name, value string) bool {
	rest := strings.TrimSpace(Reference().ReplaceAllString(value, ""))
	for _, scheme := range []string{"Bearer", "Basic", "Token"} {
		rest = strings.TrimSpace(strings.TrimPrefix(rest, scheme))
	}
	return rest != "" && (usuallySecret(name) && !isPlain(rest) || sometimesSecret(name) && isRandom(rest) ||
		form(rest))
}

// usuallySecret reports whether members of a name usually are secrets.
func usuallySecret(name string) bool {
	return regexp.MustCompile(`(?i)(authorization|token($|[^a-z])|secret($|[^s])|passw(or)?d|passphrase|credential|`+
		`cookie|bearer|(api|private|access|auth|signing)[-_]?key|^key$|[-_]auth$|^auth$|^pat$|^pwd$)`).
		MatchString(name) && !describesSecret(name)
}

// sometimesSecret reports whether members of a name are secrets or something else: a number of tokens, the key of a
// partition, the region of a store of secrets.
func sometimesSecret(name string) bool {
	return regexp.MustCompile(`(?i)(tokens($|[^a-z])|secrets|[-_]key$)`).MatchString(name) && !describesSecret(name)
}

// describesSecret reports whether members of a name say where or what a secret is.
func describesSecret(name string) bool {
	return regexp.MustCompile(`(?i)[-_](file|path|dir|url|type|name|id)$`).MatchString(name)
}

// isRandom reports whether a value has a word of 8 or more letters and digits with both of them.
func isRandom(value string) bool {
	return slices.ContainsFunc(regexp.MustCompile(`[A-Za-z0-9]{8,}`).FindAllString(value, -1), func(word string) bool {
		return regexp.MustCompile(`[0-9]`).MatchString(word) && regexp.MustCompile(`[A-Za-z]`).MatchString(word)
	})
}

// isPlain reports whether a value is a switch or a small number.
func isPlain(value string) bool {
	return regexp.MustCompile(`^(?i)(true|false|yes|no|on|off|none|[0-9]{1,6})$`).MatchString(value)
}

// form reports whether a text contains a key in the format of a known provider, or a word of 32 or more characters
// that looks random. Lower-case hex of 32, 40 or 64 digits after "@", ":" or "/" does not count: it is the digest of
// an image, a commit or the id of an account in a path.
func form(text string) bool {
	if regexp.MustCompile(`(^|[^A-Za-z0-9])(sk-|sk_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza|` +
		`ya29\.|hf_|npm_|eyJ)[A-Za-z0-9_.-]{12}|-----BEGIN`).MatchString(text) {
		return true
	}
	const digits, lower, upper = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	isDigest := regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$`).MatchString
	for _, at := range regexp.MustCompile(`[A-Za-z0-9+_-]{32,}`).FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		if at[0] > 0 && strings.ContainsRune("@:/", rune(text[at[0]-1])) && isDigest(word) {
			continue
		}
		joined := strings.ContainsAny(word, "_-") // as in names of several words, which seldom have capitals
		if strings.ContainsAny(word, digits) && strings.ContainsAny(word, lower+upper) &&
			(!joined || strings.ContainsAny(word, lower) && strings.ContainsAny(word, upper)) {
			return true
		}
	}
	return false
}

// Argument reports whether an argument of a program may be a secret: by its own form, as --name=value, or as the value
// of the option before it.
func Argument(args []string, i int) bool {
	name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
	if given && Member(name, value) || form(args[i]) {
		return true
	}
	return i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") &&
		!strings.HasPrefix(args[i], "-") && Member(strings.TrimLeft(args[i-1], "-"), args[i])
}

// URL reports whether an address has a secret: user information, a member of its query, or a text of such a form.
func URL(text string) bool {
	written := Reference().ReplaceAllString(text, "")
	if user := regexp.MustCompile(`^[^/?#]*//([^/?#]*)@`).FindStringSubmatch(written); user != nil &&
		strings.Trim(user[1], ":") != "" || form(written) {
		return true
	}
	_, query, _ := strings.Cut(written, "?")
	values, _ := url.ParseQuery(query) // what cannot be read is no member with a name
	for name := range values {
		if slices.ContainsFunc(values[name], func(value string) bool { return Member(name, value) }) {
			return true
		}
	}
	return false
}
