package wire

import (
	"encoding/json"
	"maps"
	"slices"

	"repute"
	"repute/internal/httpapi"
)

// documentCutter shows texts of a document, all of which its bytes have.
type documentCutter struct {
	cutter
	any bool // something was cut or left out
}

// newDocumentCutter makes a cutter for what an answer shows of one document.
func newDocumentCutter() *documentCutter {
	return &documentCutter{cutter: cutter{left: maxShownDocument}}
}

// text shows as much of a text as is left of the document's share.
func (c *documentCutter) text(s string) string {
	shown, all := c.shown(s, false)
	c.any = c.any || !all
	return shown
}

// head is the first entries of a list, none where the document has used up what it may.
func head[T any](c *documentCutter, list []T) []T {
	if len(list) > maxShownList || len(list) > 0 && c.left <= 0 {
		c.any = true
		if c.left <= 0 {
			return nil
		}
		return list[:maxShownList]
	}
	return list
}

// texts shows the beginning of a list, as far as the document's share goes.
func (c *documentCutter) texts(list []string) []string {
	var out []string
	for _, s := range head(c, list) {
		if c.left <= 0 {
			c.any = true
			break
		}
		out = append(out, c.text(s))
	}
	return out
}

// members are those unknown members that are short, as written.
func (c *documentCutter) members(extra map[string]json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	for _, name := range slices.Sorted(maps.Keys(extra)) { // every answer is the same
		value := extra[name]
		n, cost := jsonHead(name+string(value), maxShown)
		if n < len(name)+len(value) || cost > c.left || len(out) >= maxShownList {
			c.any = true
			continue
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[name], c.left = value, c.left-cost
	}
	return out
}

// registration is a registration file within the bounds of an answer, Partial where it
// holds more.
func (c *documentCutter) registration(r repute.Registration) repute.Registration {
	out := repute.Registration{
		Type: c.text(r.Type), Name: c.text(r.Name), Description: c.text(r.Description), Image: c.text(r.Image),
		Active: r.Active, X402: r.X402,
	}
	for _, s := range head(c, r.Services) {
		if c.left <= 0 {
			c.any = true
			break
		}
		out.Services = append(out.Services, repute.Service{
			Name: c.text(s.Name), Endpoint: c.text(s.Endpoint), Version: c.text(s.Version), Skills: c.texts(s.Skills),
			Domains: c.texts(s.Domains),
			Tools:   c.texts(s.Tools), Prompts: c.texts(s.Prompts), Resources: c.texts(s.Resources),
			Extra: c.members(s.Extra),
		})
	}
	for _, l := range head(c, r.Registrations) {
		l.Registry = c.text(l.Registry)
		out.Registrations = append(out.Registrations, l)
	}
	out.SupportedTrust, out.Extra = c.texts(r.SupportedTrust), c.members(r.Extra)
	out.Partial = r.Partial || c.any
	return out
}

// problems are those of a document that an answer shows.
func (c *documentCutter) problems(list []repute.Problem) []Problem {
	out := []Problem{}
	for _, p := range head(c, list) {
		if c.left <= 0 {
			c.any = true
			break
		}
		out = append(out, Problem{Code: p.Code, Severity: string(p.Severity), Path: c.text(p.Path),
			Message: c.text(p.Message)})
	}
	return out
}

// feedback is a feedback file within the bounds of an answer.
func (c *documentCutter) feedback(f repute.FeedbackFile) *FeedbackFile {
	w := &FeedbackFile{
		Registry: c.text(f.Registry), Client: c.text(f.Client), CreatedAt: c.text(f.CreatedAt), Value: c.text(f.Value),
		Rating: c.text(f.Rating),
		Tag1:   c.text(f.Tag1), Tag2: c.text(f.Tag2), Endpoint: c.text(f.Endpoint), Text: c.text(f.Text),
		MCP:  FeedbackMCP{c.text(f.MCP.Tool), c.text(f.MCP.Prompt), c.text(f.MCP.Resource)},
		A2A:  FeedbackA2A{orNone(c.texts(f.A2A.Skills)), c.text(f.A2A.ContextID), c.text(f.A2A.TaskID)},
		OASF: FeedbackOASF{orNone(c.texts(f.OASF.Skills)), orNone(c.texts(f.OASF.Domains))},
	}
	if f.TokenID != nil {
		w.TokenID = OrNull(BigInt(f.TokenID.Dec()))
	}
	if f.Decimals != nil {
		w.Decimals = new(int32(*f.Decimals))
	}
	if s := f.Scale; s != nil {
		w.Scale = &FeedbackScale{c.text(s.Min), c.text(s.Max)}
	}
	if p := f.Payment; p != nil {
		w.Payment = &PaymentClaim{c.text(p.From), c.text(p.To), c.text(p.ChainID), c.text(p.TxHash)}
	}
	return w
}

// orNone is a list that encodes as [] when it is empty.
func orNone(list []string) []string { return Each(list, httpapi.Clean) }
