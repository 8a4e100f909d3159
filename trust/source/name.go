package source

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// nameType is the type of a returned name of the Ethereum Name Service, such as alice.eth. It takes no single word: a
// plan has the values of nameValues instead.
const nameType = "string"

// Suffixes of the values that stand for a returned name.
const (
	nodeSuffix   = ".node"   // bytes32: the namehash of the whole name
	labelSuffix  = ".label"  // uint256: the hash of the first label, which is the token of a name of the second level
	parentSuffix = ".parent" // bytes32: the namehash of the name without its first label
)

// reverseName is the value with the node at which a registry has the reverse record of the rater's address.
const reverseName = raterName + ".reverse"

const (
	// maxName is the highest length of a name, in bytes. DNS has the same limit. A resolver stores longer ones too, and
	// nobody can use them.
	maxName = 255
	// ethereum is the chain whose reverse records are below addr.reverse.
	ethereum = 1
	// evmCoin is set in the coin types of all other EVM chains (ENSIP-11).
	evmCoin = 1 << 31
)

// errName is returned for an answer that is a string but no name that a registry can have.
var errName = errors.New("the answer is no name")

// nameValues returns the values that a plan has for a returned name. The words are in the order that decodeName returns
// them in.
func nameValues(name string) []value {
	hash := wordType{name: "bytes32", size: wordSize}
	return []value{{name + nodeSuffix, hash}, {name + labelSuffix, wordType{name: "uint256", size: 256}},
		{name + parentSuffix, hash}}
}

// decodeName decodes an answer that consists of one string, and returns the words of nameValues. The error is
// errEncoding for an answer that no ABI encoder writes, and errName for a string that is no name: the owner of a record
// chooses its text, so that a bad text says nothing about the contract. n is compared with the length of the data
// before it is converted, so that a huge length cannot overflow.
func decodeName(data []byte) ([]common.Hash, error) {
	const head = 2 * wordSize // the offset of the string and its length
	if len(data) < head || number(data) != wordSize {
		return nil, fmt.Errorf("%w: %d bytes are no string", errEncoding, len(data))
	}
	n := number(data[wordSize:])
	if n > uint64(len(data)) || head+int(n+wordSize-1)/wordSize*wordSize != len(data) {
		return nil, fmt.Errorf("%w: the string does not end with the answer", errEncoding)
	}
	text := string(data[head:][:min(n, maxName+1)])
	if n > maxName || !utf8.ValidString(text) {
		return nil, fmt.Errorf("%w: %d bytes %.40q", errName, n, text)
	}
	label, parent, _ := strings.Cut(text, ".")
	node, err := namehash(text)
	if err != nil {
		return nil, err
	}
	above, err := namehash(parent)
	return []common.Hash{node, crypto.Keccak256Hash([]byte(label)), above}, err
}

// namehash returns the node of a name as EIP-137 defines it; zero for the empty name. Names are not normalized: a name
// that is not normalized has a node that the registry does not know, or one that its owner has paid for.
func namehash(name string) (node common.Hash, err error) {
	if name == "" {
		return node, nil
	}
	labels := strings.Split(name, ".")
	for i := len(labels) - 1; i >= 0; i-- {
		if labels[i] == "" {
			return common.Hash{}, fmt.Errorf("%w: %.40q has an empty label", errName, name)
		}
		node = crypto.Keccak256Hash(node[:], crypto.Keccak256([]byte(labels[i])))
	}
	return node, nil
}

// reverseNode returns the node of an address's reverse record on a chain: that of <address>.addr.reverse on Ethereum,
// and of <address>.<coin type>.reverse on other chains (ENSIP-19), both in hexadecimal. The first chain is Ethereum
// itself; test networks are other chains in this sense.
func reverseNode(a common.Address, chain uint64) common.Hash {
	space := "addr"
	if chain != ethereum {
		space = strconv.FormatUint(chain|evmCoin, 16)
	}
	node, _ := namehash(hex.EncodeToString(a[:]) + "." + space + ".reverse") // has no empty label
	return node
}
