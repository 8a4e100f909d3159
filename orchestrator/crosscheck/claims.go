package crosscheck

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"repute/orchestrator/standard"
)

// claimedBy returns the receipts that an execution names and that MUST be of the run itself: its own
// list, and the members receiptIds of its steps' results. inner are those of receiptIds deeper
// in results, which may have been handed on from other runs of the task.
func claimedBy(e *standard.Execution) (own, inner []string) {
	own = slices.Clone(e.ReceiptIDs)
	for _, s := range e.Steps {
		var result any
		if json.Unmarshal(s.Result, &result) != nil { // a step that failed has none
			continue
		}
		if top, is := result.(map[string]any); is {
			own = append(own, idsIn(top["receiptIds"])...)
			for name, v := range top {
				if name != "receiptIds" {
					inner = append(inner, claimsIn(v)...)
				}
			}
			continue
		}
		inner = append(inner, claimsIn(result)...)
	}
	return own, inner
}

// claimsIn are the ids of all members receiptIds in a value of JSON. Its depth is bounded where
// results enter (repute.CheckJSON).
func claimsIn(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			out = append(out, claimsIn(item)...)
		}
	case map[string]any:
		for name, member := range v {
			if name == "receiptIds" {
				out = append(out, idsIn(member)...)
			} else {
				out = append(out, claimsIn(member)...)
			}
		}
	}
	return out
}

// idsIn are the ids of a member receiptIds: texts or numbers, alone or in a list. Anything else
// names no receipt that there could be.
func idsIn(v any) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return []string{v}
	case float64:
		return []string{fmt.Sprintf("%.0f", v)}
	case []any:
		var out []string
		for _, item := range v {
			out = append(out, idsIn(item)...)
		}
		return out
	}
	return []string{fmt.Sprint(v)}
}

// In a text the word receipt or receipts with numbers behind it names receipts, and the words
// receipt, transaction and tx with a hash behind them do: "receipts #4, 5 and 6", "tx 0x12…".
var (
	namedReceipts = regexp.MustCompile(`(?i)\breceipts?(?:[\s_-]*ids?|[\s_-]*numbers?|[\s_-]*no\.?)?[\s:=#"'(\[]*((?:\d+\b[\s,;&#"'\])]*(?:and\s+|or\s+)?[\s#"'(\[]*)+)`)
	namedHashes   = regexp.MustCompile(`(?i)\b(?:receipts?|transactions?|tx)\b(?:[\s_-]*(?:ids?|hash(?:es)?))?[\s:=#"'(\[]*((?:0x[0-9a-f]{64}\b[\s,;&"'\])]*(?:and\s+|or\s+)?["'(\[]*)+)`)
	oneNumber     = regexp.MustCompile(`\d+`)
	oneHash       = regexp.MustCompile(`0x[0-9a-f]{64}`)
)

// receiptsIn are the receipts that a text names.
func receiptsIn(text string) (out []string) {
	for _, m := range namedReceipts.FindAllStringSubmatch(text, -1) {
		out = append(out, oneNumber.FindAllString(m[1], -1)...)
	}
	for _, m := range namedHashes.FindAllStringSubmatch(text, -1) {
		out = append(out, oneHash.FindAllString(strings.ToLower(m[1]), -1)...)
	}
	return out
}

// namedBy returns the receipts that a summary names, in its list and in its texts.
func namedBy(s *standard.Summary) []string {
	out := slices.Clone(s.Receipts)
	for _, text := range slices.Concat([]string{s.Text}, s.KeyActions, s.Warnings) {
		out = append(out, receiptsIn(text)...)
	}
	return out
}
