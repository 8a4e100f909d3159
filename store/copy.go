package store

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
)

// copyBuffer collects rows in the binary format of COPY. Rows are written field
// by field, without reflection; the whole table goes out in one piece, so that
// a slow producer never holds a half-sent COPY open.
type copyBuffer struct {
	table   string
	columns string // comma-separated
	fields  int
	rows    int
	buf     []byte
}

const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

func newCopy(table, columns string) *copyBuffer {
	return &copyBuffer{table: table, columns: columns, fields: strings.Count(columns, ",") + 1, buf: []byte(copyHeader)}
}

// send stores the rows. It must be called once.
func (c *copyBuffer) send(ctx context.Context, tx pgx.Tx) error {
	if c.rows == 0 {
		return nil
	}
	c.buf = append(c.buf, 0xff, 0xff)
	sql := "copy " + c.table + " (" + c.columns + ") from stdin binary"
	_, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(c.buf), sql)
	return failed("copy "+c.table, err)
}

// row begins a row; exactly the fields of the column list must follow.
func (c *copyBuffer) row() {
	c.rows++
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(c.fields))
}

func (c *copyBuffer) null() { c.buf = append(c.buf, 0xff, 0xff, 0xff, 0xff) }

func (c *copyBuffer) int16(v int16) {
	c.buf = append(c.buf, 0, 0, 0, 2)
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(v))
}

func (c *copyBuffer) int32(v uint32) {
	c.buf = append(c.buf, 0, 0, 0, 4)
	c.buf = binary.BigEndian.AppendUint32(c.buf, v)
}

func (c *copyBuffer) int64(v int64) {
	c.buf = append(c.buf, 0, 0, 0, 8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(v))
}

// block writes a block number; 0 is null where orNull is set.
func (c *copyBuffer) block(n uint64, orNull bool) {
	if n == 0 && orNull {
		c.null()
		return
	}
	c.int64(int64(n))
}

func (c *copyBuffer) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	c.buf = append(c.buf, 0, 0, 0, 1, b)
}

func (c *copyBuffer) bytes(v []byte) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(v)))
	c.buf = append(c.buf, v...)
}

func (c *copyBuffer) text(v string) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(v)))
	c.buf = append(c.buf, v...)
}

// json writes a jsonb value from its text.
func (c *copyBuffer) json(v []byte) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(v)+1))
	c.buf = append(c.buf, 1)
	c.buf = append(c.buf, v...)
}

func (c *copyBuffer) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	const epoch2000 = 946684800
	c.int64(t.UnixMicro() - epoch2000*1e6)
}

func (c *copyBuffer) token(id *repute.TokenID) {
	if id.IsUint64() {
		c.decimal(false, id.Uint64())
		return
	}
	c.digits(false, id.Dec())
}

// maybeToken writes null for nil.
func (c *copyBuffer) maybeToken(id *repute.TokenID) {
	if id == nil {
		c.null()
		return
	}
	c.token(id)
}

func (c *copyBuffer) integer(v *big.Int) {
	if abs := new(big.Int).Abs(v); abs.IsUint64() {
		c.decimal(v.Sign() < 0, abs.Uint64())
		return
	}
	s := v.String()
	c.digits(s[0] == '-', strings.TrimPrefix(s, "-"))
}

// decimal writes a numeric: base-10000 digits, most significant first.
func (c *copyBuffer) decimal(negative bool, v uint64) {
	var groups [5]uint16
	n := 0
	for ; v > 0; n++ {
		groups[n] = uint16(v % 10000)
		v /= 10000
	}
	c.numericHead(negative, n)
	for i := n - 1; i >= 0; i-- {
		c.buf = binary.BigEndian.AppendUint16(c.buf, groups[i])
	}
}

// digits is decimal for a number that does not fit 64 bits.
func (c *copyBuffer) digits(negative bool, s string) {
	s = strings.Repeat("0", (4-len(s)%4)%4) + s
	c.numericHead(negative, len(s)/4)
	for i := 0; i < len(s); i += 4 {
		d := s[i : i+4]
		g := uint16(d[0]-'0')*1000 + uint16(d[1]-'0')*100 + uint16(d[2]-'0')*10 + uint16(d[3]-'0')
		c.buf = binary.BigEndian.AppendUint16(c.buf, g)
	}
}

func (c *copyBuffer) numericHead(negative bool, groups int) {
	sign := uint16(0)
	if negative {
		sign = 0x4000
	}
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(8+2*groups))
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(groups))
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(max(groups-1, 0)))
	c.buf = binary.BigEndian.AppendUint16(c.buf, sign)
	c.buf = append(c.buf, 0, 0)
}

// addressBytes is an address as a column holds it: empty for none.
func addressBytes(a common.Address) []byte {
	if a == (common.Address{}) {
		return []byte{}
	}
	return a[:]
}

// hashBytes is a hash as a column holds it: empty for zero.
func hashBytes(h common.Hash) []byte {
	if h == (common.Hash{}) {
		return []byte{}
	}
	return h[:]
}

// numericArray is a numeric[] parameter, as text.
func numericArray[T any](items []T, dec func(*T) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(dec(&items[i]))
	}
	b.WriteByte('}')
	return b.String()
}

// tokenArray is a numeric[] parameter of token ids.
func tokenArray(ids []repute.TokenID) string {
	return numericArray(ids, func(id *repute.TokenID) string { return id.Dec() })
}
