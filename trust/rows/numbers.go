package rows

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rating"
)

// numbers numbers what many ratings have in common.
type numbers struct {
	addresses flow.Addresses // raters, gateways and owners
	kinds     []kind
	kind      map[kind]uint32
	values    []repute.Amount
	value     map[string]uint32 // by the binary number and the decimals
	tags      []trustdb.SnapshotTag
	tag       map[int64]uint32
	tagsKnown int // tags of which the text was read
}

// kind is what a rating says, and the feedback gateway that wrote it, by their numbers in numbers. via is 1 more than
// the number of the gateway, 0 for none.
type kind struct{ value, tag1, tag2, via uint32 }

// newNumbers returns empty numbers.
func newNumbers() numbers {
	return numbers{kind: map[kind]uint32{}, value: map[string]uint32{}, tag: map[int64]uint32{}}
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
func (n *numbers) ratingOf(from *trustdb.Snapshot, r *trustdb.SnapshotRating) (out rating.PackedRow, err error) {
	if r.Block > math.MaxUint32 || r.URI < 0 || r.URI > math.MaxUint32 {
		return out, fmt.Errorf("block %d, URI %d: beyond the numbers that the store has", r.Block, r.URI)
	}
	out = rating.PackedRow{Block: uint32(r.Block), Log: r.LogIndex, Content: uint32(r.URI)}
	if r.Time > 0 && r.Time <= math.MaxUint32 { // others do not count
		out.Time = uint32(r.Time)
	}
	key := kind{tag1: n.tagOf(r.Tag1), tag2: n.tagOf(r.Tag2)}
	rater := r.Client
	if r.Payer != nil {
		key.via = n.addresses.Add(r.Client) + 1
		if len(r.Payer) > 0 {
			rater = common.BytesToAddress(r.Payer)
		}
	}
	out.Writer = n.addresses.Add(rater)
	if key.value, err = n.valueOf(from, r); err != nil {
		return out, err
	}
	i, known := n.kind[key]
	if !known {
		i = uint32(len(n.kinds))
		n.kind[key], n.kinds = i, append(n.kinds, key)
	}
	out.Kind = i
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
	for part := range slices.Chunk(keys, most) {
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
	params  *rating.Params
	packing *rating.Packing
	graph   *flow.Graph
}

// mostKinds bounds the memory of kinds. Beyond it each row is read by itself.
const mostKinds = 1 << 20

// newReadings reads all kinds.
func newReadings(n *numbers, p *rating.Params) *readings {
	out := &readings{params: p, packing: &rating.Packing{Raters: n.addresses.List(), Expand: n.row}}
	if len(n.kinds) > mostKinds {
		return out
	}
	out.packing.Kinds = make([]rating.PackedKind, len(n.kinds))
	texts := map[string]uint32{}
	var row rating.Row
	for i := range n.kinds {
		n.row(&rating.PackedRow{Kind: uint32(i)}, &row)
		k := &out.packing.Kinds[i]
		k.Said, k.Via = p.Said(&row), n.kinds[i].via
		text := fmt.Sprintf("%s %d %s %s", row.Amount.Decimal(), len(row.Tag1), row.Tag1, row.Tag2)
		number, known := texts[text]
		if !known {
			number = uint32(len(texts))
			texts[text] = number
		}
		k.Text = number
	}
	return out
}

// find sets the nodes of all raters in a graph that was built of the same numbers of addresses.
func (r *readings) find(g *flow.Graph) {
	r.graph, r.packing.Nodes = g, g.Nodes()[:len(r.packing.Raters)]
}

// said returns what a kind means, nil when it is unknown.
func (r *readings) said(kind uint32) *rating.Said {
	if int(kind) >= len(r.packing.Kinds) {
		return nil
	}
	return r.packing.Kinds[kind].Said
}

// row sets a row of evidence to a rating.
func (n *numbers) row(r *rating.PackedRow, to *rating.Row) {
	k := &n.kinds[r.Kind]
	*to = rating.Row{Block: uint64(r.Block), LogIndex: r.Log, Time: int64(r.Time), Rater: n.addresses.At(r.Writer),
		Amount: n.values[k.value], Tag1: n.tags[k.tag1].Text, Tag2: n.tags[k.tag2].Text, Writer: r.Writer + 1}
	if n.tags[k.tag1].Other {
		to.Tag1 = rating.UnreadTag
	}
	if k.via != 0 {
		to.Via = n.addresses.At(k.via - 1)
	}
	to.Content = common.Hash{0: 1, 28: byte(r.Content >> 24), 29: byte(r.Content >> 16), 30: byte(r.Content >> 8),
		31: byte(r.Content)}
}
