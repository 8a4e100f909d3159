package trustbench

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"repute/internal/attack"
)

// Plots are well-formed, the same each time, and show what they are of.
func TestPlots(t *testing.T) {
	m := TrustMeasurements{
		Worlds: []TrustWorld{{Outcomes: []attack.Outcome{
			{Attack: "T1 a", Size: 1, Mean: 9, Baselines: map[string]float64{"a & <b>": 100, "c": 50}},
			{Attack: "T1 a", Size: 1000, Mean: 9, Baselines: map[string]float64{"a & <b>": 100, "c": 70}}}}},
		OnOff: attack.OnOff{Timeline: []attack.OnOffStep{{Day: 0, Mean: 60}, {Day: 1, Mean: -20}}},
		Cost:  []Cost{{Edges: 10_000, Walk: 0.01, Scores: 0.02}, {Edges: 100_000, Walk: 0.1, Scores: 0.2}},
	}
	plots := m.Plots()
	if len(plots) != 3 || !strings.Contains(plots["wallets.svg"], "a &amp; &lt;b&gt;") {
		t.Errorf("got %d plots: %s", len(plots), plots["wallets.svg"])
	}
	for name, svg := range plots {
		if svg != m.Plots()[name] || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s differs from itself, or has no numbers:\n%s", name, svg)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if (&TrustMeasurements{}).Plots() == nil {
		t.Error("nothing measured, no map")
	}
}
