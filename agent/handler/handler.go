package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"repute"
)

var (
	// ErrFailed is returned when the handler is at fault: it crashed, or its answer is no JSON or too
	// large. A client cannot correct it.
	ErrFailed = errors.New("the handler failed")
	// ErrTimeout is returned when the handler used up its time.
	ErrTimeout = errors.New("the handler did not end in time")
)

// defaultMaxAnswer bounds an answer, in bytes.
const defaultMaxAnswer = 10 << 20

// handlerError converts the failure of work under ctx to an error of a Handler: ErrTimeout at the deadline,
// the cause if ctx was canceled, and repute.ErrUnavailable and ErrFailed unchanged. Any other error is
// ErrFailed without its text, so that clients do not see it.
func handlerError(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(err, ErrTimeout),
		cause == nil && errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case cause != nil:
		return fmt.Errorf("the run was ended: %w", cause)
	case errors.Is(err, repute.ErrUnavailable), errors.Is(err, ErrFailed):
		return err
	}
	return ErrFailed
}

// checked returns an answer that is JSON, without the space around it.
func checked(answer []byte) (json.RawMessage, error) {
	answer = bytes.TrimSpace(answer)
	if !json.Valid(answer) {
		return nil, fmt.Errorf("%w: its answer is no JSON", ErrFailed)
	}
	return answer, nil
}

// logger is log, or one that discards.
func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
