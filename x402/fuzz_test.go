package x402_test

import (
	"encoding/base64"
	"net/http"
	"reflect"
	"testing"

	"repute/x402"
)

// seeds are texts of headers.
func seeds(f *testing.F) {
	for _, text := range []string{`{"x402Version":1,"scheme":"exact","network":"base","payload":{}}`,
		`{"x402Version":2,"accepted":{"amount":"1"},"payload":{"signature":"0x01","permit2Authorization":{}}}`,
		`{"x402Version":2,"resource":{"url":"a"},"accepts":[{"scheme":"exact","network":"eip155:1","amount":"1"}]}`,
		`{"success":true,"transaction":"0x","network":"base"}`} {
		f.Add(base64.StdEncoding.EncodeToString([]byte(text)))
	}
}

// again reads what was read and written, which MUST be the same.
func again[T any](t *testing.T, v T, read func(string) (T, error)) {
	text, err := x402.Encode(v)
	if err != nil {
		return // longer than what was read, by escapes
	}
	back, err := read(text)
	if err != nil || !reflect.DeepEqual(v, back) {
		t.Errorf("%+v is read as %+v: %v", v, back, err)
	}
}

func FuzzPayment(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := x402.DecodePayment(text); err == nil {
			p.Accepted.Extra, p.Extensions = nil, nil // raw JSON is written compactly
			if p.Resource != nil && len(p.Resource.Tags) == 0 {
				p.Resource.Tags = nil
			}
			again(t, p, x402.DecodePayment)
			_, _ = p.Extensions.PaymentID(true)
		}
	})
}

func FuzzRequired(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := x402.DecodeRequired(text)
		if err != nil {
			return
		}
		for i := range d.Accepts {
			_ = d.Accepts[i].Check()
			d.Accepts[i].Extra = nil
		}
		d.Extensions = nil
		if len(d.Resource.Tags) == 0 {
			d.Resource.Tags = nil
		}
		again(t, d, x402.DecodeRequired)
	})
}

func FuzzSettlement(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := x402.DecodeSettlement(text)
		if err != nil {
			return
		}
		_, _, _ = s.Receipt()
		s.Extensions = nil
		again(t, s, x402.DecodeSettlement)
	})
}

// FuzzDemandBody reads bodies of version 1.
func FuzzDemandBody(f *testing.F) {
	f.Add([]byte(`{"x402Version":1,"error":"","accepts":[{"scheme":"exact","network":"base","maxAmountRequired":"1"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if d, version, err := x402.DemandOf(http.Header{}, body); err == nil && version != x402.V1 {
			t.Errorf("version %d: %+v", version, d)
		}
	})
}
