package docjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
)

// hostileExtra is valid JSON that jsonb refuses as JSON.
func hostileExtra() map[string]json.RawMessage {
	return map[string]json.RawMessage{
		"pair\x00": json.RawMessage(`"\ud800"`), "nul": json.RawMessage(`"\u0000"`),
		"bytes":  json.RawMessage("\"\xff\""),
		"number": json.RawMessage(`1e999999`), "pairs": json.RawMessage(`{"\udc00":1,"a":[2,{}]}`),
	}
}

// What was parsed survives the database, whatever a stranger put into it.
func TestFilesSurviveJSONB(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	stored := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		if err := conn.QueryRow(t.Context(), "select $1::jsonb", b).Scan(&out); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		return out
	}
	d := uint8(2)
	file := repute.FeedbackFile{
		Registry: "eip155:1:0x1", TokenID: new(repute.TokenID).SetAllOne(), Client: "c", Value: "-1.5", Decimals: &d,
		Text: "<b>\\u0000",
		A2A:  repute.FeedbackA2A{Skills: []string{"s"}}, Payment: &repute.PaymentClaim{TxHash: "0x"},
		Extra: hostileExtra(),
	}
	got, err := DecodeFeedback(stored(EncodeFeedback(&file)))
	if file.Extra = storable(file.Extra); err != nil || !reflect.DeepEqual(*got, file) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, file)
	}
	card := repute.AgentCard{
		Name: "n", Extra: hostileExtra(), Skills: []repute.CardSkill{{ID: "a", Extra: hostileExtra()}},
	}
	stored(EncodeCard(&card))
	if card.Skills[0].Extra == nil {
		t.Error("encoding changed the card")
	}
}

// storable is what is left of unknown members: bytes that are no text are replaced.
func storable(extra map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range extra {
		out[replaced(name)] = json.RawMessage(replaced(string(value)))
	}
	return out
}

func replaced(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
