package query

import (
	"repute"
	"repute/store"
)

// cutField is store.HeadText that keeps which field was cut.
func cutField(text []byte, field string, cut *[]string, partial *bool) string {
	shown := store.HeadText(text, partial)
	if len(shown) < len(text) {
		*cut = append(*cut, field)
	}
	return shown
}

// cutURI is cutField of a URI behind which file is: what is denied is not shown in it.
func cutURI(uri []byte, file *repute.File, cut *[]string, partial *bool) string {
	return cutField([]byte(uriBeside(string(uri), file)), "uri", cut, partial)
}

// uriBeside is a URI as it is shown beside what is known of its file.
func uriBeside(uri string, file *repute.File) string {
	if file != nil && file.Status == repute.DocumentDenied {
		return store.WithoutContent(uri)
	}
	return uri
}
