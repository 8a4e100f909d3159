package subgraphdb

import (
	"encoding/json"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

// Most fields of a registration file are of its services. Rows have the list of services once, and the fields are taken
// from it here: computing them in SQL, as filters and orders do, is a large part of the cost of a page. Registrants
// choose how long the list is, so rows have the fields themselves, computed in SQL, where it is longer than
// maxServices.

// maxServices is how many bytes of a list of services a row holds.
const maxServices = "4096"

// services returns the SQL of what the columns of a row that are fields of services are taken from: the list of
// services of the file, or an object with the fields by name where the list is long.
func services(columns []*Field) string {
	var fields []string
	for _, c := range columns {
		if c.services != nil {
			sql := "(" + c.SQL + ")"
			if c.Type == String && !c.List {
				sql = "left(" + sql + ", " + maxText + ")"
			}
			fields = append(fields, "'"+c.Name+"', "+sql)
		}
	}
	return "(select case when octet_length(s.list) > " + maxServices + " then jsonb_build_object(" +
		strings.Join(fields, ", ") +
		")::text else s.list end from (select ({p}.content -> 'services')::text as list offset 0) s)"
}

// servicesCell is what services reads of a row.
type servicesCell struct {
	list   []service
	fields map[string]json.RawMessage // nil where list counts
}

// decodeServices decodes what services reads, which is absent for files without services. Names are in lower case.
func decodeServices(v any) (c servicesCell, err error) {
	text, present := v.(string)
	switch {
	case !present:
		return c, nil
	case strings.HasPrefix(text, "{"):
		err = json.Unmarshal([]byte(text), &c.fields)
	default:
		err = jsonv2.Unmarshal([]byte(text), &c.list)
	}
	if err != nil {
		return c, fmt.Errorf("services: %w", err)
	}
	for i := range c.list {
		c.list[i].Name = strings.ToLower(c.list[i].Name)
	}
	return c, nil
}

// cell returns the value of a field.
func (c servicesCell) cell(f *Field) (any, error) {
	if c.fields == nil {
		return f.services(c.list), nil
	}
	if f.List {
		out := []string{}
		err := json.Unmarshal(c.fields[f.Name], &out)
		return out, err
	}
	var out any
	err := json.Unmarshal(c.fields[f.Name], &out)
	return out, err
}

// service is a service of a stored registration file.
type service struct {
	Name      string   `json:"name"`
	Endpoint  *string  `json:"endpoint"`
	Version   *string  `json:"version"`
	Skills    []string `json:"skills"`
	Domains   []string `json:"domains"`
	Tools     []string `json:"tools"`
	Prompts   []string `json:"prompts"`
	Resources []string `json:"resources"`
}

// text returns a member that is a text, nil where it is absent.
func (s *service) text(member string) *string {
	if member == "version" {
		return s.Version
	}
	return s.Endpoint
}

// list returns a member that is a list.
func (s *service) list(member string) []string {
	switch member {
	case "skills":
		return s.Skills
	case "domains":
		return s.Domains
	case "tools":
		return s.Tools
	case "prompts":
		return s.Prompts
	}
	return s.Resources
}

// lastOf returns how a member is taken of the last service of a name that has it: a text, nil without one.
func lastOf(name, member string) func([]service) any {
	return func(list []service) any {
		for i := len(list) - 1; i >= 0; i-- {
			if text := list[i].text(member); text != nil && list[i].Name == name {
				return firstCharacters(*text)
			}
		}
		return nil
	}
}

// allOf returns how the elements of a member are taken of all services of a name.
func allOf(name, member string) func([]service) any {
	return func(list []service) any { return elementsOf(list, name, member) }
}

// elementsOf returns the elements of a member of all services of a name.
func elementsOf(list []service, name, member string) []string {
	out := []string{}
	for i := range list {
		if list[i].Name == name {
			out = append(out, list[i].list(member)...)
		}
	}
	return out
}

// firstCharacters returns as much of a text as rows have.
func firstCharacters(s string) string {
	if len(s) <= maxCharacters {
		return s
	}
	if all := []rune(s); len(all) > maxCharacters {
		return string(all[:maxCharacters])
	}
	return s
}
