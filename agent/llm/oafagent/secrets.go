package oafagent

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"repute"
)

// variables are the values that one server's configuration takes from the environment.
type variables struct {
	o     *Options
	taken map[string]string // name by value, of values that are or may be secrets
}

// expand replaces ${NAME} by variables of the environment that the operator allows. isSecret reports whether a value is
// hidden in what the server returns. The error never has a value.
func (v *variables) expand(field, text string, isSecret func(name, value string) bool) (string, error) {
	var wrong error
	out := reference().ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		value := v.o.Getenv(name)
		if !slices.Contains(v.o.Env, name) || value == "" {
			wrong = repute.Invalid(field, fmt.Sprintf("names the variable %.80s, which is not allowed or is empty", name),
				"allow the agent the variable (env) and set it")
			return ""
		}
		if isSecret(name, value) {
			v.taken[value] = name
		}
		return value
	})
	if wrong != nil {
		return "", wrong
	}
	return out, nil
}

// member is expand for the value of a header or a variable, which can be a secret and MUST NOT stand in the file then.
func (v *variables) member(field, name, value string, isSecret func(name, value string) bool) (string, error) {
	if looksSecret(name, value) {
		return "", repute.Invalid(field, "has what looks like a secret in the open",
			"${NAME} of a variable of the environment, which the operator lists in env")
	}
	return v.expand(field, value, func(variable, held string) bool {
		return isSecret(name, held) || isSecret(variable, held)
	})
}

// always says that every value is a secret.
func always(string, string) bool { return true }

// reference matches ${NAME}.
func reference() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`) }

// minHidden is the length of the shortest value that hidden replaces: shorter ones are words and numbers that any
// text can have.
const minHidden = 6

// hidden returns what replaces the values by their names in texts that a server, or an error about it, has. A value
// is also recognized as it stands in URLs and in JSON.
func (v *variables) hidden() *strings.Replacer {
	forms := map[string]string{}
	for value, name := range v.taken {
		if len(value) < minHidden {
			continue
		}
		quoted := string(mustJSON(value))
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value),
			(&url.URL{Path: value}).EscapedPath(), quoted[1 : len(quoted)-1]} {
			forms[form] = "${" + name + "}"
		}
	}
	list := make([]string, 0, len(forms))
	for form := range forms {
		list = append(list, form)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // a value can be a part of another
	pairs := make([]string, 0, 2*len(list))
	for _, form := range list {
		pairs = append(pairs, form, forms[form])
	}
	return strings.NewReplacer(pairs...)
}

// looksSecret reports whether a value that a file has may be a secret: by the name of its member, or by its own
// form. What the file takes from the environment is none.
func looksSecret(name, value string) bool {
	rest := strings.TrimSpace(reference().ReplaceAllString(value, ""))
	for _, scheme := range []string{"Bearer", "Basic", "Token"} {
		rest = strings.TrimSpace(strings.TrimPrefix(rest, scheme))
	}
	return rest != "" && (secretName(name) && !plainValue(rest) || oftenSecretName(name) && randomValue(rest) ||
		secretForm(rest))
}

// secretName reports whether members of a name usually are secrets.
func secretName(name string) bool {
	return regexp.MustCompile(`(?i)(authorization|token($|[^a-z])|secret($|[^s])|passw(or)?d|passphrase|credential|`+
		`cookie|bearer|(api|private|access|auth|signing)[-_]?key|^key$|[-_]auth$|^auth$|^pat$|^pwd$)`).
		MatchString(name) && !placeName(name)
}

// oftenSecretName reports whether members of a name are secrets or something else: a number of tokens, the key of a
// partition, the region of a store of secrets.
func oftenSecretName(name string) bool {
	return regexp.MustCompile(`(?i)(tokens($|[^a-z])|secrets|[-_]key$)`).MatchString(name) && !placeName(name)
}

// placeName reports whether members of a name say where or what a secret is.
func placeName(name string) bool {
	return regexp.MustCompile(`(?i)[-_](file|path|dir|url|type|name|id)$`).MatchString(name)
}

// randomValue reports whether a value has a word of 8 or more letters and digits with both of them.
func randomValue(value string) bool {
	return slices.ContainsFunc(regexp.MustCompile(`[A-Za-z0-9]{8,}`).FindAllString(value, -1), func(word string) bool {
		return regexp.MustCompile(`[0-9]`).MatchString(word) && regexp.MustCompile(`[A-Za-z]`).MatchString(word)
	})
}

// plainValue reports whether a value is a switch or a small number.
func plainValue(value string) bool {
	return regexp.MustCompile(`^(?i)(true|false|yes|no|on|off|none|[0-9]{1,6})$`).MatchString(value)
}

// secretForm reports whether a text has the form of keys of known providers, or is a long random word. The digest of an
// image, a commit and the id of an account in a path are none.
func secretForm(text string) bool {
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

// checkArgs refuses arguments with secrets: every process of the computer can read the arguments of every other.
func checkArgs(args []string) error {
	for i, arg := range args {
		field := fmt.Sprintf("connection.args.%d", i)
		name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case reference().MatchString(arg):
			return repute.Invalid(field, "names a variable, which other processes could read in the arguments",
				"connection.env, which has variables for the program")
		case given && looksSecret(name, value), secretForm(arg),
			i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") &&
				!strings.HasPrefix(arg, "-") && looksSecret(strings.TrimLeft(args[i-1], "-"), arg):
			return repute.Invalid(field, "has what looks like a secret in the open", "connection.env with ${NAME}")
		}
	}
	return nil
}

// address returns the URL of a server. It refuses one that has a secret in the open, and one that is none; the error
// shows nothing of it.
func (v *variables) address(text string) (string, error) {
	const field = "connection.url"
	expanded, err := v.expand(field, text, func(name, value string) bool {
		_, query, _ := strings.Cut(text, "?")
		return strings.Contains(query, "${"+name+"}") || strings.Contains(value, "?") || looksSecret(name, value)
	})
	if err != nil {
		return "", err
	}
	u, err := url.Parse(expanded)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", repute.Invalid(field, "is no URL", "https://host/path")
	}
	written := reference().ReplaceAllString(text, "")
	open := u.User != nil || secretForm(written)
	if _, query, has := strings.Cut(written, "?"); has {
		values, _ := url.ParseQuery(query) // what cannot be read is no member with a name
		for name := range values {
			open = open || slices.ContainsFunc(values[name], func(value string) bool { return looksSecret(name, value) })
		}
	}
	if open {
		return "", repute.Invalid(field, "has what looks like a secret in the open, or user information",
			"auth.token or connection.headers with ${NAME}")
	}
	return expanded, nil
}
