// Package query runs the named GraphQL documents that pages are made from, and keeps what "show query" shows of them.
//
// A document is a file of the folder queries, by whose name a page asks for it, and ends with the fragments that it
// uses. Ask decodes the data strictly: a field that the type does not have is an error, so that a page asks for nothing
// that it does not show. What a reader is shown is the very document and its variables, long texts cut, and can be run
// again on the page of GraphQL.
package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Runner executes GraphQL documents.
type Runner interface {
	// Run returns the answer to a document as JSON with the members data and errors, as POST /graphql does.
	Run(ctx context.Context, document string, variables map[string]any) ([]byte, error)
}

// Asked is a document that a page ran, as "show query" shows it.
type Asked struct {
	Name, Document, Variables string
}

// Documents are GraphQL documents by name, each with the fragments that it uses.
type Documents map[string]string

// Read reads the documents of the folder queries. A document ends with the fragments that it uses, each of which is a
// file of the folder queries/fragments.
func Read(files fs.FS) (Documents, error) {
	names, err := fs.Glob(files, "queries/*.graphql")
	if err != nil {
		return nil, fmt.Errorf("queries: %w", err)
	}
	documents := Documents{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("queries: %w", err)
		}
		document, err := withFragments(files, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		documents[strings.TrimSuffix(path.Base(name), ".graphql")] = document
	}
	return documents, nil
}

// withFragments appends the fragments that a document uses, once each.
func withFragments(files fs.FS, document string) (string, error) {
	used := regexp.MustCompile(`\.\.\.([A-Z]\w*)`)
	seen := map[string]bool{}
	for rest := document; rest != ""; {
		more := ""
		for _, match := range used.FindAllStringSubmatch(rest, -1) {
			if name := match[1]; !seen[name] {
				seen[name] = true
				text, err := fs.ReadFile(files, "queries/fragments/"+name+".graphql")
				if err != nil {
					return "", err
				}
				more += "\n" + string(text)
			}
		}
		document, rest = document+more, more
	}
	return document, nil
}

// answer is what GraphQL answers.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []*Error        `json:"errors"`
}

// Error is why GraphQL does not answer.
type Error struct {
	Message    string `json:"message"`
	Extensions struct {
		Code       string      `json:"code"`
		Hint       string      `json:"hint"`
		Field      string      `json:"field"`
		RequestID  string      `json:"requestId"`
		RetryAfter json.Number `json:"retryAfter"`
	} `json:"extensions"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Ask runs a document by its name and decodes its data. A document MUST NOT ask for what T lacks. The error
// of GraphQL is an *Error. Asked is empty where the document cannot be run at all.
func Ask[T any](ctx context.Context, r Runner, documents Documents, name string, variables map[string]any) (data T,
	asked Asked, err error) {
	document, known := documents[name]
	if !known {
		return data, asked, fmt.Errorf("no document %q", name)
	}
	raw, err := json.MarshalIndent(variables, "", "  ")
	if err != nil {
		return data, asked, fmt.Errorf("document %s: %w", name, err)
	}
	asked = Asked{name, document, visible(shownVariables(raw, variables))}
	err = run(ctx, r, document, raw, &data)
	var refused *Error
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("document %s: %w", name, err)
	}
	return data, asked, err
}

// run runs a document with variables as JSON, and decodes its data.
func run(ctx context.Context, r Runner, document string, variables []byte, data any) error {
	plain := map[string]any{} // numbers as over HTTP
	if err := json.Unmarshal(variables, &plain); err != nil {
		return err
	}
	body, err := r.Run(ctx, document, plain)
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return err
	}
	if len(a.Errors) > 0 {
		return a.Errors[0]
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(data)
}

// maxVariable bounds a text among the variables that a page shows, in bytes.
const maxVariable = 2048

// shownVariables returns variables as JSON with long texts cut: a pasted file is shown once, not three times.
func shownVariables(raw []byte, variables map[string]any) []byte {
	if len(raw) <= maxVariable {
		return raw
	}
	short := map[string]any{}
	for name, value := range variables {
		if text, isText := value.(string); isText && len(text) > maxVariable {
			value = strings.ToValidUTF8(text[:maxVariable], "") + "…"
		}
		short[name] = value
	}
	if cut, err := json.MarshalIndent(short, "", "  "); err == nil {
		return cut
	}
	return raw
}

// visible returns JSON with escapes in place of the characters that are not printable, which mean the same.
func visible(raw []byte) string {
	var out strings.Builder
	for _, r := range string(raw) {
		if r == '\n' || r == ' ' || strconv.IsPrint(r) && r <= 0xffff || r < 0x80 {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// Given returns the variables that have a value: an absent one means the default.
func Given(variables map[string]any) map[string]any {
	for name, value := range variables {
		if value == nil || value == "" {
			delete(variables, name)
		}
	}
	return variables
}
