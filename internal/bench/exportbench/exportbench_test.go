package exportbench

import "testing"

// A small run measures everything.
func TestRun(t *testing.T) {
	r, err := Run(t.Context(), Options{Ratings: 2000})
	if err != nil {
		t.Fatal(err)
	}
	m, ok := r.Measurements.(Measurements)
	if !ok || m.CopyTable <= 0 || m.CopyRows <= 0 || m.NDJSON <= 0 || m.Parquet <= 0 || m.NDJSONBytes < 2000*300 ||
		m.ParquetBytes < 2000*30 {
		t.Errorf("%+v", r.Measurements)
	}
	if len(r.Targets) != 2 {
		t.Errorf("%d targets", len(r.Targets))
	}
}
