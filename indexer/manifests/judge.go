package manifests

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/measure"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store/manifestdb"
)

// verdictPatience is how long a verdict holds while the documents that it needs cannot be read, because their host
// fails. A document that is gone or says something else counts at once.
const verdictPatience = 24 * time.Hour

// judged is a manifest with what was fetched to verify it.
type judged struct {
	manifest agentjson.Manifest
	problems []repute.Problem
	format   agentjson.Format
	evidence agentjson.Evidence
	complete bool // every document was read, or its host said that there is none
}

// evidence parses a manifest, and fetches the documents that its verification needs. The bytes of a manifest that did
// not change are those that are stored.
func (l *Loop) evidence(ctx context.Context, c manifestdb.Claim, found *wellknown.Found, forbidden []string) (j judged,
	failed *outcome) {
	if found.NotModified {
		found.Bytes = c.Known.Body
	}
	j.manifest, j.problems = agentjson.Parse(found.Bytes, agentjson.Options{Host: found.Host})
	j.format = agentjson.Detect(found.Bytes)
	now := time.Now()
	j.evidence, j.complete = agentjson.Evidence{Host: found.Host, Now: now, Registry: l.known.at(now)}, true
	if repute.HasErrors(j.problems) {
		return j, nil
	}
	for _, f := range agentjson.Fetches(j.manifest) {
		if slices.Contains(forbidden, pathOf(f.URL)) {
			continue // robots.txt keeps it from proving anything
		}
		body, err := l.fetch.Document(ctx, f.URL)
		var e *resolver.Error
		switch {
		case err == nil:
			j.evidence.Add(f.Purpose, body)
		case errors.As(err, &e) && e.Reason == resolver.ReasonCanceled:
			return j, l.failure(c, err)
		default:
			j.complete = j.complete && e != nil && !isTemporary(e)
		}
	}
	return j, nil
}

// isTemporary reports whether a failure says nothing about the document.
func isTemporary(e *resolver.Error) bool { return e.Retry && e.Reason != resolver.ReasonNotFound }

// success is the outcome of a domain that serves a document.
func (l *Loop) success(c manifestdb.Claim, found wellknown.Found, j judged) *outcome {
	verdict := agentjson.Verify(j.manifest, j.problems, j.evidence)
	m := &manifestdb.Content{URL: found.URL, ETag: found.ETag, LastModified: found.LastModified, Body: found.Bytes,
		Parser: agentjson.Version, Format: string(j.format), Title: j.manifest.DisplayName,
		Declared: int(verdict.Declared), Verified: int(verdict.Verified), Complete: j.complete, State: stateOf(j)}
	m.Verdict, _ = json.Marshal(verdict) // of strings and numbers alone
	same := found.NotModified || slices.Equal(found.Bytes, c.Known.Body)
	if !j.complete && same && c.Known.Verified > m.Verified && time.Since(c.Known.VerifiedAt) < verdictPatience {
		m.Verified, m.Verdict = c.Known.Verified, c.Known.Verdict
	}
	if common.IsHexAddress(j.manifest.PayoutAddress) {
		m.Payout = common.HexToAddress(j.manifest.PayoutAddress).Bytes()
	}
	m.Errors = repute.CountSeverity(j.problems, repute.SeverityError)
	m.Warnings = repute.CountSeverity(j.problems, repute.SeverityWarning)
	for i := range j.manifest.Intents {
		m.Intents = append(m.Intents, intentOf(&j.manifest, i))
	}
	return &outcome{Result: manifestdb.Result{Content: m,
		Wait: l.wait(c, m.State == manifestdb.StateOK, found.FreshFor)}}
}

// promises reports whether a usable manifest has a commitment that the crawl can measure.
func promises(j *judged) bool {
	c := j.manifest.Commitments
	return stateOf(*j) == manifestdb.StateOK && c != nil &&
		slices.ContainsFunc(c.Entries, func(e agentjson.Commitment) bool {
			return measure.Promise{Type: e.Type, Constraint: e.Constraint, Verifiable: e.Verifiable}.IsMeasured()
		})
}

// stateOf returns the state of a domain that serves a document.
func stateOf(j judged) manifestdb.State {
	switch {
	case j.format != agentjson.FormatAgentJSON:
		return manifestdb.StateOther
	case repute.HasErrors(j.problems):
		return manifestdb.StateInvalid
	}
	return manifestdb.StateOK
}

// intentOf returns the row of an intent.
func intentOf(m *agentjson.Manifest, i int) manifestdb.Intent {
	in, terms := m.Intents[i], m.Terms(i)
	row := manifestdb.Intent{Name: in.Name, Description: in.Description, Method: in.Method, URL: in.URL}
	for _, p := range in.Parameters {
		row.Parameters = append(row.Parameters, p.Name)
	}
	var least agentjson.Decimal
	lower := func(d agentjson.Decimal) {
		if d != "" && (least == "" || d.Cmp(least) < 0) {
			least = d
		}
	}
	if terms.Price != nil {
		lower(terms.Price.Amount)
		row.Networks = appendNew(row.Networks, terms.Price.Networks...)
	}
	for i := range terms.Ways {
		w := &terms.Ways[i]
		if !isStorable(w.Other) {
			w.Other = nil
		}
		row.Protocols = appendNew(row.Protocols, w.Protocol)
		row.Networks = appendNew(row.Networks, w.Network)
		lower(w.Direct)
	}
	if price := string(least); price != "" {
		row.Price = &price
	}
	row.Terms, _ = json.Marshal(terms) // the raw members come from valid JSON
	return row
}

// Largest numbers that are stored: the exponent as that of a float64, and the length of the text. Postgres stores every
// digit, and refuses more than 131,072 before the point or 16,383 behind it.
const (
	maxExponent = 308
	maxNumber   = 1000
)

// isStorable reports whether Postgres can store JSON as jsonb. JSON that a domain wrote may have texts and numbers that
// it refuses, and then nothing of the manifest could be saved.
func isStorable(raw json.RawMessage) bool {
	if len(raw) == 0 {
		return true
	}
	if repute.CheckJSON("other", raw) != nil {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if n, is := token.(json.Number); is {
			_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
			e, err := strconv.Atoi(cmp.Or(exponent, "0"))
			if err != nil || max(e, -e) > maxExponent || len(n) > maxNumber {
				return false
			}
		}
	}
}

// appendNew appends those values that are not empty and not in a list yet.
func appendNew(list []string, values ...string) []string {
	for _, v := range values {
		if v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
