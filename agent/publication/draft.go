package publication

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

// Draft has the values of a starter manifest for a service without this runtime.
type Draft struct {
	Domain        string // the host that will serve the manifest
	PayoutAddress string // the zero address, which a check reports, where it is not known yet
	DisplayName   string
	Description   string
	PublicKey     ed25519.PublicKey // adds identity, nil for none
}

// Write makes a manifest for the domain, with one intent to start from. repute.ErrInvalid: the domain is none, or the
// payout address is not an address.
func (d *Draft) Write() ([]byte, error) {
	if d.Domain == "" {
		return nil, repute.Invalid("domain", "is missing", "--domain HOST, without scheme, port and path")
	}
	origin, ok := agentjson.PublicHost(d.Domain)
	if !ok {
		return nil, repute.Invalid("domain", fmt.Sprintf("%.80q is no public domain name", d.Domain),
			"the host that serves the file, without scheme, port and path")
	}
	payout := cmp.Or(d.PayoutAddress, common.Address{}.Hex())
	if _, err := repute.ParseAddress("payout", payout); err != nil {
		return nil, err
	}
	doc := manifest{Version: version, Origin: origin, PayoutAddress: payout, DisplayName: d.DisplayName,
		Description: d.Description, Intents: []intent{{Name: "search",
			Description: "Say here what the intent does, what it answers and where its limits are.",
			Endpoint:    "/api/search", Method: http.MethodGet,
			Parameters: map[string]parameter{"query": {Type: "string", Required: true, Description: "What to look for"}}}}}
	if d.PublicKey != nil {
		doc.Identity = &identityDoc{identity.WebDID(origin), identity.EncodeKey(d.PublicKey)}
	}
	return doc.encode()
}
