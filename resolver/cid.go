package resolver

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/ipfs/boxo/verifcid"
	"github.com/ipfs/go-cid"
	mh "github.com/multiformats/go-multihash"
)

// maxCIDText bounds the text that is passed to the CID decoder: a longer CID is identity data,
// which has its own URI forms.
const maxCIDText = 512

var errNoCID = errors.New("no CID")

// strongHashes are the multihashes whose match proves the bytes. The default list of the library
// also has SHA-1, for git.
var strongHashes = verifcid.NewAllowlist(map[uint64]bool{
	mh.IDENTITY:         true,
	mh.SHA2_256:         true,
	mh.SHA2_512:         true,
	mh.BLAKE3:           true,
	mh.BLAKE2B_MIN + 31: true, // blake2b-256
	mh.KECCAK_256:       true,
	mh.SHA3_256:         true,
})

// knownGateways serve /ipfs/{cid} to everyone: a URL on them names a CID, for which any gateway may
// answer.
var knownGateways = map[string]bool{
	"ipfs.io":                    true,
	"dweb.link":                  true,
	"gateway.pinata.cloud":       true,
	"cloudflare-ipfs.com":        true,
	"cf-ipfs.com":                true,
	"w3s.link":                   true,
	"nftstorage.link":            true,
	"4everland.io":               true,
	"gateway.ipfs.io":            true,
	"trustless-gateway.link":     true,
	"ipfs.filebase.io":           true,
	"ipfs.infura.io":             true,
	"gateway.lighthouse.storage": true,
	"storry.tv":                  true,
	"eu.orbitor.dev":             true,
	"apac.orbitor.dev":           true,
	"latam.orbitor.dev":          true,
}

// parseCIDPath reads "CID[/path][?query][#fragment]".
func parseCIDPath(s string) (cid.Cid, string, error) {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	text, rest, _ := strings.Cut(s, "/")
	id, err := parseCID(text)
	if err != nil {
		return cid.Undef, "", err
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return id, strings.TrimPrefix(path.Clean("/"+rest), "/"), nil
}

// parseCID decodes a CID of bounded length with a strong hash.
func parseCID(text string) (cid.Cid, error) {
	if len(text) > maxCIDText {
		return cid.Undef, errNoCID
	}
	id, err := cid.Decode(text)
	if err != nil {
		return cid.Undef, fmt.Errorf("%w: %w", errNoCID, err)
	}
	return id, checkStrong(id)
}

// checkStrong refuses a CID with a hash of which a second preimage can be found.
func checkStrong(id cid.Cid) error {
	if err := verifcid.ValidateCid(strongHashes, id); err != nil {
		return fmt.Errorf("cid %s: %w", id, err)
	}
	return nil
}

// gatewayRef recognizes {gateway}/ipfs/{cid}/… and {cid}.ipfs.{gateway}/….
func gatewayRef(u *url.URL) (Ref, bool) {
	host := strings.ToLower(u.Hostname())
	label, suffix, _ := strings.Cut(host, ".ipfs.")
	switch rest, isPath := strings.CutPrefix(u.EscapedPath(), "/ipfs/"); {
	case isPath && isGateway(host):
		return gatewayAt(u, u.Hostname(), rest)
	case suffix != "" && isGateway(suffix):
		return gatewayAt(u, suffix, label+u.EscapedPath())
	}
	return Ref{}, false
}

// isGateway reports whether a host is known to serve /ipfs/ paths.
func isGateway(host string) bool {
	return knownGateways[host] || strings.HasSuffix(host, ".mypinata.cloud")
}

// gatewayAt reads the rest of a gateway's URL as an ipfs path. The gateway is asked first when it
// is reached by https.
func gatewayAt(u *url.URL, host, rest string) (Ref, bool) {
	id, sub, err := parseCIDPath(rest)
	if err != nil {
		return Ref{}, false
	}
	ref := Ref{Kind: KindIPFS, Host: "ipfs", CID: id.String(), Path: sub}
	if u.Scheme == "https" {
		ref.Gateway = "https://" + strings.ToLower(host)
	}
	return ref, true
}
