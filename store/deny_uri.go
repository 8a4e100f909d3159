package store

import (
	"strings"

	"repute"
)

// withoutContent is what is shown of a URI whose document is denied. A data: URI is the
// document from its comma on, and JSON written where a URI belongs is nothing else.
func withoutContent(uri string) string {
	s := strings.TrimSpace(strings.TrimPrefix(uri, "\ufeff"))
	const scheme = "data:"
	switch {
	case strings.HasPrefix(s, "{"), strings.HasPrefix(s, "["):
		return ""
	case len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme):
		return uri
	}
	if comma := strings.IndexByte(s, ','); comma >= 0 {
		return s[:comma+1]
	}
	return scheme
}

// uriBeside is a URI as it is shown beside what is known of its file.
func uriBeside(uri string, file *repute.File) string {
	if file != nil && file.Status == repute.DocumentDenied {
		return withoutContent(uri)
	}
	return uri
}
