package main

import (
	"context"
	"fmt"
	"math/big"
	"net/url"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/devnet"
	"repute/trust/statement"
)

// verification compares what the public API answers with what the chain's own view functions say, agent by agent. Both
// are asked for the same block: the index is settled at the head, and the chain makes no block while it runs. Its
// exported fields are the demo's summary.
type verification struct {
	base  string // of the API
	chain uint64
	view  devnet.View

	Block      uint64         `json:"block"`
	Checked    map[string]int `json:"checked"`   // comparisons by kind
	Documents  map[string]int `json:"documents"` // agents by document status
	Mismatches []string       `json:"mismatches"`
}

// newVerification returns a comparison of the API at a URL with a devnet.
func newVerification(base string, dn *devnet.Devnet) *verification {
	head := dn.Head().Number
	return &verification{base: base, chain: dn.Chain().ID, view: dn.ViewAt(head), Block: head,
		Checked: map[string]int{}, Documents: map[string]int{}, Mismatches: []string{}}
}

// run checks every agent. An error means that something could not be asked;
// differences are in Mismatches.
func (v *verification) run(ctx context.Context) error {
	want, err := v.view.AgentCount(ctx)
	if err != nil {
		return err
	}
	ids, err := pages[wire.Agent](ctx, v, "/agents", url.Values{"sort": {"id"}})
	if err != nil {
		return err
	}
	v.compare("agents", "all", len(ids), int(want))
	if err := v.keys(ctx); err != nil {
		return err
	}
	for token := range want {
		for _, check := range []func(context.Context, uint64) error{v.agent, v.feedback, v.summaries, v.validations} {
			if err := check(ctx, token); err != nil {
				return fmt.Errorf("agent %d: %w", token, err)
			}
		}
	}
	return nil
}

// keys checks that the demo has a key of its own to sign statements with.
func (v *verification) keys(ctx context.Context) error {
	var list statement.KeyList
	if err := getJSON(ctx, v.base+"/.well-known/repute-keys.json", &list); err != nil {
		return err
	}
	v.compare("keys of statements", "all", len(list.Keys), 1)
	return nil
}

// compare counts one comparison and records a difference.
func (v *verification) compare(kind string, subject, got, want any) {
	v.Checked[kind]++
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.Mismatches = append(v.Mismatches, fmt.Sprintf("%s of %v: index %v, chain %v", kind, subject, got, want))
	}
}

// get asks the API for a path under the chain.
func (v *verification) get(ctx context.Context, path string, query url.Values, into any) error {
	return getJSON(ctx, fmt.Sprintf("%s/chains/%d%s?%s", v.base, v.chain, path, query.Encode()), into)
}

// pages walks a list of the API to its end, and returns its items.
func pages[T any](ctx context.Context, v *verification, path string, query url.Values) ([]T, error) {
	var all []T
	query.Set("limit", "37") // no divisor of anything, so that pages break at odd places
	for {
		var page struct {
			Items []T     `json:"items"`
			Next  *string `json:"next"`
		}
		if err := v.get(ctx, path, query, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all, nil
		}
		query.Set("cursor", *page.Next)
	}
}

// agent compares an agent with the Identity Registry: its owner, URI, wallet, approved account and metadata.
func (v *verification) agent(ctx context.Context, token uint64) error {
	var got wire.AgentAnswer
	if err := v.get(ctx, fmt.Sprintf("/agents/%d", token), nil, &got); err != nil {
		return err
	}
	owner, err := v.view.OwnerOf(ctx, token)
	if err != nil {
		return err
	}
	uri, err := v.view.TokenURI(ctx, token)
	if err != nil {
		return err
	}
	wallet, err := v.view.AgentWallet(ctx, token)
	if err != nil {
		return err
	}
	approved, err := v.view.Approved(ctx, token)
	if err != nil {
		return err
	}
	subject := got.ShortID
	v.compare("owner", subject, got.Owner, owner.Hex())
	v.compare("uri", subject, raw(got.URI, got.URIHex), shownAs(uri, got.URI, int64(got.URISize) > int64(len(got.URI))))
	v.compare("wallet", subject, addressOrZero(got.Wallet), wallet.Hex())
	v.compare("approved", subject, addressOrZero(got.Approved), approved.Hex())
	v.Documents[got.Document.Status]++
	return v.metadata(ctx, token, got)
}

// metadata compares each metadata entry of an agent that the API shows with the value that the contract returns.
func (v *verification) metadata(ctx context.Context, token uint64, got wire.AgentAnswer) error {
	for _, m := range got.Metadata {
		key := raw(m.Key, m.KeyHex)
		value, err := v.view.Metadata(ctx, token, key)
		if err != nil {
			return err
		}
		v.compare("metadata", fmt.Sprintf("%s %q", got.ShortID, key), m.Value, fmt.Sprintf("0x%x", value))
	}
	return nil
}

// raw returns the chain's own bytes of a text that was changed to be valid JSON.
func raw(text string, hex *wire.Hex) string {
	if hex == nil {
		return text
	}
	return string(common.FromHex(string(*hex)))
}

// shownAs is a whole text as an answer shows it that had to cut texts: it ends with an ellipsis.
func shownAs(whole, shown string, partial bool) string {
	head, cut := strings.CutSuffix(shown, "…")
	if partial && cut && len(shown) > 1000 && strings.HasPrefix(whole, head) {
		return shown
	}
	return whole
}

// addressOrZero is an address of an answer, or the zero address, which contracts return for none.
func addressOrZero(s *wire.Address) string {
	if s == nil {
		return common.Address{}.Hex()
	}
	return string(*s)
}

// rating is one line of feedback, printed to be compared.
func rating(client string, index uint64, value string, decimals uint8, tag1, tag2 string, revoked bool) string {
	return fmt.Sprintf("%s/%d %s@%d %q %q revoked=%t", client, index, value, decimals, tag1, tag2, revoked)
}

// feedback compares all ratings of an agent, revoked ones too, with what the Reputation Registry returns.
func (v *verification) feedback(ctx context.Context, token uint64) error {
	got, err := pages[wire.Feedback](ctx, v, fmt.Sprintf("/agents/%d/feedback", token),
		url.Values{"includeRevoked": {"true"}})
	if err != nil {
		return err
	}
	want, err := v.view.AllFeedback(ctx, token)
	if err != nil {
		return err
	}
	subject := fmt.Sprint(token)
	v.compare("feedback count", subject, len(got), len(want))
	indexed := map[string]wire.Feedback{}
	for _, f := range got {
		indexed[fmt.Sprint(f.Client, " ", f.Index)] = f
	}
	for _, w := range want {
		g := indexed[fmt.Sprint(w.Client.Hex(), " ", w.Index)]
		tag1, tag2 := raw(g.Tag1, g.Tag1Hex), raw(g.Tag2, g.Tag2Hex)
		v.compare("feedback", subject, rating(string(g.Client), uint64(g.Index), string(g.Value),
			uint8(g.Decimals), tag1,
			tag2, g.IsRevoked),
			rating(w.Client.Hex(), w.Index, w.Value.String(), w.Decimals, shownAs(w.Tag1, tag1, g.Partial),
				shownAs(w.Tag2, tag2, g.Partial), w.Revoked))
		responses, err := v.view.ResponseCount(ctx, token, w.Client, w.Index)
		if err != nil {
			return err
		}
		v.compare("responses", subject, g.ResponseCount, responses)
	}
	return nil
}

// summaries asks for everybody, for single clients, for a client twice and for
// every tag, and checks the per-tag view against the raw feedback.
func (v *verification) summaries(ctx context.Context, token uint64) error {
	clients, err := v.view.Clients(ctx, token)
	if err != nil {
		return err
	}
	all, err := v.view.AllFeedback(ctx, token)
	if err != nil || len(clients) == 0 {
		return err
	}
	if err := v.summary(ctx, token, nil, clients, "", ""); err != nil {
		return err
	}
	some := append([]common.Address{clients[0], clients[0]}, clients[:(len(clients)+1)/2]...)
	if err := v.summary(ctx, token, some, some, "", ""); err != nil {
		return err
	}
	asked := map[string]bool{}
	for _, f := range all {
		if key := f.Tag1 + "\x00" + f.Tag2; !asked[key] {
			asked[key] = true
			if err := v.summary(ctx, token, some, some, f.Tag1, f.Tag2); err != nil {
				return err
			}
		}
	}
	return v.tags(ctx, token, all)
}

// summary compares a summary by the given clients and tag with that of the contract.
func (v *verification) summary(ctx context.Context, token uint64, asked, counted []common.Address, tag1,
	tag2 string) error {
	query := url.Values{}
	for _, c := range asked {
		query.Add("clients", c.Hex())
	}
	if len(asked) > 0 {
		query.Set("clients", strings.Join(query["clients"], ","))
	}
	if tag1 != "" {
		query.Set("tag1", tag1)
	}
	if tag2 != "" {
		query.Set("tag2", tag2)
	}
	var got wire.ReputationAnswer
	if err := v.get(ctx, fmt.Sprintf("/agents/%d/reputation", token), query, &got); err != nil {
		return err
	}
	want, err := v.view.Summary(ctx, token, counted, tag1, tag2)
	if err != nil {
		return err
	}
	v.compare("summary", fmt.Sprintf("%d %q %q", token, tag1, tag2),
		fmt.Sprintf("%d × %s@%d", got.Summary.Count, got.Summary.Value, got.Summary.Decimals),
		fmt.Sprintf("%d × %s@%d", want.Count, want.Value, want.Decimals))
	return nil
}

// tags recomputes the robust view from the registry's own list.
func (v *verification) tags(ctx context.Context, token uint64, all []devnet.FeedbackView) error {
	votes := map[string]map[common.Address]repute.Amount{}
	for _, f := range all { // ascending index per client: the last live one stays
		if f.Revoked {
			continue
		}
		if votes[f.Tag1] == nil {
			votes[f.Tag1] = map[common.Address]repute.Amount{}
		}
		votes[f.Tag1][f.Client] = repute.Amount{Value: new(big.Int).Set(f.Value), Decimals: f.Decimals}
	}
	var got wire.ReputationAnswer
	if err := v.get(ctx, fmt.Sprintf("/agents/%d/reputation", token), nil, &got); err != nil {
		return err
	}
	v.compare("tag count", fmt.Sprint(token), len(got.Tags), len(votes))
	for _, g := range got.Tags {
		var want repute.TagSummary
		var list []repute.VoteTally
		tag := raw(g.Tag, g.TagHex)
		for whole, byClient := range votes {
			if shownAs(whole, tag, g.Partial) == tag {
				for _, vote := range byClient {
					list = append(list, repute.VoteTally{Amount: vote, Count: 1})
				}
			}
		}
		if len(list) > 0 {
			want.SummarizeTallies(list)
		}
		v.compare("tag", fmt.Sprintf("%d %q", token, g.Tag), fmt.Sprint(g.Reviewers, g.Median.Decimal, g.Min.Decimal,
			g.Max.Decimal),
			fmt.Sprint(want.Reviewers, want.Median.Decimal(), want.Min.Decimal(), want.Max.Decimal()))
	}
	return nil
}

// validations compares the validation requests of an agent, and their answers, with each Validation Registry.
func (v *verification) validations(ctx context.Context, token uint64) error {
	got, err := pages[wire.Validation](ctx, v, fmt.Sprintf("/agents/%d/validations", token), url.Values{})
	if err != nil {
		return err
	}
	hashes, err := v.view.Validations(ctx, token)
	if err != nil {
		return err
	}
	subject := fmt.Sprint(token)
	v.compare("validation count", subject, len(got), len(hashes))
	for _, g := range got {
		want, err := v.view.ValidationStatus(ctx, common.HexToHash(string(g.RequestHash)))
		if err != nil {
			return err
		}
		response, tag := int32(0), ""
		if g.Answer != nil {
			response, tag = g.Answer.Response, g.Answer.Tag
		}
		v.compare("validation", subject, fmt.Sprint(g.Validator, response, tag),
			fmt.Sprint(want.Validator.Hex(), want.Response, want.Tag))
	}
	return nil
}
