package oafagent

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// looksLikePath reports whether a text has a form that is hardly anything else than a path.
func looksLikePath(text string) bool {
	return regexp.MustCompile(`^(/|\\|~[A-Za-z0-9._-]*(/|$)|\.\.?([/\\]|$)|[A-Za-z]:[/\\]|(?i:file):)`).MatchString(text)
}

// readingsOf returns the paths as which servers may read a text: a URI, one that is encoded, also again, and one with
// backslashes.
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
			out = []string{rest}
		}
	}
	last := out[len(out)-1]
	for range 3 {
		decoded, err := url.PathUnescape(last)
		if err != nil || decoded == last {
			break
		}
		out, last = append(out, decoded), decoded
	}
	for _, r := range out {
		if slashed := strings.ReplaceAll(r, `\`, "/"); slashed != r {
			out = append(out, slashed)
		}
	}
	return out
}

// oddity says why a path is refused whatever its limits are: where it leads depends on more than its text. Empty:
// it is not.
func oddity(readings []string) string {
	for _, r := range readings {
		switch {
		case ("/" + r + "/") != strings.ReplaceAll("/"+r+"/", "/../", "/"):
			return "it has a segment .."
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

// linked returns where a path leads by the symbolic links of the part of it that exists.
func linked(file string) string {
	for at, rest := file, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if to, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(to, rest)
		}
		if at == filepath.Dir(at) {
			return file
		}
	}
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
	reached := map[[2]int]bool{} // pairs of lengths that led to nothing
	var at func(p, f []string) bool
	at = func(p, f []string) bool {
		key := [2]int{len(p), len(f)}
		switch {
		case len(p) == 0:
			return true
		case len(f) == 0 || reached[key]:
			return false
		}
		reached[key] = true
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
	case p == f, strings.Contains(p+f, "{"):
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
		return s[:strings.IndexAny(s, "*?[")], s[strings.LastIndexAny(s, "*?]")+1:]
	}
	pb, pe := edges(p)
	fb, fe := edges(f)
	return (strings.HasPrefix(pb, fb) || strings.HasPrefix(fb, pb)) &&
		(strings.HasSuffix(pe, fe) || strings.HasSuffix(fe, pe))
}

// contains reports whether a path f surely is the place p, or below it.
func contains(p, f []string) bool {
	for i, segment := range p {
		if i >= len(f) {
			return false
		}
		is := segment == f[i]
		if !is && !isPattern(f[i]) {
			is, _ = path.Match(segment, f[i]) // a limit that is no pattern matches nothing
		}
		if !is {
			return false
		}
	}
	return true
}
