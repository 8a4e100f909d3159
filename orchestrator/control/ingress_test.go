package control_test

import (
	"net/http"
	"testing"
)

// TestMessagesOfTwoChats takes messages of two chats for two tasks, whatever their numbers.
func TestMessagesOfTwoChats(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	first := h.ann(http.MethodPost, "/v1/ingress/openclaw/task",
		`{"goal":"pay the rent","channel":"telegram","sender":"ann","messageId":"17"}`)
	second := h.ann(http.MethodPost, "/v1/ingress/openclaw/task",
		`{"goal":"water the flowers","channel":"discord","sender":"bob","messageId":"17"}`)
	if first.status != http.StatusCreated || second.status != http.StatusCreated {
		t.Errorf("first %d, second %d %s", first.status, second.status, second.body)
	}
}
