package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/store"
)

// Words are found however they are written: with accents or without, parted by signs,
// and in scripts without spaces.
func TestSearchWritings(t *testing.T) {
	t.Parallel()
	db := open(t)
	catalogue(t, db, 7, []int{0},
		agentDoc("Zürich Guide", "Straßen, cafés and ŁÓDŹ"),                           // 0
		agentDoc("Guide", strings.Repeat("long ", 200)+"AI/ML for e-mail"),            // 1
		agentDoc("東京観光", strings.Repeat("散歩", 300)+"旅行の案内はデータで"),                      // 2
		agentDoc("GPT助手", "", repute.Service{Name: "OASF", Skills: []string{"图像生成"}}), // 3
		agentDoc("서울여행", "도우미"),                                                       // 4
		agentDoc("京東", "ﾃﾞｰﾀ ｶﾞｲﾄﾞ"),                                                  // 5
		agentDoc("Погода Ёлка", "новости й"),                                          // 6
	)
	for _, c := range []struct{ text, want string }{
		{"zurich", "7:0"}, {"ZÜRICH", "7:0"}, {"zu\u0308rich", "7:0"}, {"strassen", "7:0"}, {"café", "7:0"}, {"łodz", "7:0"},
		{"AI", "7:1"}, {"ml", "7:1"}, {"ai/ml", "7:1"}, {"ML/AI", ""}, {"e-mail", "7:1"}, {"mail", "7:1"}, {`"ml for e-mail"`, "7:1"}, {`-"ai ml" guide`, "7:0"},
		{"東京", "7:2"}, {"京観", "7:2"}, {"案内", "7:2"}, {"京東", "7:5"}, {"観光 案内", "7:2"}, {"旅行の案内", "7:2"}, {"案内の", ""}, {"東京 -観光", ""},
		{"助手", "7:3"}, {"gpt助手", "7:3"}, {"助手 gpt", "7:3"}, {"图像", "7:3"}, {"像图", ""},
		{"여행", "7:4"}, {"데이터", ""}, {"データ", "7:5 7:2"}, {"ガイド", "7:5"}, {"елка", "7:6"},
	} {
		if found, got := search(t, db, store.AgentFilter{Text: c.text}); got != c.want || found.Total.Value != int64(len(strings.Fields(c.want))) {
			t.Errorf("%s: found %q of %+v, want %q", c.text, got, found.Total, c.want)
		}
	}
}

// Whatever a name is, a search for it is answered and finds its agent.
func TestSearchFindsNames(t *testing.T) {
	t.Parallel()
	db := open(t)
	rng := rand.New(rand.NewPCG(3, 4))
	letters := []rune("abzé/. ßﬁ天ア가निก\u0301\u0308<>&'#_")
	docs := make([]*repute.Registration, 80)
	for i := range docs {
		name := []rune("robot ")
		for range 1 + rng.IntN(12) {
			name = append(name, letters[rng.IntN(len(letters))])
		}
		docs[i] = agentDoc(string(name), "")
	}
	catalogue(t, db, 7, []int{0}, docs...)
	for i, doc := range docs {
		for _, text := range []string{doc.Name, `"` + doc.Name + `"`, doc.Name + ` -absent`} {
			if _, got := search(t, db, store.AgentFilter{Text: text, Limit: 200}); !slices.Contains(strings.Fields(got), fmt.Sprintf("7:%d", i)) {
				t.Errorf("%s: found %q, not 7:%d", text, got, i)
			}
		}
	}
}
