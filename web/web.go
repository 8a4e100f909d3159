// Package web holds the pages for people as embedded files. They load nothing
// from elsewhere and put text from the API into the page as text only.
package web

import (
	"embed"
	"fmt"
	"path"
)

//go:embed *.html *.css *.js
var files embed.FS

// File gives a page or asset and its content type.
func File(name string) (body []byte, contentType string, err error) {
	types := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	}
	if body, err = files.ReadFile(name); err != nil {
		return nil, "", fmt.Errorf("page: %w", err)
	}
	return body, types[path.Ext(name)], nil
}

// Assets names the files that pages refer to as assets/NAME.
func Assets() []string {
	return []string{"repute.css", "index.js", "docs.js", "graphiql.js"}
}
