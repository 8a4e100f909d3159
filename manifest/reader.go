package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// Bounds of the typed fields, in bytes and entries. They keep a hostile document
// from growing indexes and answers; the stored bytes stay whole.
const (
	maxShort    = 256
	maxName     = 1 << 10
	maxText     = 16 << 10
	maxURL      = 8 << 10
	maxDocument = 16 << 20 // no limit of its own
	maxServices = 256
	maxSkills   = 256
	maxLinks    = 1024
	maxTrust    = 64
	maxProblems = 100
	maxExtra    = 64 << 10 // of all unknown members together
)

// Areas: the second letter of a code says what the document was read as.
const (
	areaAgent    = 'A'
	areaFeedback = 'F'
	areaCard     = 'C'
)

// reader collects the problems of one document.
type reader struct {
	area     byte
	problems []repute.Problem
	extra    int // bytes of unknown members kept
	wallets  []walletAt
}

// add notes a problem. Messages quote the document, so they are cleaned as well.
func (r *reader) add(code, path, format string, args ...any) {
	switch {
	case r.full():
		return
	case len(r.problems) == maxProblems:
		code, path, format, args = CodeMore, "", "more than %d problems", []any{maxProblems}
	}
	r.problems = append(r.problems, repute.Problem{
		Code:     inArea(code, r.area),
		Severity: repute.SeverityOf(code),
		Path:     jsonwalk.Clean(jsonwalk.Cut(path, maxShort)),
		Message:  jsonwalk.Clean(jsonwalk.Cut(fmt.Sprintf(format, args...), maxShort)),
	})
}

// full tells that what would be added is left out.
func (r *reader) full() bool { return len(r.problems) > maxProblems }

// inArea is a code as it is written for another kind of document.
func inArea(code string, area byte) string { return code[:1] + string(area) + code[2:] }

// object is a JSON object that is being read. What was read is no longer Extra.
type object struct {
	r       *reader
	path    string
	members []member
}

// at returns the JSON pointer of a member, for problems.
func (o *object) at(name string) string { return o.path + "/" + jsonwalk.Pointer(name) }

// find returns a member by its exact name; nil when the object has none.
func (o *object) find(name string) *member {
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

// take finds a member under its own name or else under one of its other spellings
// and tells which. Null counts as absent.
func (o *object) take(name string, aliases ...string) (json.RawMessage, string) {
	var raw json.RawMessage
	found := ""
	for _, spelling := range append([]string{name}, aliases...) {
		m := o.find(spelling)
		switch {
		case m == nil:
		case found != "":
			o.r.add(CodeAliasIgnored, o.at(spelling), "%q is read instead", found)
		case string(m.raw) == "null":
			m.used = true
		default:
			m.used, raw, found = true, m.raw, spelling
		}
	}
	return raw, found
}

// takeAlias is take that reports another spelling.
func (o *object) takeAlias(name string, aliases ...string) (json.RawMessage, string) {
	raw, found := o.take(name, aliases...)
	if found != "" && found != name {
		o.r.add(CodeAlias, o.at(found), "read as %q", name)
	}
	return raw, found
}

// text reads a string, also from a number, cut to the limit.
func (o *object) text(name string, limit int) string {
	raw, found := o.takeAlias(name)
	if found == "" {
		return ""
	}
	return o.r.string(raw, o.at(found), limit)
}

// url reads a URL. One that is too long is dropped: cut, it would lead elsewhere.
func (o *object) url(name string, aliases ...string) string {
	s, _ := o.urlAt(name, aliases...)
	return s
}

// urlAt is url that tells where it stood.
func (o *object) urlAt(name string, aliases ...string) (text, path string) {
	raw, found := o.takeAlias(name, aliases...)
	if found == "" {
		return "", ""
	}
	s := o.r.string(o.inner(raw, found), o.at(found), maxDocument)
	if len(s) > maxURL {
		o.r.add(CodeTooLong, o.at(found), "%d bytes, dropped", len(s))
		return "", ""
	}
	return s, o.at(found)
}

// inner is the URL in {"url": …} or in a list that starts with it, as DID documents
// have, and anything else as it is.
func (o *object) inner(raw json.RawMessage, found string) json.RawMessage {
	inside := raw
	switch jsonwalk.Type(raw) {
	case "an object":
		wrapped := &object{members: membersOf(raw)}
		inside = wrapped.firstString("url", "uri", "endpoint", "href")
	case "an array":
		if list := jsonwalk.Elements(raw); len(list) > 0 && jsonwalk.Type(list[0]) == "a string" {
			inside = list[0]
		}
	default:
		return raw
	}
	o.keep(found)
	if jsonwalk.Type(inside) != "a string" {
		return raw
	}
	o.r.add(CodeWrongType, o.at(found), "%s instead of a string", jsonwalk.Type(raw))
	return inside
}

// firstString is the first of these members that is a string, nil without.
func (o *object) firstString(names ...string) json.RawMessage {
	for _, name := range names {
		if m := o.find(name); m != nil && jsonwalk.Type(m.raw) == "a string" {
			m.used = true
			return m.raw
		}
	}
	return nil
}

// flag reads true, false, {"enabled": bool}, {"supported": bool} and the text forms
// of a boolean.
func (o *object) flag(name string, aliases ...string) *bool {
	raw, found := o.takeAlias(name, aliases...)
	if found == "" {
		return nil
	}
	var v bool
	if json.Unmarshal(raw, &v) == nil {
		return &v
	}
	o.r.add(CodeWrongType, o.at(found), "%s instead of a boolean", jsonwalk.Type(raw))
	if jsonwalk.Type(raw) == "an object" {
		return o.wrappedFlag(raw, found)
	}
	if v, err := strconv.ParseBool(strings.Trim(string(raw), `"`)); err == nil {
		return &v
	}
	return nil
}

// wrappedFlag reads {"enabled": bool} or {"supported": bool}. What else stands in it
// is kept.
func (o *object) wrappedFlag(raw json.RawMessage, found string) *bool {
	var wrapped struct{ Enabled, Supported *bool }
	if json.Unmarshal(raw, &wrapped) != nil || len(membersOf(raw)) > 1 {
		o.keep(found)
	}
	if wrapped.Enabled != nil {
		return wrapped.Enabled
	}
	return wrapped.Supported
}

// keep puts a member into Extra although it was read: not all of it could be.
func (o *object) keep(name string) {
	if m := o.find(name); m != nil {
		m.used = false
	}
}

// texts reads a list of strings.
func (o *object) texts(limit int, name string, aliases ...string) []string {
	raw, found := o.takeAlias(name, aliases...)
	if found == "" {
		return nil
	}
	return o.stringsAt(raw, found, limit)
}

// stringsAt reads a list of strings and keeps it whole as well when there is more in
// it than strings.
func (o *object) stringsAt(raw json.RawMessage, name string, limit int) []string {
	for _, e := range jsonwalk.Elements(raw) {
		if kind := jsonwalk.Type(e); kind == "an object" || kind == "an array" {
			o.keep(name)
			break
		}
	}
	return o.r.strings(raw, o.at(name), limit)
}

// objects opens a list of objects. A lone object is a list of one; what is no object
// is reported and left out.
func (o *object) objects(limit int, name string, aliases ...string) []*object {
	raw, found := o.takeAlias(name, aliases...)
	if found == "" {
		return nil
	}
	path := o.at(found)
	list := jsonwalk.Elements(raw)
	if jsonwalk.Type(raw) != "an array" {
		o.r.add(CodeWrongType, path, "%s instead of an array", jsonwalk.Type(raw))
		list = []json.RawMessage{raw}
	}
	if len(list) > limit {
		o.r.add(CodeTooMany, path, "%d entries, cut to %d", len(list), limit)
		list = list[:limit]
	}
	var out []*object
	for i, e := range list {
		at := path + "/" + strconv.Itoa(i)
		if jsonwalk.Type(e) != "an object" {
			o.r.add(CodeWrongType, at, "%s instead of an object", jsonwalk.Type(e))
			continue
		}
		out = append(out, &object{r: o.r, path: at, members: membersOf(e)})
	}
	return out
}

// child opens the object under a name. One without members stands for none, so that
// it can be read without asking.
func (o *object) child(name string, aliases ...string) *object {
	raw, found := o.takeAlias(name, aliases...)
	c := &object{r: o.r, path: o.at(found)}
	switch {
	case found == "":
	case jsonwalk.Type(raw) != "an object":
		o.r.add(CodeWrongType, o.at(found), "%s instead of an object", jsonwalk.Type(raw))
		o.keep(found)
	default:
		c.members = membersOf(raw)
	}
	return c
}

// keepUnread keeps a member whole when something in it was not read.
func (o *object) keepUnread(name string, parts ...*object) {
	for _, part := range parts {
		if slices.ContainsFunc(part.members, func(m member) bool { return !m.used }) {
			o.keep(name)
			return
		}
	}
}

// rest gives the members nobody read, as far as there is room for them.
func (o *object) rest() map[string]json.RawMessage {
	var extra map[string]json.RawMessage
	for _, m := range o.members {
		if m.used {
			continue
		}
		if size := len(m.name) + len(m.raw); size > maxExtra-o.r.extra {
			o.r.add(CodeTooLong, o.at(m.name), "%d bytes of an unknown member, dropped", size)
			continue
		}
		o.r.extra += len(m.name) + len(m.raw)
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[jsonwalk.Clean(m.name)] = bytes.Clone(m.raw) // not to hold the whole document
	}
	return extra
}

// string reads a string or a number as text.
func (r *reader) string(raw json.RawMessage, path string, limit int) string {
	var s string
	switch kind := jsonwalk.Type(raw); kind {
	case "a string":
		if err := json.Unmarshal(raw, &s); err != nil {
			return ""
		}
	case "a number":
		r.add(CodeWrongType, path, "a number instead of a string")
		s = string(raw)
	default:
		r.add(CodeWrongType, path, "%s instead of a string", kind)
		return ""
	}
	if s = jsonwalk.Clean(s); len(s) > limit {
		r.add(CodeTooLong, path, "%d bytes, cut to %d", len(s), limit)
		s = jsonwalk.Cut(s, limit)
	}
	return s
}

// strings reads a list of strings; objects give their id or name, as skills of an
// A2A card do. A lone string is a list whose entries are separated by commas.
func (r *reader) strings(raw json.RawMessage, path string, limit int) []string {
	list := jsonwalk.Elements(raw)
	if list == nil && jsonwalk.Type(raw) != "an array" {
		r.add(CodeWrongType, path, "%s instead of an array", jsonwalk.Type(raw))
		list = commaList(raw)
	}
	if len(list) > limit {
		r.add(CodeTooMany, path, "%d entries, cut to %d", len(list), limit)
		list = list[:limit]
	}
	var out []string
	for i, e := range list {
		at := path + "/" + strconv.Itoa(i)
		if jsonwalk.Type(e) == "an object" {
			o := &object{r: r, path: at, members: membersOf(e)}
			r.add(CodeWrongType, at, "an object instead of a string")
			if e = o.firstString("id", "name", "type", "protocol", "model"); e == nil {
				continue
			}
		}
		if s := r.string(e, at, maxShort); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// commaList splits a JSON string at its commas; any other value is its only entry.
func commaList(raw json.RawMessage) []json.RawMessage {
	var text string
	if jsonwalk.Type(raw) != "a string" || json.Unmarshal(raw, &text) != nil {
		return []json.RawMessage{raw}
	}
	var list []json.RawMessage
	for part := range strings.SplitSeq(text, ",") {
		if entry, err := json.Marshal(strings.TrimSpace(part)); err == nil {
			list = append(list, entry)
		}
	}
	return list
}

// shortName returns the name of a member as a text of the result.
func shortName(name string) string { return jsonwalk.Clean(jsonwalk.Cut(name, maxShort)) }

// isURL reports whether the text is an absolute URL of any scheme.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "")
}

// isHTTPS reports whether the text is an https URL with a host.
func isHTTPS(s string) bool {
	u, err := url.Parse(s)
	return err == nil && strings.EqualFold(u.Scheme, "https") && u.Host != ""
}
