package progress

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"repute"
)

// SampleOf reads the progress of a chain from the metrics of this process, so that the loops need
// no other interface.
func SampleOf(metrics prometheus.Gatherer, chain repute.Chain) Sample {
	s := Sample{from: max(chain.StartBlock, 1)}
	families, _ := metrics.Gather() // partial results are returned too
	label := strconv.FormatUint(chain.ID, 10)
	working, asked := 0, map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if labelOf(m, "chain") != label {
				continue
			}
			switch family.GetName() {
			case "repute_chain_head_block":
				s.head = uint64(m.GetGauge().GetValue())
			case "repute_chain_indexed_block":
				s.block = uint64(m.GetGauge().GetValue())
			case "repute_events_total":
				s.events += int64(m.GetCounter().GetValue())
			case "repute_endpoint_state":
				asked[labelOf(m, "host")] = true
				if labelOf(m, "state") == string(repute.EndpointClosed) && m.GetGauge().GetValue() > 0 {
					working++
				}
			}
		}
	}
	if len(asked) > 0 {
		s.endpoints = fmt.Sprintf("%d/%d", working, len(asked))
	}
	return s
}

// labelOf returns the value of a label.
func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// Imported returns a sample of a snapshot's import.
func Imported(blocks repute.BlockRange, block uint64, events int) Sample {
	return Sample{from: blocks.From, block: block, head: blocks.To, events: int64(events), file: true}
}
