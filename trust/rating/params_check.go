package rating

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"repute"
	"repute/trust/fixed"
)

// maxDays bounds whatever is counted in days.
const maxDays = 36_500

// DefaultFiles are the files of parameters and tags that this package comes with, to
// begin one's own with.
func DefaultFiles() (params, tags []byte) {
	return slices.Clone(defaultParams), slices.Clone(defaultTags)
}

// places are the lines, from 1, of the values of a JSON file by their paths, such as
// gates[0].low; those of null are not among them.
type places map[string]int

// check refuses a parameter that is absent or, where it is not ok, out of range.
func (at places) check(field string, ok bool, hint string) error {
	field, path := "params: "+field, field
	line, present := at[path]
	switch {
	case !present:
		return repute.Invalid(field, "is missing", hint)
	case !ok:
		return repute.Invalid(field, fmt.Sprintf("line %d: out of range", line), hint)
	}
	return nil
}

// strict reads a file into a structure that has a field for everything in it.
func strict(file string, b []byte, into any) (places, error) {
	w := &walker{file: file, body: b, d: json.NewDecoder(bytes.NewReader(b)), at: places{}}
	w.d.UseNumber()
	err := w.value("")
	if err == nil {
		if _, more := w.d.Token(); !errors.Is(more, io.EOF) {
			err = w.refuse("", "text after the end of the object", "one JSON object")
		}
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, w.explain(err)
	}
	return w.at, nil
}

// walker notes where values are, and refuses numbers that are none here.
type walker struct {
	file string
	body []byte
	d    *json.Decoder
	at   places
}

// line is the line of a byte in the file.
func (w *walker) line(offset int64) int {
	return 1 + bytes.Count(w.body[:min(offset, int64(len(w.body)))], []byte("\n"))
}

// refuse makes an error that names the file, the line and the field.
func (w *walker) refuse(path, reason, hint string) error {
	field := w.file
	if path != "" {
		field += ": " + path
	}
	return repute.Invalid(field, fmt.Sprintf("line %d: %s", w.line(w.d.InputOffset()), reason), hint)
}

// value reads what comes next, which is at a path.
func (w *walker) value(path string) error {
	t, err := w.d.Token()
	if err != nil {
		return w.broken(path, err)
	}
	if t != nil {
		w.at[path] = w.line(w.d.InputOffset())
	}
	switch v := t.(type) {
	case json.Delim:
		return w.members(path, v)
	case json.Number:
		if _, err := fixed.Parse(v.String()); err != nil {
			return w.refuse(path, fmt.Sprintf("%s is not a number that can be used", v),
				"a decimal number with at most nine digits after the point, without an exponent")
		}
	}
	return nil
}

// members reads an object or a list up to its end.
func (w *walker) members(path string, open json.Delim) error {
	for i := 0; w.d.More(); i++ {
		at := fmt.Sprintf("%s[%d]", path, i)
		if open == '{' {
			t, err := w.d.Token()
			if err != nil {
				return w.broken(path, err)
			}
			at = strings.TrimPrefix(fmt.Sprintf("%s.%v", path, t), ".")
			if _, twice := w.at[at]; twice {
				return w.refuse(at, "stands twice", "keep one")
			}
		}
		if err := w.value(at); err != nil {
			return err
		}
	}
	if _, err := w.d.Token(); err != nil {
		return w.broken(path, err)
	}
	return nil
}

// broken makes the error of JSON that cannot be read.
func (w *walker) broken(path string, err error) error {
	reason := "not JSON: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "not JSON: it ends too early"
	}
	return w.refuse(path, reason, "a JSON object like the one that repute comes with")
}

// explain says in the file's own terms what a structure has no place for.
func (w *walker) explain(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		line, known := w.at[kind.Field]
		if !known {
			line = w.line(kind.Offset)
		}
		return repute.Invalid(w.file+": "+kind.Field,
			fmt.Sprintf("line %d: %s is not what belongs there", line, kind.Value),
			"a value like that of the file that repute comes with")
	}
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	name = strings.Trim(name, `"`)
	if !unknown {
		return repute.Invalid(w.file, err.Error(), "a file like the one that repute comes with")
	}
	for path, line := range w.at {
		if path == name || strings.HasSuffix(path, "."+name) {
			return repute.Invalid(w.file+": "+name, fmt.Sprintf("line %d: no such field", line),
				"remove it, or write it as the file that repute comes with does")
		}
	}
	return repute.Invalid(w.file+": "+name, "no such field", "remove it")
}

// checkRules refuses gates and tiers that nobody could pass or that ask for what is not
// there.
func (p *Params) checkRules(at places) error {
	gates := map[string]bool{}
	for i := range p.Gates {
		g, field := &p.Gates[i], fmt.Sprintf("gates[%d]", i)
		if err := p.checkGate(at, field, g); err != nil {
			return err
		}
		if err := at.check(field+".id", g.ID != "" && !gates[g.ID], "a name that no other gate has"); err != nil {
			return err
		}
		gates[g.ID] = true
	}
	tiers := map[int]bool{}
	for i, t := range p.Tiers {
		field := fmt.Sprintf("tiers[%d]", i)
		if err := at.check(field+".tier", t.Tier >= 0 && t.Tier <= 4 && !tiers[t.Tier],
			"0 to 4, each once"); err != nil {
			return err
		}
		tiers[t.Tier] = true
		switch {
		case t.Gate != "" && !gates[t.Gate]:
			return at.check(field+".gate", false, "use the id of a gate in gates")
		case t.Low != nil && !areScore(*t.Low):
			return at.check(field+".low", false, "-100 to 100 points")
		case t.Paths < 0 || t.Paths > p.Paths.Most:
			return at.check(field+".paths", false, "0 to paths.most")
		}
	}
	return nil
}

// areScore reports whether a number can be a score.
func areScore(points fixed.Fixed) bool { return points >= -fixed.Int(100) && points <= fixed.Int(100) }

// checkGate refuses a gate that names unknown checks, channels or gates.
func (p *Params) checkGate(at places, field string, g *Gate) error {
	for i, name := range g.Checks {
		if !slices.Contains([]string{CheckRegistration, CheckWallet, CheckDomains}, name) ||
			slices.Contains(g.Checks[:i], name) {
			return at.check(fmt.Sprintf("%s.checks[%d]", field, i), false,
				"registrationResolves, walletDeclared and domainsProven, each once")
		}
	}
	for i, name := range g.Channels {
		if !slices.ContainsFunc(p.Tags.Channels, func(c Channel) bool { return c.Name == name }) {
			return at.check(fmt.Sprintf("%s.channels[%d]", field, i), false,
				"the name of one of the channels of the tags")
		}
	}
	switch {
	case g.Low != nil && g.High != nil, g.Low == nil && g.High == nil && len(g.Checks) == 0:
		return at.check(field, false, "exactly one of low and high, or neither and checks")
	case g.Low == nil && g.High == nil && (g.Paths != 0 || g.Evidence != 0 || g.RecentRaters != 0):
		return at.check(field, false, "paths, evidence and recentRaters with low or high alone")
	case g.Low != nil && !areScore(*g.Low):
		return at.check(field+".low", false, "-100 to 100 points")
	case g.High != nil && !areScore(*g.High):
		return at.check(field+".high", false, "-100 to 100 points")
	case g.Paths < 0 || g.Paths > p.Paths.Most:
		return at.check(field+".paths", false, "0 to paths.most")
	case g.Evidence < 0 || g.Evidence > 0 && len(g.Channels) == 0:
		return at.check(field+".evidence", false, "units above 0, with channels")
	case g.RecentRaters < 0 || g.RecentDays < 0 || g.RecentDays > maxDays || (g.RecentRaters > 0) != (g.RecentDays > 0):
		return at.check(field, false, "recentRaters and recentDays (at most 36500) both above 0, or neither")
	}
	return nil
}
