package subgraphdb

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Most fields of a registration file are of its services. Rows have the list of services once, and the fields are taken
// from it here: computing them in SQL, as filters and orders do, is a large part of the cost of a page.

// services is the SQL of the list of services of a file.
const services = "({p}.content -> 'services')::text"

// service is a service of a stored registration file.
type service struct {
	Name                                       string
	Endpoint, Version                          *string
	Skills, Domains, Tools, Prompts, Resources []string
}

// decodeServices decodes the list of services of a row, which is absent where there are none. Names are in lower case.
func decodeServices(v any) (list []service, err error) {
	if text, present := v.(string); present {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("services: %w", err)
		}
	}
	for i := range list {
		list[i].Name = strings.ToLower(list[i].Name)
	}
	return list, nil
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
