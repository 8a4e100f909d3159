package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/web/query"
)

// rootSetRow is a set of roots.
type rootSetRow struct {
	ChainID, Roots int64
	Name           string
}

// rootRow is an address that is trusted by configuration.
type rootRow struct {
	Address, Reason   string
	Weight            float64
	Reviewed, Expired bool
	Expires           *time.Time
}

// roots shows the roots of a set, and which sets there are. Without parameters it shows the first set.
func (s *site) roots(ctx context.Context, p *page) (string, error) {
	p.Title = "Roots"
	sets, err := ask[struct{ RootSets []rootSetRow }](ctx, s, p, "root_sets", map[string]any{})
	if err != nil {
		return "", err
	}
	body := struct {
		Sets  []rootSetRow
		Chain int64
		Name  string
		Roots []rootRow
		Next  string
	}{Sets: sets.RootSets, Name: p.Query.Get("set")}
	switch text := p.Query.Get("chain"); {
	case text != "":
		if body.Chain, err = strconv.ParseInt(text, 10, 64); err != nil {
			return "", repute.Invalid("chain", "not a number", "the id of a chain, such as 8453")
		}
	case len(body.Sets) > 0:
		body.Chain, body.Name = body.Sets[0].ChainID, body.Sets[0].Name
	}
	if body.Chain != 0 {
		r, err := ask[struct{ Roots listOf[rootRow] }](ctx, s, p, "roots", query.Given(map[string]any{"chain": body.Chain, "set": body.Name, "first": 50,
			"after": p.Query.Get("after")}))
		if err != nil {
			return "", err
		}
		body.Roots, body.Next = r.Roots.Nodes, nextPage(p, r.Roots.PageInfo)
	}
	p.Body = body
	return "roots", nil
}

// value is a parameter by its path in the file.
type value struct{ Path, Text string }

// maxValues bounds the parameters that a page shows.
const maxValues = 400

// valuesOf returns the values of a JSON file by their paths, in the order of the file. An error says that it is no
// JSON.
func valuesOf(text string) ([]value, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var list []value
	if err := flatten(decoder, "", &list); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	return list, nil
}

// flatten reads one value, and appends it or what it holds.
func flatten(d *json.Decoder, path string, list *[]value) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, isDelimiter := token.(json.Delim)
	if !isDelimiter {
		if len(*list) < maxValues {
			*list = append(*list, value{path, fmt.Sprint(token)})
		}
		return nil
	}
	for n := 0; d.More(); n++ {
		at := path + "[" + strconv.Itoa(n) + "]"
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			at = strings.TrimPrefix(path+"."+fmt.Sprint(name), ".")
		}
		if err := flatten(d, at, list); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end
	return err
}

// parameters shows the values that the newest scores follow from, with their hashes.
func (s *site) parameters(ctx context.Context, p *page) (string, error) {
	p.Title = "Parameters"
	h, err := s.scoredHashes(ctx, p)
	if err != nil {
		return "", err
	}
	body := struct {
		hashesOf
		Values []value
		Size   int64
	}{hashesOf: h}
	if h.Hashes != nil {
		in, err := ask[struct {
			ScoreInput *struct {
				Size int64
				Text *string
			}
		}](ctx, s, p, "score_input", map[string]any{"sha256": h.Hashes.Params})
		if err != nil {
			return "", err
		}
		if in.ScoreInput != nil && in.ScoreInput.Text != nil {
			if body.Values, err = valuesOf(*in.ScoreInput.Text); err != nil {
				return "", err
			}
			body.Size = in.ScoreInput.Size
		}
	}
	p.Body = body
	return "parameters", nil
}

// attackRow is a measured value with its limit.
type attackRow struct {
	Name         string
	Value, Limit float64
	Bound, Unit  string
	Ok           bool
}

// attacks shows what attacks on scores reached when the release was measured.
func (s *site) attacks(ctx context.Context, p *page) (string, error) {
	p.Title = "Attacks"
	a, err := ask[struct {
		Attacks struct {
			Params, ParamsHash string
			Targets            []attackRow
		}
	}](ctx, s, p, "attacks", map[string]any{})
	if err != nil {
		return "", err
	}
	body := struct {
		Params, ParamsHash string
		Rows               []attackRow
		All, Kept          int64
		Words              string
	}{Params: a.Attacks.Params, ParamsHash: a.Attacks.ParamsHash, All: int64(len(a.Attacks.Targets)),
		Words: strings.TrimSpace(p.Query.Get("q"))}
	for _, row := range a.Attacks.Targets {
		if row.Ok {
			body.Kept++
		}
		if strings.Contains(strings.ToLower(row.Name), strings.ToLower(body.Words)) {
			body.Rows = append(body.Rows, row)
		}
	}
	p.Body = body
	return "attacks", nil
}
