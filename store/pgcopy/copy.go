package pgcopy

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Buffer collects rows in the binary format of COPY. Rows are written field by field, without
// reflection. All rows are sent at once, so that a slow producer never keeps a COPY open.
type Buffer struct {
	table   string
	columns string // comma-separated
	// fields is how many columns a row has.
	fields int
	// rows counts the rows that were begun.
	rows int
	// Buf holds the encoded rows.
	Buf []byte
}

// copyHeader is the signature, the flags and the empty extension that begin the binary format.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// New returns an empty buffer for a table and its comma-separated columns, of which the first one MUST be chain_id.
func New(table, columns string) *Buffer {
	return &Buffer{table: table, columns: columns, fields: strings.Count(columns, ",") + 1, Buf: []byte(copyHeader)}
}

// Send stores the rows. It MUST be called once.
func (c *Buffer) Send(ctx context.Context, tx pgx.Tx) error {
	if c.rows == 0 {
		return nil
	}
	c.Buf = append(c.Buf, 0xff, 0xff)
	sql := "copy " + c.table + " (" + c.columns + ") from stdin binary"
	_, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(c.Buf), sql)
	return store.Failed("copy "+c.table, err)
}

// Row begins a row of a chain. Exactly the fields of the column list after the chain MUST follow.
func (c *Buffer) Row(chainID uint64) {
	c.rows++
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, uint16(c.fields))
	c.Int64(int64(chainID))
}

// Null appends a null.
func (c *Buffer) Null() { c.Buf = append(c.Buf, 0xff, 0xff, 0xff, 0xff) }

// Int16 appends a smallint.
func (c *Buffer) Int16(v int16) {
	c.Buf = append(c.Buf, 0, 0, 0, 2)
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, uint16(v))
}

// Int32 appends an integer.
func (c *Buffer) Int32(v uint32) {
	c.Buf = append(c.Buf, 0, 0, 0, 4)
	c.Buf = binary.BigEndian.AppendUint32(c.Buf, v)
}

// Int64 appends a bigint.
func (c *Buffer) Int64(v int64) {
	c.Buf = append(c.Buf, 0, 0, 0, 8)
	c.Buf = binary.BigEndian.AppendUint64(c.Buf, uint64(v))
}

// MaybeBlock appends a block number, null for 0.
func (c *Buffer) MaybeBlock(n uint64) {
	if n == 0 {
		c.Null()
		return
	}
	c.Int64(int64(n))
}

// Bool appends a boolean.
func (c *Buffer) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	c.Buf = append(c.Buf, 0, 0, 0, 1, b)
}

// Bytes appends a bytea.
func (c *Buffer) Bytes(v []byte) {
	c.Buf = binary.BigEndian.AppendUint32(c.Buf, uint32(len(v)))
	c.Buf = append(c.Buf, v...)
}

// MaybeHash appends a hash, null for zero.
func (c *Buffer) MaybeHash(h common.Hash) {
	if h == (common.Hash{}) {
		c.Null()
		return
	}
	c.Bytes(h[:])
}

// Text appends a text, which must be valid UTF-8 without NUL.
func (c *Buffer) Text(v string) {
	c.Buf = binary.BigEndian.AppendUint32(c.Buf, uint32(len(v)))
	c.Buf = append(c.Buf, v...)
}

// Json appends a jsonb value from its text.
func (c *Buffer) Json(v []byte) {
	c.Buf = binary.BigEndian.AppendUint32(c.Buf, uint32(len(v)+1))
	c.Buf = append(c.Buf, 1)
	c.Buf = append(c.Buf, v...)
}

// Time appends a timestamptz, null for the zero time.
func (c *Buffer) Time(t time.Time) {
	if t.IsZero() {
		c.Null()
		return
	}
	const epoch2000 = 946684800
	c.Int64(t.UnixMicro() - epoch2000*1e6)
}

// Token appends a token id as numeric.
func (c *Buffer) Token(id *repute.TokenID) {
	if id.IsUint64() {
		c.decimal(false, id.Uint64())
		return
	}
	c.digits(false, id.Dec(), 0)
}

// MaybeToken appends a token id, null for nil.
func (c *Buffer) MaybeToken(id *repute.TokenID) {
	if id == nil {
		c.Null()
		return
	}
	c.Token(id)
}

// Integer appends an integer of any size as numeric.
func (c *Buffer) Integer(v *big.Int) {
	if abs := new(big.Int).Abs(v); abs.IsUint64() {
		c.decimal(v.Sign() < 0, abs.Uint64())
		return
	}
	s := v.String()
	c.digits(s[0] == '-', strings.TrimPrefix(s, "-"), 0)
}

// Decimal appends a number in units of 10 to the power of minus scale as numeric.
func (c *Buffer) Decimal(v *big.Int, scale uint8) {
	if scale == 0 || v.Sign() == 0 {
		c.Integer(v)
		return
	}
	c.digits(v.Sign() < 0, strings.TrimPrefix(v.String(), "-"), scale)
}

// digitsOfGroup is how many decimal digits a digit of a numeric, to the base of 10000, has.
const digitsOfGroup = 4

// decimal appends a numeric: base-10000 digits, most significant first.
func (c *Buffer) decimal(negative bool, v uint64) {
	var groups [5]uint16
	n := 0
	for ; v > 0; n++ {
		groups[n] = uint16(v % 10000)
		v /= 10000
	}
	c.numericHead(negative, n, 0)
	for i := n - 1; i >= 0; i-- {
		c.Buf = binary.BigEndian.AppendUint16(c.Buf, groups[i])
	}
}

// digits is decimal for a number of any size, the last digits of which are behind the point.
func (c *Buffer) digits(negative bool, s string, scale uint8) {
	behind := int(scale)
	s += strings.Repeat("0", (digitsOfGroup-behind%digitsOfGroup)%digitsOfGroup)
	s = strings.Repeat("0", (digitsOfGroup-len(s)%digitsOfGroup)%digitsOfGroup) + s
	c.numericHead(negative, len(s)/digitsOfGroup, scale)
	for i := 0; i < len(s); i += digitsOfGroup {
		d := s[i : i+digitsOfGroup]
		g := uint16(d[0]-'0')*1000 + uint16(d[1]-'0')*100 + uint16(d[2]-'0')*10 + uint16(d[3]-'0')
		c.Buf = binary.BigEndian.AppendUint16(c.Buf, g)
	}
}

// numericHead appends length, number of digit groups, weight of the first group, sign and scale of a numeric.
func (c *Buffer) numericHead(negative bool, groups int, scale uint8) {
	sign := uint16(0)
	if negative {
		sign = 0x4000
	}
	weight := groups - 1 - (int(scale)+digitsOfGroup-1)/digitsOfGroup
	if groups == 0 {
		weight = 0
	}
	c.Buf = binary.BigEndian.AppendUint32(c.Buf, uint32(8+2*groups))
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, uint16(groups))
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, uint16(int16(weight)))
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, sign)
	c.Buf = binary.BigEndian.AppendUint16(c.Buf, uint16(scale))
}
