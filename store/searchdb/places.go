package searchdb

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/column"
	"repute/store/searchtext"
)

// isAgentID reports whether a folded text is an agent's id with its chain.
func isAgentID(text string) bool {
	ref, err := repute.ParseAgentRef(text)
	return err == nil && ref.ChainID != 0
}

// matchID finds the agent whose id is the text.
func (q *agentQuery) matchID(text string) {
	ref, err := repute.ParseAgentRef(text)
	if err != nil || ref.ChainID == 0 {
		return
	}
	sql := fmt.Sprintf("select a.*, %d as class from agents a where a.chain_id = any($1::bigint[]) and (a.chain_id, a.token_id) = (%s::bigint, %s::numeric)",
		classChain, q.arg(ref.ChainID), q.arg(column.BigNum{Int: ref.TokenID.ToBig()}))
	if ref.Registry != nil {
		sql += " and exists (select from chains c where c.chain_id = a.chain_id and c.identity = " +
			q.arg(ref.Registry.Bytes()) + ")"
	}
	q.match.agents = append(q.match.agents, sql)
}

// matchPlace finds a host, a URL or an address among the endpoints of documents, and the addresses
// and URIs of agents.
func (q *agentQuery) matchPlace(text, typed string) {
	whole, host := searchtext.PlaceOf(text)
	if whole == "" {
		return
	}
	m := q.match
	for _, place := range []struct {
		value string
		class int
	}{{whole, classExact}, {host, classHost}} {
		if place.value == "" {
			continue
		}
		at := "s.places @> array[" + q.arg(place.value) + "::text]"
		m.parts, m.class = append(m.parts, at), fmt.Sprintf("%s when %s then %d", m.class, at, place.class)
	}
	limit := fmt.Sprintf(" limit %d", maxHits)
	own := fmt.Sprintf("select a.*, %d as class from agents a where a.chain_id = any($1::bigint[]) and ", classChain)
	if common.IsHexAddress(whole) {
		address := q.arg(common.HexToAddress(whole).Bytes())
		m.agents = append(m.agents, own+"a.owner = "+address+limit,
			own+"a.wallet = "+address+" and a.wallet <> ''"+limit)
	} else if strings.Contains(text, "://") {
		m.agents = append(m.agents,
			own+"a.uri_id in (select id from uris where hash = any("+q.arg(urisLike(typed))+"))"+limit)
	}
}

// urisLike returns the hashes of URIs that a pasted URL may be: as typed, with and without final
// slash.
func urisLike(typed string) [][]byte {
	bare := strings.TrimRight(strings.TrimSpace(typed), "/")
	one, other := column.SHA256(bare), column.SHA256(bare+"/")
	return [][]byte{one[:], other[:]}
}
