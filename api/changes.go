package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/changedata"
)

// changesPath serves the change feed, as pages and as a stream.
const changesPath = "/changes"

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// maxChanges is the most changes in a page.
const maxChanges = 500

// changesParams are the parameters of the change feed.
func changesParams() []*huma.Param {
	finality := httpapi.TextParam("finality", "query",
		"finalized leaves out what a reorganization could still undo: nothing is retracted then")
	finality.Schema.Enum = []any{string(repute.Latest), string(repute.Finalized)}
	kinds := httpapi.TextParam("kinds", "query", "kinds of changes divided by commas; all when absent")
	kind := "(" + strings.ReplaceAll(strings.Join(changedata.Kinds(), "|"), ".", "[.]") + ")"
	kinds.Schema.Pattern = "^ *" + kind + " *(, *" + kind + " *)*$"
	agent := httpapi.TextParam("agent", "query", "only changes of this agent, in the forms of /agents/{id}")
	if id, ok := reflect.TypeFor[answers.AgentPath]().FieldByName("ID"); ok {
		agent.Schema.Pattern = id.Tag.Get("pattern")
	}
	return []*huma.Param{
		cursor("since", "query",
			"cursor of the change that was seen last; absent: the oldest change that is kept, in a stream the newest"),
		cursor("Last-Event-ID", "header", "the same, in a stream"),
		kinds, agent,
		httpapi.CountParam("chainId", "query", 1, 1<<53,
			"only changes of this chain; also the chain of a bare token id"),
		finality,
		httpapi.CountParam("limit", "query", 1, maxChanges, "page size, 1 to 500, 100 when absent; a stream has none"),
	}
}

// cursor describes a place in the feed.
func cursor(name, in, doc string) *huma.Param {
	p := httpapi.TextParam(name, in, doc)
	p.Schema.Pattern = "^(0|[1-9][0-9]{0,19})-(0|[1-9][0-9]{0,18})$"
	return p
}

// mountChanges adds the change feed: JSON by default, a stream where the caller accepts one.
func (a *API) mountChanges() {
	params := changesParams()
	a.server.Streams(changesPath)
	schema := a.server.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[push.ChangeList](), true, "ChangeList")
	op := a.server.Describe(http.MethodGet, httpapi.Route{Path: changesPath, ID: "list-changes", Params: params,
		Summary:     "Lists what changed, in order; with Accept: text/event-stream it streams what changes from then on",
		ContentType: jsonType, Schema: schema, Example: exampleChanges()})
	op.Responses["200"].Content[eventStream] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString},
		Example: "id: 803-7\nevent: feedback.given\ndata: {\"cursor\":\"803-7\",\"kind\":\"feedback.given\"}\n\n"}
	a.server.Echo.GET(changesPath, httpapi.Strict(params, a.changes))
}

// exampleChanges is an answer for the document.
func exampleChanges() push.ChangeList {
	return push.ChangeList{Next: "803-7", Changes: []push.Change{{Cursor: "803-7", Kind: changedata.KindFeedback,
		ChainID: 8453,
		Agent:   new(wire.ID("8453:22")), Block: 41_663_783, LogIndex: 12,
		Data: json.RawMessage(`{"value":"95","decimals":0,"tag1":"quality"}`),
		At:   time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}}}
}

// changes serves GET /changes.
func (a *API) changes(c echo.Context) error {
	ctx := c.Request().Context()
	q := answers.ChangesQuery{Since: c.QueryParam("since"), Kinds: c.QueryParam("kinds"), Agent: c.QueryParam("agent"),
		ChainID: c.QueryParam("chainId"), Finality: c.QueryParam("finality")}
	streams := strings.Contains(c.Request().Header.Get("Accept"), eventStream)
	if last := c.Request().Header.Get("Last-Event-ID"); last != "" && streams {
		q.Since = last
	}
	filter, err := q.Filter(ctx, a.Index)
	if err != nil {
		return err
	}
	if streams {
		return a.streamChanges(c, q.Since, filter)
	}
	limit, err := httpapi.PageSize(httpapi.Number(c.QueryParam("limit")), 100, maxChanges)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.server.Limits.Timeout)
	defer cancel()
	list, next, err := a.DB.Changes(ctx, q.Since, limit, filter)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, push.EncodeChanges(list, next))
}

// streamChanges sends changes as they come, until the caller leaves or the server stops. A caller that reads too slowly
// is disconnected; it continues with its Last-Event-ID.
func (a *API) streamChanges(c echo.Context, since string, filter store.ChangeFilter) (err error) {
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	caller := httpapi.CallerOf(ctx)
	if err := a.streams.Enter(caller); err != nil {
		return err
	}
	defer a.streams.Leave(caller)
	if since == "" {
		if since, err = a.DB.NewestChange(ctx); err != nil {
			return err
		}
	}
	out := httpapi.NewEventStream(c.Response())
	if err = a.sendChanges(ctx, out, since, filter); !out.Begun() {
		return err
	}
	if err != nil && c.Request().Context().Err() == nil {
		a.log.WarnContext(ctx, "a stream of changes was cut off", "error", err)
	}
	return nil
}

// changeBatch is what a stream sends next.
type changeBatch struct {
	list []store.Change
	next string
}

// sendChanges sends changes after since, and comments while there are none. It returns nil when the server stops.
func (a *API) sendChanges(ctx context.Context, out *httpapi.EventStream, since string,
	filter store.ChangeFilter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, ended := make(chan changeBatch), make(chan error, 1) // without a buffer: a slow caller holds its own reads
	go func() {
		ended <- a.feed.Follow(ctx, since, filter, func(list []store.Change, next string) error {
			select {
			case batches <- changeBatch{list, next}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	beat := time.NewTicker(httpapi.Heartbeat)
	defer beat.Stop()
	begin := time.After(time.Second) // callers wait for the head; until then a wrong cursor can be answered by a problem
	for {
		select {
		case <-a.done:
			return nil
		case err := <-ended:
			return err
		case <-begin:
			if err := out.Begin(); err != nil {
				return err
			}
		case <-beat.C:
			if err := out.Beat(); err != nil {
				return err
			}
		case b := <-batches:
			if err := sendBatch(out, b); err != nil {
				return err
			}
		}
	}
}

// sendBatch sends changes, or the place in the feed alone where none is selected, so that a caller that connects again
// continues there.
func sendBatch(out *httpapi.EventStream, b changeBatch) error {
	for i := range b.list {
		data, err := json.Marshal(push.EncodeChange(&b.list[i]))
		if err != nil {
			return err
		}
		if err := out.Send(b.list[i].Cursor, b.list[i].Kind, data); err != nil {
			return err
		}
	}
	if len(b.list) == 0 || b.list[len(b.list)-1].Cursor != b.next {
		return out.Place(b.next)
	}
	return nil
}
