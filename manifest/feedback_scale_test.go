package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

func TestScaleOfAFeedbackFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*repute.FeedbackScale{
		`{}`:                                           nil,
		`{"maxValue": 5}`:                              {Max: "5"},
		`{"maxValue": "5", "minValue": 1}`:             {Min: "1", Max: "5"},
		`{"max_value": 100}`:                           {Max: "100"},
		`{"bestRating": 5, "worstRating": 1}`:          {Min: "1", Max: "5"},
		`{"scale": 10}`:                                {Max: "10"},
		`{"scale": "10"}`:                              {Max: "10"},
		`{"scale": "1-5"}`:                             {Min: "1", Max: "5"},
		`{"scale": "0 to 100"}`:                        {Min: "0", Max: "100"},
		`{"scale": "0..1"}`:                            {Min: "0", Max: "1"},
		`{"scale": "out of 5"}`:                        {Max: "5"},
		`{"scale": {"min": 0, "max": 5}}`:              {Min: "0", Max: "5"},
		`{"scale": {"maximum": "5.0"}, "maxValue": 5}`: {Max: "5"},
		`{"scale": 10, "maxValue": 5}`:                 nil,
		`{"scale": "stars"}`:                           nil,
		`{"scale": ""}`:                                nil,
		`{"scale": [1, 5]}`:                            nil,
		`{"maxValue": 0}`:                              nil,
		`{"maxValue": -5}`:                             nil,
		`{"maxValue": 5, "minValue": 5}`:               nil,
		`{"maxValue": "many"}`:                         nil,
		`{"minValue": 1}`:                              nil,
		`{"maxValue": null}`:                           nil,
	} {
		f, _ := ParseFeedback([]byte(text))
		if !reflect.DeepEqual(f.Scale, want) {
			t.Errorf("%s: %+v, want %+v", text, f.Scale, want)
		}
	}
	_, problems := ParseFeedback([]byte(`{"scale": 10, "maxValue": 5}`))
	if !slices.Contains(codesOf(problems), CodeScaleForm+"/scale") {
		t.Errorf("a file that contradicts itself: %v", codesOf(problems))
	}
}

// Whatever a file says in two places, it has a scale only where both say the same.
func TestContradictoryScales(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 20).Draw(t, "a"), rapid.IntRange(1, 20).Draw(t, "b")
		f, _ := ParseFeedback(fmt.Appendf(nil, `{"maxValue": %d, "scale": {"max": "%d"}}`, a, b))
		if (f.Scale != nil) != (a == b) {
			t.Fatalf("%d and %d: %+v", a, b, f.Scale)
		}
	})
}
