package pgcopy_test

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/pgtest"
	"repute/store/pgcopy"
)

// drawn is a row, as it is encoded, and as Postgres must show it.
type drawn struct {
	encode func(*pgcopy.Buffer)
	shown  []string
}

// drawRow draws a row of all kinds of columns.
func drawRow(t *rapid.T) drawn {
	integer := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "integer"))
	zeros := rapid.IntRange(0, 12).Draw(t, "zeros")
	integer.Mul(integer, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil))
	if rapid.Bool().Draw(t, "negative") {
		integer.Neg(integer)
	}
	scale := rapid.Uint8Range(0, 18).Draw(t, "scale")
	var token repute.TokenID
	token.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "token"))
	maybe := &token
	shownMaybe := token.Dec()
	if rapid.Bool().Draw(t, "no token") {
		maybe, shownMaybe = nil, "null"
	}
	small, wide := rapid.Int16().Draw(t, "small"), rapid.Int64().Draw(t, "wide")
	block := rapid.Uint64Range(0, 3).Draw(t, "block")
	shownBlock := fmt.Sprint(block)
	if block == 0 {
		shownBlock = "null"
	}
	flag := rapid.Bool().Draw(t, "flag")
	raw := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "raw")
	text := strings.ReplaceAll(strings.ToValidUTF8(rapid.String().Draw(t, "text"), ""), "\x00", "")
	hash := common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "hash"))
	shownHash := fmt.Sprintf("%x", hash[:])
	if hash == (common.Hash{}) {
		shownHash = "null"
	}
	at, shownAt := time.Time{}, "null"
	if rapid.Bool().Draw(t, "time") {
		at = time.UnixMicro(rapid.Int64Range(-1e15, 4e15).Draw(t, "micros")).UTC()
		shownAt = fmt.Sprint(at.UnixMicro())
	}
	return drawn{
		encode: func(b *pgcopy.Buffer) {
			b.Row(7)
			b.Integer(integer)
			b.Decimal(integer, scale)
			b.Token(&token)
			b.MaybeToken(maybe)
			b.Int16(small)
			b.Int64(wide)
			b.MaybeBlock(block)
			b.Bool(flag)
			b.Bytes(raw)
			b.Text(text)
			b.MaybeHash(hash)
			b.Time(at)
			b.Json([]byte(`{"a": [1]}`))
		},
		shown: []string{"7", integer.String(), decimalText(integer, scale), token.Dec(), shownMaybe, fmt.Sprint(small),
			fmt.Sprint(wide), shownBlock, fmt.Sprint(flag), fmt.Sprintf("%x", raw), text, shownHash, shownAt, "1"},
	}
}

// decimalText returns n divided by ten to the power of scale with all digits after the point.
func decimalText(n *big.Int, scale uint8) string {
	digits := new(big.Int).Abs(n).String()
	if scale == 0 || n.Sign() == 0 {
		return n.String()
	}
	digits = strings.Repeat("0", max(0, int(scale)+1-len(digits))) + digits
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	point := len(digits) - int(scale)
	return sign + digits[:point] + "." + digits[point:]
}

// TestPostgresReadsWhatIsEncoded compares rows with what Postgres shows of them.
func TestPostgresReadsWhatIsEncoded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, pgtest.Unmigrated(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `create temporary table sample (chain_id bigint, integer numeric, scaled numeric,
		token numeric(78, 0), maybe numeric(78, 0), small smallint, wide bigint, block bigint, flag boolean, raw bytea,
		words text, hash bytea, time timestamptz, json jsonb, place bigserial)`); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := pgcopy.New("sample",
			"chain_id, integer, scaled, token, maybe, small, wide, block, flag, raw, words, hash, time, json")
		var want [][]string
		for range rapid.IntRange(0, 3).Draw(rt, "rows") {
			d := drawRow(rt)
			d.encode(b)
			want = append(want, d.shown)
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		defer tx.Rollback(ctx)
		if err := b.Send(ctx, tx); err != nil {
			rt.Fatal(err)
		}
		rows, _ := tx.Query(ctx, `select array[chain_id::text, integer::text, scaled::text, token::text,
			coalesce(maybe::text, 'null'), small::text, wide::text, coalesce(block::text, 'null'), flag::text,
			encode(raw, 'hex'), words, coalesce(encode(hash, 'hex'), 'null'),
			coalesce((extract(epoch from time) * 1000000)::bigint::text, 'null'), json->'a'->>0]
			from sample order by place`)
		got, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
		if err != nil {
			rt.Fatal(err)
		}
		if fmt.Sprint(len(got), got) != fmt.Sprint(len(want), want) {
			rt.Fatalf("Postgres reads\n%q\nand not\n%q", got, want)
		}
	})
}
