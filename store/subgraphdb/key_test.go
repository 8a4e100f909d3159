package subgraphdb

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestIDsOfKeys: an id names the key that it was made of, and no other text does.
func TestIDsOfKeys(t *testing.T) {
	t.Parallel()
	entities := Entities().All()
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(entities).Draw(t, "entity")
		key := Value{}
		for _, p := range e.Key.Parts {
			switch p.Form {
			case FormNumber:
				key = append(key, rapid.StringMatching(`0|[1-9][0-9]{0,60}`).Draw(t, "number"))
			case FormText:
				key = append(key, []byte(rapid.StringMatching(`[a-z:%]{0,9}`).Draw(t, "text")))
			case FormHex:
				key = append(key, rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(t, "bytes"))
			case FormOptional:
				key = append(key, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
			}
		}
		id := e.Key.Format(8453, key)
		got, ok := e.Key.Parse(8453, id)
		if !ok || e.Key.Fixed == "" && !reflect.DeepEqual(got, key) {
			t.Fatalf("%s %s: %v %v", e.Name, id, got, ok)
		}
		if e.Key.Fixed != "" {
			return
		}
		other := rapid.SampledFrom([]string{"", "0", " " + id, "1" + id, id + "\x00", ":" + id,
			strings.ToUpper(id) + "!"}).Draw(t, "other")
		if v, ok := e.Key.Parse(8453, other); ok && e.Key.Format(8453, v) != other {
			t.Fatalf("%s: %q is taken for %v", e.Name, other, v)
		}
	})
}

// TestTable: each field is complete, and references name what exists.
func TestTable(t *testing.T) {
	t.Parallel()
	s := Entities()
	for _, e := range s.All() {
		if e.ID().Name != "id" || e.Where == "" || e.Changed == "" || !strings.Contains(e.Where, "$1") {
			t.Errorf("%s is incomplete", e.Name)
		}
		for i := range e.Fields {
			f := &e.Fields[i]
			if e.Field(f.Name) != f {
				t.Errorf("%s.%s is there twice", e.Name, f.Name)
			}
			to := s.Entity(f.To)
			switch {
			case f.Scalar() && f != e.ID() && (f.SQL == "" || f.Type == ""), !f.Scalar() && to == nil:
				t.Errorf("%s.%s is incomplete", e.Name, f.Name)
			case f.One() && len(f.Key) != len(to.Key.Parts):
				t.Errorf("%s.%s: the key of %s has %d parts", e.Name, f.Name, to.Name, len(to.Key.Parts))
			case f.Many() && f.Back != "" && to.Field(f.Back).To != e.Name:
				t.Errorf("%s.%s does not refer back", e.Name, f.Name)
			}
		}
	}
}
