package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

// asked is a document that a page ran, as "show query" shows it.
type asked struct {
	Name, Document, Variables string
}

// readDocuments reads the documents of the folder queries. A document ends with the fragments that it uses, each of
// which is a file of the folder queries/fragments.
func readDocuments() (map[string]string, error) {
	names, err := fs.Glob(files, "queries/*.graphql")
	if err != nil {
		return nil, fmt.Errorf("queries: %w", err)
	}
	documents := map[string]string{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("queries: %w", err)
		}
		document, err := withFragments(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		documents[strings.TrimSuffix(path.Base(name), ".graphql")] = document
	}
	return documents, nil
}

// withFragments appends the fragments that a document uses, once each.
func withFragments(document string) (string, error) {
	used := regexp.MustCompile(`\.\.\.([A-Z]\w*)`)
	seen := map[string]bool{}
	for rest := document; rest != ""; {
		more := ""
		for _, match := range used.FindAllStringSubmatch(rest, -1) {
			if name := match[1]; !seen[name] {
				seen[name] = true
				text, err := files.ReadFile("queries/fragments/" + name + ".graphql")
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
	Errors []*queryError   `json:"errors"`
}

// queryError is why GraphQL does not answer.
type queryError struct {
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
func (e *queryError) Error() string { return e.Message }

// ask runs a document and decodes its data. A document MUST ask for what T has and nothing else. The error of GraphQL is
// a *queryError.
func ask[T any](ctx context.Context, s *site, p *page, name string, variables map[string]any) (data T, err error) {
	document, known := s.documents[name]
	if !known {
		return data, fmt.Errorf("no document %q", name)
	}
	raw, err := json.MarshalIndent(variables, "", "  ")
	if err != nil {
		return data, fmt.Errorf("document %s: %w", name, err)
	}
	p.Asked = append(p.Asked, asked{name, document, visible(shownVariables(raw, variables))})
	plain := map[string]any{} // numbers as over HTTP
	if err := json.Unmarshal(raw, &plain); err != nil {
		return data, fmt.Errorf("document %s: %w", name, err)
	}
	body, err := s.o.GraphQL.Run(ctx, document, plain)
	if err != nil {
		return data, fmt.Errorf("document %s: %w", name, err)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return data, fmt.Errorf("document %s: %w", name, err)
	}
	if len(a.Errors) > 0 {
		return data, a.Errors[0]
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&data); err != nil {
		return data, fmt.Errorf("document %s: %w", name, err)
	}
	return data, nil
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

// given returns the variables that have a value: an absent one means the default.
func given(variables map[string]any) map[string]any {
	for name, value := range variables {
		if value == nil || value == "" {
			delete(variables, name)
		}
	}
	return variables
}
