package oafagent

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"repute"
	"repute/manifest/oaf/secret"
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
	out := secret.Reference().ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		value := v.o.Getenv(name)
		if !slices.Contains(v.o.Env, name) || value == "" {
			wrong = repute.Invalid(field, fmt.Sprintf("names the variable %.80s, which is not allowed or is empty",
				name),
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
	if secret.Member(name, value) {
		return "", repute.Invalid(field, "has what looks like a secret in the open",
			"${NAME} of a variable of the environment, which the operator lists in env")
	}
	return v.expand(field, value, func(variable, held string) bool {
		return isSecret(name, held) || isSecret(variable, held)
	})
}

// always says that every value is a secret.
func always(string, string) bool { return true }

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

// checkArgs refuses arguments with secrets: every process of the computer can read the arguments of every other.
func checkArgs(args []string) error {
	for i, arg := range args {
		field := fmt.Sprintf("connection.args.%d", i)
		switch {
		case secret.Reference().MatchString(arg):
			return repute.Invalid(field, "names a variable, which other processes could read in the arguments",
				"connection.env, which has variables for the program")
		case secret.Argument(args, i):
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
		return strings.Contains(query, "${"+name+"}") || strings.Contains(value, "?") || secret.Member(name, value)
	})
	if err != nil {
		return "", err
	}
	u, err := url.Parse(expanded)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", repute.Invalid(field, "is no URL", "https://host/path")
	}
	if u.User != nil || secret.URL(text) {
		return "", repute.Invalid(field, "has what looks like a secret in the open, or user information",
			"auth.token or connection.headers with ${NAME}")
	}
	return expanded, nil
}
