// Package rootfile reads files of roots, of reviewed writers and of links between addresses, as they are written by
// hand or by programs. docs/how-to/roots.md describes the format.
//
// Roots and links are written in YAML, or as one JSON object per line, which has no limit of size: ReadRoots and
// ReadLinks tell the forms apart by the first 64 KiB. Reviewed writers are written in YAML alone; ReadRoots returns
// them as roots of their class, with their rules for tags as JSON. Every value is taken as it is written, because YAML
// would read an address as a number. Unknown members and entries about the same address are refused.
//
// The error has the kind repute.ErrInvalid and names the lines of the bad entries, ten at most. The package stores
// nothing: a caller that stores a file SHOULD do so only without an error, and check whole sets of writers by
// Options.CheckSet, because the rules of several may contradict each other. ParseWeight and ParseExpiry read the same
// values from flags.
package rootfile

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/store/rootdb"
	"repute/trust/rating"
)

// Options say what a file leaves open.
type Options struct {
	// ChainID is of entries that name no chain; 0: each must.
	ChainID uint64
	// Only refuses entries of other chains than ChainID.
	Only bool
	// Chain finds a chain by name; nil: chains are given by id.
	Chain func(name string) (uint64, bool)
	// Now is what entries must not have expired at; zero: it is not asked.
	Now time.Time
	// Params have the table of tags that rules of writers must fit; nil: that of this project.
	Params *rating.Params
}

// params returns the parameters that rules of writers must fit.
func (o Options) params() (*rating.Params, error) {
	if o.Params != nil {
		return o.Params, nil
	}
	return rating.DefaultParams()
}

// CheckSet returns repute.ErrInvalid when the rules of all writers of a set that have not expired do not fit the
// table of tags together: a run would leave some of them out.
func (o Options) CheckSet(set []repute.TrustRoot) error {
	params, err := o.params()
	if err != nil {
		return err
	}
	_, refused := params.WithRoots(rating.WritersAt(set, o.Now))
	return errors.Join(refused[:min(len(refused), mostErrors)]...)
}

// Root is an entry of a file of roots. Line is that of the entry's beginning.
type Root struct {
	Line    int // counted from 1
	ChainID uint64
	repute.TrustRoot
}

// Link is an entry of a file of links.
type Link struct {
	Line    int // counted from 1
	ChainID uint64
	repute.TrustLink
}

// ReadRoots reads a file of roots, or one of reviewed writers, which has the list writers instead. The error is
// repute.ErrInvalid and contains one error per bad line, ten at most.
func ReadRoots(r io.Reader, o Options) ([]Root, error) {
	in, head, err := begin(r)
	if err != nil {
		return nil, err
	}
	if writersKey.Match(head) {
		return readWriters(in, o)
	}
	return read(in, head, "roots", o, []string{"chain", "address", "weight", "reason", "expires"},
		func(e entry, o Options) (Root, string, error) {
			root := Root{Line: e.line}
			err := e.root(&root, o)
			return root, fmt.Sprintf("root %s of chain %d", root.Address.Hex(), root.ChainID), err
		})
}

// ReadLinks is ReadRoots for files of links.
func ReadLinks(r io.Reader, o Options) ([]Link, error) {
	in, head, err := begin(r)
	if err != nil {
		return nil, err
	}
	return read(in, head, "links", o, []string{"chain", "a", "b", "reason", "source"},
		func(e entry, o Options) (Link, string, error) {
			link := Link{Line: e.line}
			err := e.link(&link, o)
			a, b := link.A, link.B
			if a.Cmp(b) > 0 {
				a, b = b, a
			}
			return link, fmt.Sprintf("link of %s and %s of chain %d", a.Hex(), b.Hex(), link.ChainID), err
		})
}

// mostErrors is how many bad entries are named.
const mostErrors = 10

// collector keeps what was made of the entries of a file, and what is wrong with others. A key names chain and address,
// so that one address may be a root of several chains.
type collector[T any] struct {
	made  []T
	wrong []error
	lines map[string]int // of entries by their keys: two with the same key are about the same
}

// add takes in an entry, or what is wrong with it, and reports whether more may follow.
func (c *collector[T]) add(line int, made T, key string, err error) (more bool) {
	if err == nil && c.lines[key] > 0 {
		err = repute.Invalid("entry", fmt.Sprintf("%s stands on line %d already", key, c.lines[key]), "keep one of them")
	}
	if err != nil {
		c.wrong = append(c.wrong, atLine(line, err))
		return len(c.wrong) < mostErrors
	}
	if c.lines == nil {
		c.lines = map[string]int{}
	}
	c.lines[key], c.made = line, append(c.made, made)
	return true
}

// read makes something of each entry. Entries that are right are returned beside the error, and callers MUST NOT use
// them then.
func read[T any](in io.Reader, head []byte, list string, o Options, fields []string,
	of func(entry, Options) (made T, key string, err error)) ([]T, error) {
	var c collector[T]
	err := entries(in, head, list, fields, func(e entry, err error) bool {
		var made T
		var key string
		if err == nil {
			made, key, err = of(e, o)
		}
		return c.add(e.line, made, key, err)
	})
	return c.made, errors.Join(append(c.wrong, err)...)
}

// atLine puts the line before the field of an InputError.
func atLine(line int, err error) error {
	var input *repute.InputError
	if errors.As(err, &input) {
		return repute.Invalid(fmt.Sprintf("line %d, %s", line, input.Field), input.Reason, input.Hint)
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// entry is one object of a file, all its members as text.
type entry struct {
	line   int
	fields map[string]string
}

// root reads a root of the file. repute.ErrInvalid names the field.
func (e entry) root(r *Root, o Options) (err error) {
	if r.ChainID, err = e.chain(o); err != nil {
		return err
	}
	if r.Address, err = repute.ParseAddress("address", e.fields["address"]); err != nil {
		return err
	}
	if r.Weight, err = ParseWeight(e.fields["weight"]); err != nil {
		return err
	}
	if r.Expires, err = ParseExpiry(e.fields["expires"], o.Now); err != nil {
		return err
	}
	r.Reason = strings.TrimSpace(e.fields["reason"])
	return rootdb.CheckRoot(r.TrustRoot)
}

// link reads a link between two addresses of one party. repute.ErrInvalid names the field.
func (e entry) link(l *Link, o Options) (err error) {
	if l.ChainID, err = e.chain(o); err != nil {
		return err
	}
	if l.A, err = repute.ParseAddress("a", e.fields["a"]); err != nil {
		return err
	}
	if l.B, err = repute.ParseAddress("b", e.fields["b"]); err != nil {
		return err
	}
	l.Reason, l.Source = strings.TrimSpace(e.fields["reason"]), strings.TrimSpace(e.fields["source"])
	return rootdb.CheckLink(l.TrustLink)
}

// chain returns the chain of an entry. repute.ErrInvalid: the command is for another one.
func (e entry) chain(o Options) (uint64, error) {
	id, err := e.ownChain(o)
	if err == nil && o.Only && id != o.ChainID {
		err = repute.Invalid("chain", fmt.Sprintf("is %d, and the command is for chain %d", id, o.ChainID),
			"take the entry out of the file, or leave out --chain")
	}
	return id, err
}

// ownChain is the chain that an entry names, else the one for those that name none. An id is tried before a name, so
// that no name can stand for another chain's id.
func (e entry) ownChain(o Options) (uint64, error) {
	name := e.fields["chain"]
	if name == "" {
		if o.ChainID == 0 {
			return 0, repute.Invalid("chain", "is missing", "name the entry's chain, or give --chain for all of them")
		}
		return o.ChainID, nil
	}
	id, err := repute.ParseChainID(name)
	if err == nil {
		return id, nil
	}
	if o.Chain != nil {
		if id, known := o.Chain(name); known {
			return id, nil
		}
	}
	return 0, repute.Invalid("chain", fmt.Sprintf("%.50q is no chain", name),
		"a name that repute chains lists, or an id such as 8453")
}

// weightDigits is how many digits after the point a weight may have.
const weightDigits = 6

// ParseWeight reads a root's weight, "" for 1: a decimal number above 0, at most 1000, with
// up to six digits after the point. The result is in millionths. The number is read as text: a float could round a
// weight up to another one.
func ParseWeight(s string) (uint64, error) {
	if s == "" {
		return repute.RootUnit, nil
	}
	const hint = "a decimal number above 0, at most 1000, with up to six digits after the point, e.g. 1 or 0.5"
	bad := repute.Invalid("weight", fmt.Sprintf("%.50q is no weight", s), hint)
	whole, part, dotted := strings.Cut(s, ".")
	if dotted && part == "" || len(part) > weightDigits {
		return 0, bad
	}
	w, err := strconv.ParseUint(whole, 10, 16)
	if err != nil {
		return 0, bad
	}
	f, err := strconv.ParseUint((part + "000000")[:weightDigits], 10, 32)
	if n := w*repute.RootUnit + f; err == nil && n > 0 && n <= rootdb.MaxRootWeight {
		return n, nil
	}
	return 0, bad
}

// FormatWeight writes a weight as ParseWeight reads it. It has as few digits as possible.
func FormatWeight(w uint64) string {
	s := fmt.Sprintf("%d.%06d", w/repute.RootUnit, w%repute.RootUnit)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// ParseExpiry reads when a root expires, "" for never: a day, from whose beginning in UTC
// on it does not count, or a time of RFC 3339 in whole seconds. It must be after now, unless
// that is zero. The result is in UTC, so that equal times are equal values.
func ParseExpiry(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		if t, err = time.Parse(time.RFC3339, s); err != nil || t.Nanosecond() != 0 {
			return t, repute.Invalid("expires", fmt.Sprintf("%.50q is no time", s),
				"a day such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z")
		}
	}
	if t.Year() < 1970 || t.Year() > 9999 {
		return t, repute.Invalid("expires", fmt.Sprintf("%.50q is out of range", s), "a day such as 2030-01-31")
	}
	if t = t.UTC(); !now.IsZero() && !t.After(now) {
		return t, repute.Invalid("expires", fmt.Sprintf("%s is past", s),
			"leave out what has expired, or give a later time")
	}
	return t, nil
}
