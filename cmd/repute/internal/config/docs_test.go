package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the reference pages instead of comparing them")

// maxKeys bounds the configuration: each key must have a reason to be changed by an operator.
const maxKeys = 50

// docs/reference/configuration.md has every key of the configuration with its meaning, which
// is the comment of its field.
func TestConfigurationReference(t *testing.T) {
	r := reference{comments: fieldComments(t)}
	r.WriteString(configurationHead)
	r.section(t, reflect.TypeFor[Config](), reflect.ValueOf(defaults()), "")
	if r.keys > maxKeys {
		t.Errorf("the configuration has %d keys, %d are allowed", r.keys, maxKeys)
	}
	compareReference(t, "configuration.md", r.String())
}

const configurationHead = `# Configuration

Made from the program by ` + "`go test ./cmd/repute/internal/config -run Reference -update`" + `. The keys of the YAML file
that ` + "`--config`" + ` or ` + "`REPUTE_CONFIG`" + ` names. Flags win over the environment, the environment over the file, the file
over defaults. How to use them: [operations](../how-to/operations.md).
`

// reference is a page while it is written.
type reference struct {
	strings.Builder
	comments map[string]string // of fields, by Type.Field
	keys     int
}

// section writes the keys of one group, and then its groups.
func (r *reference) section(t *testing.T, typ reflect.Type, value reflect.Value, path string) {
	title := "Top level"
	if path != "" {
		title = "`" + strings.TrimSuffix(path, ".") + "`"
	}
	fmt.Fprintf(r, "\n## %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	var groups []func()
	for f := range typ.Fields() {
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.Name() != "validators" {
			below := path + key + "."
			zero := reflect.Zero(inner)
			if f.Type == inner {
				zero = value.FieldByIndex(f.Index)
			} else {
				below = path + key + "[]."
			}
			groups = append(groups, func() { r.section(t, inner, zero, below) })
			continue
		}
		r.keys++
		text := r.comments[typ.Name()+"."+f.Name]
		if text == "" {
			t.Errorf("%s.%s has no comment", typ.Name(), f.Name)
		}
		fmt.Fprintf(r, "| `%s` | %s | %s | %s |\n", key, kindOfKey(f.Type),
			defaultOf(value.FieldByIndex(f.Index)), text)
	}
	for _, group := range groups {
		group()
	}
}

// kindOfKey names the form of a value.
func kindOfKey(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[time.Duration]():
		return "duration"
	case typ == reflect.TypeFor[URLs](), typ == reflect.TypeFor[validators]():
		return "text or list"
	case typ == reflect.TypeFor[keyRef]():
		return "key"
	case typ.Kind() == reflect.Slice:
		return "list"
	case typ.Kind() == reflect.Map && typ.Elem() == reflect.TypeFor[keyRef]():
		return "map to keys"
	case typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Slice:
		return "map to lists"
	case typ.Kind() == reflect.Map:
		return "map"
	case typ.Kind() == reflect.Bool:
		return "true or false"
	case typ.Kind() == reflect.String:
		return "text"
	}
	return "number"
}

// defaultOf is a default as the file would have it, empty for none. The directory depends on
// the user.
func defaultOf(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case []string:
		if len(x) == 0 {
			return ""
		}
		return "`[" + strings.Join(x, ", ") + "]`"
	case time.Duration:
		return "`" + x.String() + "`"
	case string:
		if x == dataDir() {
			return "`/var/lib/repute` for root, else `repute` in the user's cache"
		}
	}
	if v.IsZero() {
		return ""
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// fieldComments reads the comments of all fields of this package.
func fieldComments(t *testing.T) map[string]string {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, isType := n.(*ast.TypeSpec)
			if !isType {
				return true
			}
			if fields, isStruct := spec.Type.(*ast.StructType); isStruct {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						out[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return out
}

// compareReference compares a page of docs/reference with what it must be.
func compareReference(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("../../../../docs/reference", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != want {
		t.Errorf("%s is not what the program has (%v): run go test ./cmd/repute/internal/config -run Reference -update",
			path, err)
	}
}
