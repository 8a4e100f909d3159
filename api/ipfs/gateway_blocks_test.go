package ipfs

import (
	"bytes"
	"testing"

	"github.com/ipfs/boxo/ipld/merkledag"
)

// Links are counted as the library decodes them, however long their tags are written.
func TestCountLinks(t *testing.T) {
	t.Parallel()
	leaf := merkledag.NewRawNode([]byte("leaf")).Cid().Bytes()
	link := append([]byte{0x0a, byte(len(leaf))}, leaf...)
	for name, tag := range map[string][]byte{"plain": {0x12}, "long": {0x92, 0x00},
		"longer": {0x92, 0x80, 0x80, 0x00}} {
		node := bytes.Repeat(append(append(bytes.Clone(tag), byte(len(link))), link...), 100)
		nd, err := merkledag.DecodeProtobuf(node)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := countLinks(node); got != len(nd.Links()) || got != 100 {
			t.Errorf("%s: counted %d, decoded %d", name, got, len(nd.Links()))
		}
	}
	for name, node := range map[string][]byte{"empty": nil, "tag alone": {0x12},
		"endless tag": bytes.Repeat([]byte{0x80}, 20),
		"too short":   {0x12, 5, 1}, "huge": {0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		if got := countLinks(node); got != 0 {
			t.Errorf("%s: counted %d", name, got)
		}
	}
}
