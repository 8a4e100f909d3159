package manifest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/internal/jsonwalk"
)

// ParseFeedback reads a feedback file: the standard's nested form, the flat form that
// SDKs write, and older drafts.
func ParseFeedback(b []byte) (repute.FeedbackFile, []repute.Problem) {
	r := &reader{area: areaFeedback}
	o := r.open(b, repute.FeedbackDocument)
	if o == nil {
		return repute.FeedbackFile{}, r.problems
	}
	return r.feedback(o), r.problems
}

// feedback reads a feedback file. Members of older drafts and of common libraries are read where
// the standard's are missing.
func (r *reader) feedback(o *object) repute.FeedbackFile {
	registry := r.registry(o)
	f := repute.FeedbackFile{
		TokenID:   r.tokenID(o, isForeignAccount(registry)),
		Registry:  registry,
		Client:    o.textOf("clientAddress", "client_address", "client"),
		CreatedAt: o.textOf("createdAt", "created_at", "timestamp"),
		Value:     o.number("value"),
		Rating:    o.rating(),
		Scale:     o.scale(),
		Decimals:  o.decimals(),
		Tag1:      o.text("tag1", maxText),
		Tag2:      o.text("tag2", maxText),
		Endpoint:  o.url("endpoint"),
		Text:      o.prose(),
		MCP:       o.mcp(),
		A2A:       o.a2a(),
		OASF:      o.oasf(),
		Payment:   o.payment(),
	}
	f.Extra = o.rest()
	r.missingInFeedback(f)
	return f
}

// textOf is text with other spellings.
func (o *object) textOf(name string, aliases ...string) string {
	raw, found := o.takeAlias(name, aliases...)
	if found == "" {
		return ""
	}
	return o.r.string(raw, o.at(found), maxShort)
}

// number reads a number or its text, as written.
func (o *object) number(name string, aliases ...string) string {
	raw, found := o.takeAlias(name, aliases...)
	switch {
	case found == "":
		return ""
	case jsonwalk.Type(raw) == "a number":
		return jsonwalk.Cut(string(raw), maxShort)
	}
	return o.r.string(raw, o.at(found), maxShort)
}

// rating is what drafts had before value.
func (o *object) rating() string {
	for _, name := range []string{"score", "rating", "stars"} {
		m := o.find(name)
		if m == nil || jsonwalk.Type(m.raw) != "a number" && jsonwalk.Type(m.raw) != "a string" {
			continue
		}
		s := o.number(name)
		o.r.add(CodeRating, o.at(name), "read as a rating")
		return s
	}
	return ""
}

// decimals returns the number of decimals of the value; nil when the file gives none or one that
// the registry would refuse.
func (o *object) decimals() *uint8 {
	text := o.number("valueDecimals", "value_decimals", "decimals")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n > repute.MaxDecimals {
		o.r.add(CodeDecimalsForm, o.at("valueDecimals"), "%.80q is no integer from 0 to %d", text, repute.MaxDecimals)
		return nil
	}
	d := uint8(n)
	return &d
}

// prose is the first text for people. The others stay in Extra.
func (o *object) prose() string {
	for _, name := range []string{"text", "comment", "review", "feedback"} {
		if m := o.find(name); m != nil && jsonwalk.Type(m.raw) == "a string" {
			m.used = true
			return o.r.string(m.raw, o.at(name), maxText)
		}
	}
	return ""
}

// mcp reads which part of an MCP server was rated: from the nested member, from flat members, or
// in the form of drafts.
func (o *object) mcp() repute.FeedbackMCP {
	nested := o.child("mcp")
	m := repute.FeedbackMCP{
		Tool:     nested.or(o, "tool", "mcpTool"),
		Prompt:   nested.or(o, "prompt", "mcpPrompt"),
		Resource: nested.or(o, "resource", "mcpResource"),
	}
	o.keepUnread("mcp", nested)
	if m == (repute.FeedbackMCP{}) {
		m = o.capability()
	}
	return m
}

// capability reads the form of drafts: capability says which part of MCP, name says
// which of them.
func (o *object) capability() repute.FeedbackMCP {
	c, n := o.find("capability"), o.find("name")
	if c == nil || jsonwalk.Type(c.raw) != "a string" {
		return repute.FeedbackMCP{}
	}
	kind := o.flat("capability")
	name := kind
	if n != nil && jsonwalk.Type(n.raw) == "a string" {
		name = o.flat("name")
	}
	switch lower := strings.ToLower(kind); {
	case strings.HasPrefix(lower, "tool"):
		return repute.FeedbackMCP{Tool: name}
	case strings.HasPrefix(lower, "prompt"):
		return repute.FeedbackMCP{Prompt: name}
	case strings.HasPrefix(lower, "resource"):
		return repute.FeedbackMCP{Resource: name}
	}
	o.r.add(CodeCapabilityForm, o.at("capability"), "%.80q read as a tool", kind)
	return repute.FeedbackMCP{Tool: name}
}

// a2a reads which A2A skills and task were rated.
func (o *object) a2a() repute.FeedbackA2A {
	nested := o.child("a2a")
	a := repute.FeedbackA2A{
		Skills:    nested.orTexts(o, "skills", "a2aSkills", "skill"),
		ContextID: nested.or(o, "contextId", "a2aContextId", "context"),
		TaskID:    nested.or(o, "taskId", "a2aTaskId", "task"),
	}
	o.keepUnread("a2a", nested)
	return a
}

// oasf reads which skills and domains of OASF were rated.
func (o *object) oasf() repute.FeedbackOASF {
	nested := o.child("oasf")
	f := repute.FeedbackOASF{
		Skills:  nested.orTexts(o, "skills", "oasfSkills"),
		Domains: nested.orTexts(o, "domains", "oasfDomains"),
	}
	o.keepUnread("oasf", nested)
	return f
}

// or reads a text of the nested object, or else of the file under its flat names.
func (o *object) or(file *object, name string, flat ...string) string {
	s := o.text(name, maxShort)
	for _, f := range flat {
		if m := file.find(f); s == "" && m != nil && jsonwalk.Type(m.raw) == "a string" {
			s = file.flat(f)
		}
	}
	return s
}

// flat reads a text that the standard has in a nested object.
func (o *object) flat(name string) string {
	s := o.text(name, maxShort)
	o.r.add(CodeFlat, o.at(name), "read as part of a nested object")
	return s
}

// orTexts is or for a list. A lone text under a flat name is a list of one.
func (o *object) orTexts(file *object, name string, flat ...string) []string {
	list := o.texts(maxSkills, name)
	for _, f := range flat {
		m := file.find(f)
		if len(list) > 0 || m == nil {
			continue
		}
		switch jsonwalk.Type(m.raw) {
		case "a string":
			if s := file.flat(f); s != "" {
				list = []string{s}
			}
		case "an array":
			file.r.add(CodeFlat, file.at(f), "read as part of a nested object")
			list = file.texts(maxSkills, f)
		}
	}
	return list
}

// payment reads the payment that the file claims; nil when it claims none. Whether it took place
// is for the indexer to find out on the chain.
func (o *object) payment() *repute.PaymentClaim {
	nested := o.child("proofOfPayment", "proof_of_payment")
	if nested.members == nil {
		return nil
	}
	p := &repute.PaymentClaim{
		From:    nested.textOf("fromAddress", "from_address", "from"),
		To:      nested.textOf("toAddress", "to_address", "to"),
		ChainID: nested.number("chainId", "chain_id", "chain", "network"),
		TxHash:  nested.textOf("txHash", "tx_hash", "transactionHash", "transaction", "hash"),
	}
	o.keepUnread("proofOfPayment", nested)
	o.keepUnread("proof_of_payment", nested)
	o.r.judgePayment(nested, p)
	return p
}

// judgePayment reports what of a claim could not be looked up. On a chain of another
// namespace than eip155 the names have that namespace's form.
func (r *reader) judgePayment(o *object, p *repute.PaymentClaim) {
	foreign := isChainName(p.ChainID) && !isChain(p.ChainID)
	for _, part := range []struct {
		name, text string
		ok         bool
	}{
		{"fromAddress", p.From, isPayer(p.From, foreign)},
		{"toAddress", p.To, isPayer(p.To, foreign)},
		{"chainId", p.ChainID, foreign || isChain(p.ChainID)},
		{"txHash", p.TxHash, isHash(p.TxHash) || foreign && isForeignName(p.TxHash)},
	} {
		switch {
		case part.text == "":
			r.add(CodePaymentPart, o.at(part.name), "no %s", part.name)
		case !part.ok:
			r.add(CodePaymentForm, o.at(part.name), "%.80q is no %s", part.text, part.name)
		case part.name != "txHash":
			r.checksum(part.text, o.at(part.name))
		}
	}
}

// isPayer reports whether s names an account, alone or with its chain.
func isPayer(s string, foreign bool) bool {
	return isAddress(strings.ToLower(s)) || isAccount(strings.ToLower(s)) ||
		foreign && (isForeignName(s) || isForeignAccount(s))
}

// missingInFeedback reports what a feedback file should have.
func (r *reader) missingInFeedback(f repute.FeedbackFile) {
	switch {
	case f.Client == "":
		r.add(CodeNoClient, "/clientAddress", "no clientAddress")
	case isAddress(strings.ToLower(f.Client)):
		r.add(CodeClientBare, "/clientAddress", "no chain in clientAddress")
		r.checksum(f.Client, "/clientAddress")
	case isAccount(strings.ToLower(f.Client)):
		r.checksum(f.Client, "/clientAddress")
	case !isForeignAccount(f.Client):
		r.add(CodeClientForm, "/clientAddress", "%.80q is no account", f.Client)
	}
	switch {
	case f.CreatedAt == "":
		r.add(CodeNoCreated, "/createdAt", "no createdAt")
	case !isTime(f.CreatedAt):
		r.add(CodeCreatedForm, "/createdAt", "%.80q is no ISO 8601 time", f.CreatedAt)
	}
	switch _, ok := decimalOf(f.Value); {
	case f.Value == "" && f.Rating == "":
		r.add(CodeNoValue, "/value", "no value")
	case f.Value != "" && !ok:
		r.add(CodeValueForm, "/value", "%.80q is no number", f.Value)
	}
}

// isAccount reports whether the text is an account in CAIP-10 form.
func isAccount(s string) bool {
	_, err := repute.ParseAccount(s)
	return err == nil
}

// isChain reports whether the text is a chain id, decimal or as eip155:{chain}.
func isChain(s string) bool {
	_, err := repute.ParseChainID(strings.TrimPrefix(s, "eip155:"))
	return err == nil
}

// isHash reports whether the text has the form of a transaction hash.
func isHash(s string) bool {
	b, err := hexutil.Decode(s)
	return err == nil && len(b) == 32
}

// isTime reports whether the text is one of the ISO 8601 forms that files in use have, with or
// without seconds and time zone.
func isTime(s string) bool {
	return slices.ContainsFunc([]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", time.DateTime,
		time.DateOnly}, func(layout string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	})
}
