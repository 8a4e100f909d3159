package oafagent

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// looksLikePath reports whether a text has a form that is hardly anything else than a path: a separator alone, and the
// escape that begins many regular expressions, are something else.
func looksLikePath(text string) bool {
	return regexp.MustCompile(`^(/.|\\[^A-Za-z]|~[A-Za-z0-9._-]*(/|$)|\.\.?[/\\]|\.\.$|[A-Za-z]:[/\\]|(?i:file):)`).
		MatchString(text)
}

// readingsOf returns the paths as which servers may read a text: a URI, with its host and without, one that is encoded,
// also again, and one with backslashes.
func readingsOf(text string) (out []string) {
	out = []string{text}
	isScheme := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+$`).MatchString
	if scheme, rest, ok := strings.Cut(text, ":"); ok && isScheme(scheme) {
		rest = strings.TrimPrefix(rest, "//")
		host, below, _ := strings.Cut(rest, "/")
		switch {
		case !strings.EqualFold(scheme, "file"):
			out = append(out, rest, "/"+below)
		case strings.EqualFold(host, "localhost"):
			out = []string{"/" + below}
		default:
			out = []string{rest, "/" + below}
		}
	}
	for _, r := range out {
		for range 3 {
			decoded := unescape(r)
			if decoded == r {
				break
			}
			out, r = append(out, decoded), decoded
		}
	}
	for _, r := range out {
		if slashed := strings.ReplaceAll(r, `\`, "/"); slashed != r {
			out = append(out, slashed)
		}
	}
	return out
}

// unescape decodes each %xx by itself, as lenient decoders do, which leave others as they are.
func unescape(text string) string {
	return regexp.MustCompile(`%[0-9A-Fa-f]{2}`).ReplaceAllStringFunc(text, func(code string) string {
		decoded, err := url.PathUnescape(code)
		if err != nil {
			return code // not reached: the code is valid
		}
		return decoded
	})
}

// oddity says why a path is refused whatever its limits are: where it leads depends on more than its text. Empty:
// it is not.
func oddity(readings []string) string {
	for _, r := range readings {
		switch {
		case regexp.MustCompile(`(^|/)\.\.(/|$)`).MatchString(r):
			return "it has a segment .."
		case regexp.MustCompile(`[{},]\.|\.[{},]`).MatchString(r) && strings.ContainsAny(r, "{}"):
			return "it has braces beside a dot, which may mean .."
		case regexp.MustCompile(`^~[A-Za-z0-9._-]*(/|$)`).MatchString(r):
			return "it begins with ~"
		}
	}
	return ""
}

// places are the places that readings mean, and on this computer also where symbolic links lead from there.
// Programs that this process started take relative paths as this process does, or as below a directory of their
// own: written says to keep them as they are, too.
func (l *pathLimits) places(readings []string, written bool) (out []string) {
	for _, r := range readings {
		if !l.local || written {
			out = append(out, path.Clean(r))
		}
		if abs, err := filepath.Abs(r); l.local && err == nil {
			out = append(out, abs, linked(abs))
		}
	}
	return out
}

// maxLinks bounds the symbolic links that linked follows. No system opens a path with as many.
const maxLinks = 255

// linked returns where an absolute path leads by its symbolic links, also by those to what does not exist yet: a file
// that is written through such a link is made where the link leads.
func linked(file string) string {
	const separator = string(filepath.Separator)
	at := filepath.VolumeName(file) + separator
	rest := strings.Split(strings.TrimPrefix(file, at), separator)
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		to, err := os.Readlink(next)
		switch {
		case err != nil: // it is no link
			at, rest = next, rest[1:]
			continue
		case links == maxLinks:
			return file
		case filepath.IsAbs(to):
			at = filepath.VolumeName(to) + separator
		}
		links++
		rest = append(strings.Split(to, separator), rest[1:]...)
	}
	return at
}

// limitForms are a limit as it is written, without ** or * for all below it, and on this computer where it is.
func (l *pathLimits) limitForms(limit string, anchored bool) []string {
	limit = strings.TrimPrefix(limit, "file://")
	for before := ""; before != limit; {
		before = limit
		limit = strings.TrimSuffix(strings.TrimSuffix(limit, "/*"), "/**")
	}
	if limit == "" {
		limit = "/"
	}
	if l.local && (anchored || path.IsAbs(limit) || strings.HasPrefix(limit, "./") || strings.HasPrefix(limit, "../")) {
		if abs, err := filepath.Abs(limit); err == nil {
			return []string{abs, linked(abs)}
		}
	}
	return []string{path.Clean(limit)}
}

// denies reports whether a path is in a denied place, or can be: both may have patterns. A relative limit is one in
// every directory, and a relative path can be in every directory. Case is ignored, because some file systems do.
func (l *pathLimits) denies(limit, file string) bool {
	f := segments(strings.ToLower(file))
	if at := slices.IndexFunc(f, func(s string) bool { return strings.ContainsAny(s, "{}") }); at >= 0 {
		f = append(f[:at:at], "**") // an alternative can have slashes, so that any path may follow
	}
	for _, form := range l.limitForms(limit, false) {
		p := segments(strings.ToLower(form))
		switch {
		case path.IsAbs(form) && path.IsAbs(file):
			if overlaps(p, f) {
				return true
			}
		case path.IsAbs(form):
			for i := range p {
				if overlaps(p[i:], f) {
					return true
				}
			}
		default:
			for i := range f {
				if overlaps(p, f[i:]) {
					return true
				}
			}
		}
	}
	return false
}

// allows reports whether a path is surely in an allowed place.
func (l *pathLimits) allows(limit, file string) bool {
	f := segments(file)
	for _, form := range l.limitForms(limit, true) {
		if path.IsAbs(form) == path.IsAbs(file) && contains(segments(form), f) {
			return true
		}
	}
	return false
}

// segments are the parts of a clean path, none for the root and for the directory itself. They are bounded, so that
// tests of patterns are quick; what is beyond the bound is one part.
func segments(file string) []string {
	file = strings.Trim(file, "/")
	if file == "" || file == "." {
		return nil
	}
	return strings.SplitN(file, "/", 64)
}

// isPattern reports whether a segment may stand for several names.
func isPattern(segment string) bool { return strings.ContainsAny(segment, "*?[{") }

// overlaps reports whether a path f may be the place p, or below it.
func overlaps(p, f []string) bool {
	failed := map[[2]int]bool{} // pairs of lengths that led to nothing
	var at func(p, f []string) bool
	at = func(p, f []string) bool {
		key := [2]int{len(p), len(f)}
		switch {
		case len(p) == 0:
			return true
		case len(f) == 0 || failed[key]:
			return false
		}
		failed[key] = true
		switch {
		case p[0] == "**":
			return at(p[1:], f) || at(p, f[1:])
		case f[0] == "**":
			return at(p, f[1:]) || at(p[1:], f) || len(f) == 1
		}
		return mayMeet(p[0], f[0]) && at(p[1:], f[1:])
	}
	return at(p, f)
}

// mayMeet reports whether two segments may stand for one name.
func mayMeet(p, f string) bool {
	pattern, name := p, f
	switch {
	case p == f:
		return true
	case isPattern(p) && isPattern(f):
		return edgesMeet(p, f)
	case isPattern(f):
		pattern, name = f, p
	}
	is, err := path.Match(pattern, name)
	return is || err != nil
}

// edgesMeet reports whether the beginnings and ends of two patterns may be those of one name.
func edgesMeet(p, f string) bool {
	edges := func(s string) (begin, end string) {
		return s[:strings.IndexAny(s, "*?[{")], s[strings.LastIndexAny(s, "*?]}")+1:]
	}
	pb, pe := edges(p)
	fb, fe := edges(f)
	return (strings.HasPrefix(pb, fb) || strings.HasPrefix(fb, pb)) &&
		(strings.HasSuffix(pe, fe) || strings.HasSuffix(fe, pe))
}

// contains reports whether a path f surely is the place p, or below it.
func contains(p, f []string) bool {
	failed := map[[2]int]bool{} // pairs of lengths that led to nothing
	var at func(p, f []string) bool
	at = func(p, f []string) bool {
		key := [2]int{len(p), len(f)}
		switch {
		case len(p) == 0:
			return true
		case failed[key]:
			return false
		}
		failed[key] = true
		switch {
		case p[0] == "**":
			return at(p[1:], f) || len(f) > 0 && at(p, f[1:])
		case len(f) == 0:
			return false
		}
		is := p[0] == f[0]
		if !is && !isPattern(f[0]) {
			is, _ = path.Match(p[0], f[0]) // a limit that is no pattern matches nothing
		}
		return is && at(p[1:], f[1:])
	}
	return at(p, f)
}
