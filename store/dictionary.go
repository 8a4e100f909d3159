package store

// dictionary caches the ids of interned tags and URIs.
type dictionary struct{}

func newDictionary() *dictionary { return &dictionary{} }
