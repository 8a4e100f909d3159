package manifest

import (
	"math/big"
	"strconv"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// Links tells whether a registration file claims to be this agent's. Entries that
// cannot be read name nobody.
func Links(reg repute.Registration, agent repute.AgentID) repute.LinkResult {
	verdict := repute.LinkUnlinked
	for _, link := range reg.Registrations {
		id, ok := LinkedAgent(link)
		switch {
		case !ok:
		case id == agent:
			return repute.LinkLinked
		default:
			verdict = repute.LinkOther
		}
	}
	return verdict
}

// MatchRegistration reports a registration file that names other agents, and not the
// one whose URI points to it. One that names none was told so by Parse.
func MatchRegistration(reg repute.Registration, agent repute.AgentID) []repute.Problem {
	r := &reader{area: areaAgent}
	if Links(reg, agent) == repute.LinkOther {
		r.add(CodeLinkOther, "/registrations", "%s is not among them", agent)
	}
	return r.problems
}

// LinkedAgent is the agent that an entry of registrations names; false when it names
// none. Addresses count whatever their capitals.
func LinkedAgent(link repute.RegistrationLink) (repute.AgentID, bool) {
	registry, ok := registryOf(link.Registry)
	if link.TokenID == nil || !ok {
		return repute.AgentID{}, false
	}
	return repute.AgentID{ChainID: registry.ChainID, Registry: registry.Address, TokenID: *link.TokenID}, true
}

// MatchFeedback compares a feedback file with the rating that points to it. What the
// file leaves out is no difference.
func MatchFeedback(file repute.FeedbackFile, rating repute.Feedback) []repute.Problem {
	r := &reader{area: areaFeedback}
	r.matchClient(file, rating)
	r.matchAgent(file, rating)
	if claimed := file.Value; claimed != "" && !sameValue(file, rating) {
		r.add(CodeOtherValue, "/value", "%.80q, on chain %s", claimed,
			repute.Amount{Value: rating.Value, Decimals: rating.Decimals}.Decimal())
	}
	// A cut text cannot be compared.
	if !rating.Partial {
		r.matchText(CodeOtherTag, "/tag1", file.Tag1, rating.Tag1)
		r.matchText(CodeOtherTag, "/tag2", file.Tag2, rating.Tag2)
		r.matchText(CodeOtherEndpoint, "/endpoint", file.Endpoint, rating.Endpoint)
	}
	return r.problems
}

// matchClient reports a file that names another client than the one who sent the rating.
func (r *reader) matchClient(file repute.FeedbackFile, rating repute.Feedback) {
	// The chain in front of the address is often a guess; the address is what counts.
	client, err := repute.ParseAddress("", file.Client[strings.LastIndexByte(file.Client, ':')+1:])
	if err == nil && client != rating.Client {
		r.add(CodeOtherClient, "/clientAddress", "%s, on chain %s", client.Hex(), rating.Client.Hex())
	}
}

// matchAgent reports a file that names another agent than the one that was rated.
func (r *reader) matchAgent(file repute.FeedbackFile, rating repute.Feedback) {
	want := rating.Agent
	if file.TokenID != nil && *file.TokenID != want.TokenID {
		r.add(CodeOtherAgent, "/agentId", "%s, on chain %s", file.TokenID.Dec(), want.TokenID.Dec())
		return
	}
	link := repute.RegistrationLink{TokenID: &want.TokenID, Registry: file.Registry}
	if id, ok := LinkedAgent(link); ok && id != want {
		r.add(CodeOtherAgent, "/agentRegistry", "%s, on chain %s", id, want)
	}
}

// matchText reports a text of the file that differs from the one on the chain. The file need not
// repeat it.
func (r *reader) matchText(code, path, claimed, onChain string) {
	if claimed != "" && claimed != jsonwalk.Clean(onChain) {
		r.add(code, path, "%.80q, on chain %.80q", claimed, onChain)
	}
}

// sameValue tells whether the file's value is the rating's, read as the integer that
// was sent or as the number it stands for: writers do either.
func sameValue(file repute.FeedbackFile, rating repute.Feedback) bool {
	claimed, ok := decimalOf(file.Value)
	if !ok || rating.Value == nil {
		return !ok // reported by ParseFeedback
	}
	sent := new(big.Rat).SetInt(rating.Value)
	meant := new(big.Rat).Quo(sent, scale(rating.Decimals))
	decimals := rating.Decimals
	if file.Decimals != nil {
		decimals = *file.Decimals
	}
	scaled := new(big.Rat).Quo(claimed, scale(decimals))
	return scaled.Cmp(meant) == 0 || claimed.Cmp(meant) == 0
}

// scale returns ten to the power of decimals.
func scale(decimals uint8) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
}

// maxExponent bounds the numbers that are computed with: int128 has 39 digits.
const maxExponent = 60

// decimalOf reads a decimal number exactly; false for anything else, and for numbers
// that no rating can have.
func decimalOf(s string) (*big.Rat, bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e > maxExponent || e < -maxExponent) {
		return nil, false
	}
	if mantissa == "" || len(mantissa) > 2*maxExponent || strings.Trim(mantissa, "+-.0123456789") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
