package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every key of the configuration stands in an example of the documentation, below its
// section.
func TestDocsNameEveryKey(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	var examples []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			examples = append(examples, m[1])
		}
	}
	for f := range reflect.TypeFor[config]().Fields() {
		section := f.Tag.Get("yaml")
		if section == "" {
			continue
		}
		var about strings.Builder
		for _, e := range examples {
			if regexp.MustCompile(`(?m)^` + section + ":").MatchString(e) {
				about.WriteString(e)
			}
		}
		if about.Len() == 0 {
			t.Errorf("no example has the key %s", section)
			continue
		}
		missingKeys(t, section, f.Type, about.String())
	}
}

// missingKeys tells which keys below a section its examples do not have.
func missingKeys(t *testing.T, path string, typ reflect.Type, examples string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct {
		return
	}
	for f := range typ.Fields() {
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		if !regexp.MustCompile(`(?m)(^|[\s{,])` + key + ":").MatchString(examples) {
			t.Errorf("no example has the key %s.%s", path, key)
		}
		missingKeys(t, path+"."+key, f.Type, examples)
	}
}
