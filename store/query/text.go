package query

import (
	"repute"
	"repute/store/column"
)

// cutField is column.HeadText that adds field to cut when the text was cut.
func cutField(text []byte, field string, cut *[]string, partial *bool) string {
	shown := column.HeadText(text, partial)
	if len(shown) < len(text) {
		*cut = append(*cut, field)
	}
	return shown
}

// cutURI is cutField for the URI of file: nothing denied is shown in it.
func cutURI(uri []byte, file *repute.File, cut *[]string, partial *bool) string {
	if file != nil && file.Status == repute.DocumentDenied {
		uri = []byte(column.WithoutContent(string(uri)))
	}
	return cutField(uri, "uri", cut, partial)
}
