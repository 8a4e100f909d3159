package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/web/failure"
	"repute/web/query"
)

// maxFormMemory bounds what of a posted form is held in memory, in bytes; the server bounds the whole body below it.
const maxFormMemory = 1 << 20

// fileProblem is what is wrong with a file.
type fileProblem struct {
	Code, Severity, Path, Message string
	Hint                          *string
	Line, Column                  *int64
}

// checkedFile is a file with its problems and the lines around them.
type checkedFile struct {
	Kind                          string
	Name                          *string
	Size, Errors, Warnings, Infos int64
	SHA256                        string
	Problems                      []fileProblem
	Lines                         []struct {
		Number int64
		Text   string
		Cut    bool
	}
}

// checkedLine is a line of a file with what is wrong in it.
type checkedLine struct {
	Number   int64
	Text     string
	Cut      bool
	Problems []fileProblem
	// Gap reports that lines before it are left out.
	Gap bool
}

// AnnotatedLines returns the lines, each with its problems.
func (f checkedFile) AnnotatedLines() (list []checkedLine) {
	last := int64(0)
	for _, l := range f.Lines {
		line := checkedLine{Number: l.Number, Text: l.Text, Cut: l.Cut, Gap: l.Number > last+1}
		for _, p := range f.Problems {
			if p.Line != nil && *p.Line == l.Number {
				line.Problems = append(line.Problems, p)
			}
		}
		list, last = append(list, line), l.Number
	}
	return list
}

// Whole returns the problems of the file as a whole.
func (f checkedFile) Whole() (list []fileProblem) {
	for _, p := range f.Problems {
		if p.Line == nil {
			list = append(list, p)
		}
	}
	return list
}

// fileKinds are the kinds of files that can be checked.
func fileKinds() []option {
	return []option{{"auto", "what the content shows"}, {"registration", "registration file"},
		{"agentJson", "agent.json"},
		{"oaf", "AGENTS.md (Open Agent Format)"}, {"card", "A2A agent card"}, {"feedback", "feedback file"}}
}

// formOf returns the fields of a posted form; nil where nothing was posted. A form that cannot be read is
// repute.ErrInvalid.
func formOf(c echo.Context) (form url.Values, err error) {
	if r := c.Request(); r.Method == http.MethodPost {
		if err := r.ParseMultipartForm(maxFormMemory); err != nil {
			return nil, repute.Invalid("form", "cannot be read: "+err.Error(),
				"a whole body of the type multipart/form-data")
		}
		form = r.MultipartForm.Value
	}
	return form, nil
}

// pasted returns the content of a posted file with the line ends of files: a browser sends each as CR LF, so that size
// and hash would not be those of the file.
func pasted(form url.Values) string {
	return strings.ReplaceAll(form.Get("content"), "\r\n", "\n")
}

// check shows what is wrong with a file that was posted, or that is read from a posted URL. A link alone reads nothing.
func (s *site) check(ctx context.Context, p *page) (string, error) {
	p.Title = "Check a file"
	if p.FormErr != nil {
		return "", p.FormErr
	}
	body := struct {
		Kinds              []option
		Kind, Content, URL string
		File               *checkedFile
		Why                *failure.Text
	}{Kinds: fileKinds(), Kind: p.Form.Get("kind"), Content: pasted(p.Form), URL: strings.TrimSpace(p.Form.Get("url"))}
	if p.Form == nil {
		body.Kind, body.URL = p.Query.Get("kind"), p.Query.Get("url")
	}
	variables := map[string]any{"kind": body.Kind}
	if strings.TrimSpace(body.Content) != "" {
		variables["content"], body.URL = body.Content, ""
	} else {
		variables["url"] = body.URL
	}
	if variables = query.Given(variables); p.Form != nil && (variables["content"] != nil || variables["url"] != nil) {
		f, err := ask[struct{ CheckFile checkedFile }](ctx, s, p, "check_file", variables)
		if err != nil {
			why := failure.Of(err)
			body.Why, p.Status, p.Retry = &why, why.Status, why.Retry
		} else {
			body.File = &f.CheckFile
		}
	}
	p.Body = body
	return "check", nil
}
