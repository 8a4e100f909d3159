package statement

import (
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// The domain. Chain and registry are the agent's.
const (
	domainName    = "repute trust score"
	domainVersion = "6"
	primaryType   = "TrustScore"
)

// member is a member of a typed struct.
type member struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// domainMembers are the members of the domain of scores, in the order of EIP-712.
func domainMembers() []member {
	return []member{{"name", "string"}, {"version", "string"}, {"chainId", "uint256"}, {"verifyingContract", "address"}}
}

// value is a member with what a statement has there.
type value struct {
	member
	of any // uint64, int64, bool, string, [32]byte or *big.Int
}

// values are the members of a statement in their order.
func (s *Statement) values() []value {
	v := func(name, kind string, of any) value { return value{member{name, kind}, of} }
	return []value{
		v("agentId", "uint256", s.Agent.TokenID.ToBig()),
		v("status", "string", string(s.Status)),
		v("scoreMilli", "int256", int64(s.Score)),
		v("lowMilli", "int256", int64(s.Low)),
		v("highMilli", "int256", int64(s.High)),
		v("confidenceMicro", "uint256", uint64(s.Confidence)),
		v("tier", "uint256", uint64(s.Tier)),
		v("guarded", "bool", s.Guarded),
		v("blockNumber", "uint256", s.Block.Number),
		v("blockHash", "bytes32", s.Block.Hash),
		v("blockTime", "uint256", unix(s.Block.Time)),
		v("holdsBlock", "uint256", s.Holds.Number),
		v("holdsTime", "uint256", unix(s.Holds.Time)),
		v("verifiedTo", "uint256", s.Holds.VerifiedTo),
		v("epoch", "uint256", s.Epoch),
		v("scorer", "string", s.Scorer),
		v("params", "bytes32", s.Params),
		v("tags", "bytes32", s.Tags),
		v("roots", "bytes32", s.Roots),
		v("links", "bytes32", s.Links),
		v("sources", "bytes32", s.Sources),
		v("credentials", "bytes32", s.Credentials),
		v("fileScales", "bytes32", s.FileScales),
		v("evidence", "bytes32", s.Evidence),
		v("issuedAt", "uint256", unix(s.IssuedAt)),
		v("expiresAt", "uint256", unix(s.ExpiresAt)),
	}
}

// unix is a time in whole seconds, 0 before 1970: the types have no negative times.
func unix(t time.Time) uint64 { return uint64(max(0, t.Unix())) }

// encodeType is EIP-712's encodeType of a struct without nested ones.
func encodeType(name string, members []member) string {
	out := name + "("
	for i, m := range members {
		if i > 0 {
			out += ","
		}
		out += m.Type + " " + m.Name
	}
	return out + ")"
}

// hashStruct is EIP-712's of values, which stand in the struct's order.
func hashStruct(name string, values []value) common.Hash {
	members := make([]member, len(values))
	for i, v := range values {
		members[i] = v.member
	}
	data := crypto.Keccak256([]byte(encodeType(name, members)))
	for _, v := range values {
		data = append(data, word(v.of)...)
	}
	return crypto.Keccak256Hash(data)
}

// word is a value in 32 bytes; texts are hashed.
func word(of any) []byte {
	switch v := of.(type) {
	case bool:
		return common.LeftPadBytes([]byte{map[bool]byte{true: 1}[v]}, 32)
	case uint64:
		return common.BigToHash(new(big.Int).SetUint64(v)).Bytes()
	case int64:
		fill := byte(0)
		if v < 0 {
			fill = 0xff
		}
		out := make([]byte, 32)
		for i := range out {
			out[i] = fill
		}
		for i := range 8 {
			out[31-i] = byte(uint64(v) >> (8 * i))
		}
		return out
	case *big.Int:
		return common.BigToHash(v).Bytes()
	case common.Hash:
		return v.Bytes()
	case common.Address:
		return common.LeftPadBytes(v.Bytes(), 32)
	case string:
		return crypto.Keccak256([]byte(v))
	}
	return make([]byte, 32) // values has no others
}

// domain is the EIP-712 domain separator of an agent's registry.
func domain(id repute.AgentID) common.Hash {
	m := domainMembers()
	return hashStruct("EIP712Domain", []value{{m[0], domainName}, {m[1], domainVersion}, {m[2], id.ChainID},
		{m[3], id.Registry}})
}

// Hash is what is signed.
func (s Statement) Hash() common.Hash {
	separator, message := domain(s.Agent), hashStruct(primaryType, s.values())
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, separator[:], message[:])
}
