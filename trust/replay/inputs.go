package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/rating"
)

// The canonical form of a set of roots, of links, of validation contracts and of gateways: one JSON object without
// spaces, its entries in order of addresses and each address once. Its sha256 names the set.
type (
	rootSet struct {
		Roots []rootEntry `json:"roots"`
	}
	rootEntry struct {
		Address common.Address `json:"address"`
		Weight  uint64         `json:"weight"` // millionths
		Class   string         `json:"class,omitempty"`
		Rules   string         `json:"rules,omitempty"`
		Expires int64          `json:"expires,omitempty"` // Unix seconds
		Reason  string         `json:"reason,omitempty"`
	}
	linkSet struct {
		Links []linkEntry `json:"links"`
	}
	validationSet struct {
		Validations []common.Address `json:"validations"`
	}
	gatewaySet struct {
		Chain    uint64           `json:"chain"`
		Gateways []common.Address `json:"gateways"`
	}
	scaleSet struct {
		Scales []rating.FileScale `json:"scales"`
	}
	linkEntry struct {
		A      common.Address `json:"a"`
		B      common.Address `json:"b"`
		Reason string         `json:"reason,omitempty"`
		Source string         `json:"source,omitempty"`
	}
)

// NoRoots is the hash of a set without roots, of which no score can come.
func NoRoots() common.Hash { return HashInput(EncodeRoots(nil)) }

// EncodeRoots gives the canonical bytes of a set of roots, in whatever order. Of several
// entries for an address the heaviest stays.
func EncodeRoots(roots []repute.TrustRoot) []byte {
	set := rootSet{make([]rootEntry, len(roots))}
	for i, r := range roots {
		set.Roots[i] = rootEntry{Address: r.Address, Weight: r.Weight, Class: r.Class, Rules: r.Rules, Reason: r.Reason}
		if !r.Expires.IsZero() {
			set.Roots[i].Expires = r.Expires.Unix()
		}
	}
	slices.SortFunc(set.Roots, func(a, b rootEntry) int {
		return cmp.Or(a.Address.Cmp(b.Address), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Expires, b.Expires),
			cmp.Compare(a.Reason, b.Reason))
	})
	set.Roots = slices.CompactFunc(set.Roots, func(a, b rootEntry) bool { return a.Address == b.Address })
	return canonical(set)
}

// DecodeRoots reads what EncodeRoots wrote.
func DecodeRoots(body []byte) ([]repute.TrustRoot, error) {
	set, err := decode[rootSet]("roots", body)
	if err != nil {
		return nil, err
	}
	roots := make([]repute.TrustRoot, len(set.Roots))
	for i, r := range set.Roots {
		roots[i] = repute.TrustRoot{Address: r.Address, Weight: r.Weight, Class: r.Class, Rules: r.Rules,
			Reason: r.Reason}
		if r.Expires != 0 {
			roots[i].Expires = time.Unix(r.Expires, 0).UTC()
		}
	}
	return roots, nil
}

// EncodeLinks gives the canonical bytes of links, in whatever order and direction. Of
// several between two addresses one stays.
func EncodeLinks(links []repute.TrustLink) []byte {
	set := linkSet{make([]linkEntry, len(links))}
	for i, l := range links {
		if l.A.Cmp(l.B) > 0 {
			l.A, l.B = l.B, l.A
		}
		set.Links[i] = linkEntry(l)
	}
	slices.SortFunc(set.Links, func(a, b linkEntry) int {
		return cmp.Or(a.A.Cmp(b.A), a.B.Cmp(b.B), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Source, b.Source))
	})
	set.Links = slices.CompactFunc(set.Links, func(a, b linkEntry) bool { return a.A == b.A && a.B == b.B })
	return canonical(set)
}

// DecodeLinks reads what EncodeLinks wrote.
func DecodeLinks(body []byte) ([]repute.TrustLink, error) {
	set, err := decode[linkSet]("links", body)
	if err != nil {
		return nil, err
	}
	links := make([]repute.TrustLink, len(set.Links))
	for i, l := range set.Links {
		links[i] = repute.TrustLink(l)
	}
	return links, nil
}

// EncodeValidations gives the canonical bytes of the list of validation contracts whose
// answers count, in whatever order.
func EncodeValidations(contracts []common.Address) []byte {
	return canonical(validationSet{inOrder(contracts)})
}

// inOrder returns addresses in order, each once, and never nil.
func inOrder(list []common.Address) []common.Address {
	list = append([]common.Address{}, list...)
	slices.SortFunc(list, common.Address.Cmp)
	return slices.Compact(list)
}

// DecodeValidations reads what EncodeValidations wrote.
func DecodeValidations(body []byte) ([]common.Address, error) {
	set, err := decode[validationSet]("validation contracts", body)
	return set.Validations, err
}

// EncodeGateways gives the canonical bytes of a chain's list of feedback gateways, in whatever order. It returns nil
// for an empty list, which a run does not name.
func EncodeGateways(chain uint64, contracts []common.Address) []byte {
	if len(contracts) == 0 {
		return nil
	}
	return canonical(gatewaySet{chain, inOrder(contracts)})
}

// HashGateways names what EncodeGateways returns, by the zero hash when that is nil.
func HashGateways(chain uint64, contracts []common.Address) common.Hash {
	if body := EncodeGateways(chain, contracts); body != nil {
		return HashInput(body)
	}
	return common.Hash{}
}

// EncodeFileScales gives the canonical bytes of the scales that files of feedback state, in order of rater and tag.
func EncodeFileScales(scales []rating.FileScale) []byte {
	set := scaleSet{append([]rating.FileScale{}, scales...)}
	slices.SortFunc(set.Scales, func(a, b rating.FileScale) int {
		return cmp.Or(a.Rater.Cmp(b.Rater), cmp.Compare(a.Tag, b.Tag))
	})
	return canonical(set)
}

// DecodeFileScales reads what EncodeFileScales wrote; nothing for an empty body.
func DecodeFileScales(body []byte) ([]rating.FileScale, error) {
	if len(body) == 0 {
		return nil, nil
	}
	set, err := decode[scaleSet]("scales of feedback files", body)
	return set.Scales, err
}

// HashInput names the canonical bytes of an input of scores.
func HashInput(body []byte) common.Hash { return sha256.Sum256(body) }

// canonical cannot fail: there is nothing in the sets that JSON has no form for.
func canonical(set any) []byte {
	body, _ := json.Marshal(set)
	return body
}

// decode is readCanonical of a set, whose error says what set it is. The set is empty then.
func decode[S any](what string, body []byte) (set S, err error) {
	if err := readCanonical(body, &set); err != nil {
		return *new(S), fmt.Errorf("%s: %w", what, err)
	}
	return set, nil
}

// readCanonical decodes a stored set and refuses unknown fields and anything behind it.
func readCanonical(body []byte, set any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(set); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("something follows the set")
	}
	return nil
}
