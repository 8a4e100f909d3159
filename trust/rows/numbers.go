package rows

import (
	"context"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/flow"
)

// numbers numbers what many ratings have in common.
type numbers struct {
	writers   []common.Address
	writer    map[common.Address]uint32
	kinds     []kind
	kind      map[kindKey]uint32
	values    []repute.Amount
	value     map[string]uint32 // by the binary number and the decimals
	tags      []trustdb.SnapshotTag
	tag       map[int64]uint32
	tagsKnown int // tags of which the text was read
}

// kind is what a rating says, and the feedback gateway that wrote it.
type kind = kindKey

// kindKey has numbers in numbers. via is 1 more than the number of the gateway, 0 for none.
type kindKey struct{ value, tag1, tag2, via uint32 }

// newNumbers returns empty numbers.
func newNumbers() numbers {
	return numbers{writer: map[common.Address]uint32{}, kind: map[kindKey]uint32{}, value: map[string]uint32{},
		tag: map[int64]uint32{}}
}

// writerOf returns the number of an address.
func (n *numbers) writerOf(a common.Address) uint32 {
	i, known := n.writer[a]
	if !known {
		i = uint32(len(n.writers))
		n.writer[a], n.writers = i, append(n.writers, a)
	}
	return i
}

// tagOf returns the number of a tag by its key in the table of tags.
func (n *numbers) tagOf(key int64) uint32 {
	i, known := n.tag[key]
	if !known {
		i = uint32(len(n.tag))
		n.tag[key] = i
	}
	return i
}

// ratingOf returns a rating without its agent. The texts of its tags are not known before readTags.
func (n *numbers) ratingOf(from *trustdb.Snapshot, r *trustdb.SnapshotRating) (out rating, err error) {
	if r.Block > math.MaxUint32 || r.URI < 0 || r.URI > math.MaxUint32 {
		return out, fmt.Errorf("block %d, URI %d: beyond the numbers that the store has", r.Block, r.URI)
	}
	out = rating{block: uint32(r.Block), log: r.LogIndex, uri: uint32(r.URI)}
	if r.Time > 0 && r.Time <= math.MaxUint32 { // others do not count
		out.time = uint32(r.Time)
	}
	key := kindKey{tag1: n.tagOf(r.Tag1), tag2: n.tagOf(r.Tag2)}
	rater := r.Client
	if r.Payer != nil {
		key.via = n.writerOf(r.Client) + 1
		if len(r.Payer) > 0 {
			rater = common.BytesToAddress(r.Payer)
		}
	}
	out.writer = n.writerOf(rater)
	if key.value, err = n.valueOf(from, r); err != nil {
		return out, err
	}
	i, known := n.kind[key]
	if !known {
		i = uint32(len(n.kinds))
		n.kind[key], n.kinds = i, append(n.kinds, key)
	}
	out.kind = i
	return out, nil
}

// valueOf returns the number of a rating's value.
func (n *numbers) valueOf(from *trustdb.Snapshot, r *trustdb.SnapshotRating) (uint32, error) {
	var space [64]byte
	raw := append(append(space[:0], r.Value...), r.Decimals)
	if i, known := n.value[string(raw)]; known {
		return i, nil
	}
	v, err := from.DecodeValue(r.Value)
	if err != nil {
		return 0, fmt.Errorf("value: %w", err)
	}
	i := uint32(len(n.values))
	n.value[string(raw)], n.values = i, append(n.values, repute.Amount{Value: v.Int, Decimals: r.Decimals})
	return i, nil
}

// readTags reads the texts of tags that are new.
func (n *numbers) readTags(ctx context.Context, from *trustdb.Snapshot) error {
	if len(n.tag) == n.tagsKnown {
		return nil
	}
	n.tags = append(n.tags, make([]trustdb.SnapshotTag, len(n.tag)-len(n.tags))...)
	var keys []int64
	for key, i := range n.tag {
		if int(i) >= n.tagsKnown {
			keys = append(keys, key)
		}
	}
	const most = 10_000
	for len(keys) > 0 {
		part := keys[:min(most, len(keys))]
		keys = keys[len(part):]
		texts, err := from.Tags(ctx, part)
		if err != nil {
			return fmt.Errorf("tags: %w", err)
		}
		for key, text := range texts {
			n.tags[n.tag[key]] = text
		}
	}
	n.tagsKnown = len(n.tag)
	return nil
}

// readings has what the kinds of ratings mean by the parameters of a run, and the nodes of the raters in its graph.
type readings struct {
	params *trust.Params
	said   []*trust.Said // by kind; nil when it is not known
	graph  *flow.Graph
	nodes  []flow.Node // by writer
}

// mostKinds bounds the memory of readings.said. Beyond it each row is read by itself.
const mostKinds = 1 << 20

// newReadings reads all kinds.
func newReadings(n *numbers, p *trust.Params) *readings {
	out := &readings{params: p}
	if len(n.kinds) > mostKinds {
		return out
	}
	out.said = make([]*trust.Said, len(n.kinds))
	var row trust.Row
	for i := range n.kinds {
		n.row(&rating{kind: uint32(i)}, &row, nil)
		out.said[i] = p.Said(&row)
	}
	return out
}

// find sets the nodes of all writers in a graph.
func (r *readings) find(n *numbers, g *flow.Graph) {
	r.graph, r.nodes = g, make([]flow.Node, len(n.writers))
	for i, a := range n.writers {
		r.nodes[i] = g.Node(a)
	}
}

// row sets a row of evidence to a rating, with what readings have when they are not nil.
func (n *numbers) row(r *rating, to *trust.Row, by *readings) {
	k := &n.kinds[r.kind]
	*to = trust.Row{Block: uint64(r.block), LogIndex: r.log, Time: int64(r.time), Rater: n.writers[r.writer],
		Amount: n.values[k.value], Tag1: n.tags[k.tag1].Text, Tag2: n.tags[k.tag2].Text}
	if by != nil {
		to.Writer = r.writer + 1
		if by.said != nil {
			to.Said = by.said[r.kind]
		}
	}
	if n.tags[k.tag1].Other {
		to.Tag1 = trust.UnreadTag
	}
	if k.via != 0 {
		to.Via = n.writers[k.via-1]
	}
	to.Content = common.Hash{0: 1, 28: byte(r.uri >> 24), 29: byte(r.uri >> 16), 30: byte(r.uri >> 8), 31: byte(r.uri)}
}
