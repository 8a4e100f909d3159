package manifest

import (
	"encoding/json"
	"strconv"

	"repute"
	"repute/internal/jsonwalk"
)

// services reads the list under either name and in every shape seen: an array of
// objects, an object by name, one lone service.
func (r *reader) services(o *object) []repute.Service {
	raw, found := o.take("services", "endpoints")
	path := o.at(found)
	switch {
	case found == "":
		return nil
	case found == "endpoints":
		r.add(CodeLegacyEndpoints, path, "endpoints is now services")
	}
	var entries []member // those of a list have their place as a name
	kind := jsonwalk.Type(raw)
	switch kind {
	case "an array":
		for i, e := range jsonwalk.Elements(raw) {
			entries = append(entries, member{name: strconv.Itoa(i), raw: e})
		}
	case "an object":
		entries = membersOf(raw)
		fallthrough
	default:
		r.add(CodeServiceShape, path, "%s instead of an array", kind)
	}
	if len(entries) > maxServices {
		r.add(CodeTooMany, path, "%d services, cut to %d", len(entries), maxServices)
		entries = entries[:maxServices]
	}
	var out []repute.Service
	for _, e := range entries {
		name := "" // an object names its services
		if kind == "an object" {
			name = shortName(e.name)
		}
		if s, ok := r.service(e.raw, path+"/"+jsonwalk.Pointer(e.name), name); ok {
			out = append(out, s)
		}
	}
	return out
}

// service reads one entry; name is the key it stood under, if any.
func (r *reader) service(raw json.RawMessage, path, name string) (repute.Service, bool) {
	switch kind := jsonwalk.Type(raw); kind {
	case "an object":
		return r.serviceObject(&object{r: r, path: path, members: membersOf(raw)}, name), true
	case "a string":
		r.add(CodeServiceText, path, "a string instead of an object")
		s := textService(r.string(raw, path, maxURL), name)
		r.endpoint(s.Name, s.Endpoint, path)
		return s, true
	default:
		r.add(CodeWrongType, path, "%s instead of a service", kind)
		return repute.Service{}, false
	}
}

// textService returns a service that is given as a bare string: an endpoint if it is a URL or has
// a name from elsewhere, else a name without an endpoint.
func textService(s, name string) repute.Service {
	if isURL(s) || name != "" {
		return repute.Service{Name: name, Endpoint: s}
	}
	return repute.Service{Name: jsonwalk.Cut(s, maxShort)}
}

// serviceObject reads the standard's members and the spellings of DID documents
// (id, serviceEndpoint), of agent cards (type, url) and of OpenFi (kind, url).
func (r *reader) serviceObject(o *object, name string) repute.Service {
	s := repute.Service{Name: name}
	if name == "" {
		s.Name = o.firstText("name", "type", "kind", "id")
	}
	var at string
	s.Endpoint, at = o.urlAt("endpoint", "url", "uri", "serviceEndpoint")
	r.endpoint(s.Name, s.Endpoint, at)
	s.Version = o.version()
	s.Skills = o.silentTexts("skills", "a2aSkills")
	s.Domains = o.silentTexts("domains")
	s.Tools = o.silentTexts("mcpTools", "tools")
	s.Prompts = o.silentTexts("mcpPrompts", "prompts")
	s.Resources = o.silentTexts("mcpResources", "resources")
	if isOASF(s.Name) {
		r.oasf(s.Skills, o.at("skills"), s.Domains, o.at("domains"))
	}
	s.Extra = o.rest()
	o.misspelled([]string{"name", "endpoint", "version", "skills", "domains", "mcpTools", "mcpPrompts", "mcpResources",
		"a2aSkills"},
		"type", "kind", "id", "url", "uri", "serviceEndpoint", "tools", "prompts", "resources")
	if s.Name == "" {
		r.add(CodeServiceNoName, o.path, "no name")
	}
	if s.Endpoint == "" {
		r.add(CodeServiceNoURL, o.path, "no endpoint")
	}
	return s
}

// firstText is the first spelling that holds a string. The others are members in
// their own right, so they stay.
func (o *object) firstText(spellings ...string) string {
	for i, name := range spellings {
		m := o.find(name)
		if m == nil || jsonwalk.Type(m.raw) != "a string" {
			continue
		}
		if i > 0 {
			o.r.add(CodeAlias, o.at(name), "read as %q", spellings[0])
		}
		m.used = true
		return o.r.string(m.raw, o.at(name), maxShort)
	}
	return ""
}

// version is a string by the standard; a number says the same.
func (o *object) version() string {
	raw, found := o.take("version")
	if found == "" {
		return ""
	}
	return o.r.string(raw, o.at(found), maxShort)
}

// silentTexts reads lists whose other names are taught beside the standard.
func (o *object) silentTexts(names ...string) []string {
	list, _ := o.firstTexts(names...)
	return list
}

// firstTexts reads the first spelling that holds texts, and returns which one that is.
func (o *object) firstTexts(spellings ...string) (list []string, found string) {
	for _, name := range spellings {
		if m := o.find(name); m != nil && holdsTexts(m.raw) {
			m.used = true
			return o.stringsAt(m.raw, name, maxSkills), name
		}
	}
	return nil, ""
}

// holdsTexts reports whether a value is a list, or a string that holds one.
func holdsTexts(raw json.RawMessage) bool {
	kind := jsonwalk.Type(raw)
	return kind == "an array" || kind == "a string"
}
