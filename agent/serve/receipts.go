package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/signed"
	"repute/internal/httpapi"
	"repute/store/agentdb"
	"repute/x402"
)

// receipt is a paid execution (section 10). Members that are not for everybody are left out.
type receipt struct {
	ReceiptID       string             `json:"receiptId"`
	TaskHash        string             `json:"taskHash"`
	Timestamp       int64              `json:"timestamp"` // seconds since 1970
	Settlement      agentdb.Settlement `json:"settlement"`
	Amount          string             `json:"amount,omitempty"` // in whole units
	Currency        string             `json:"currency,omitempty"`
	Client          string             `json:"client,omitempty"`
	Capability      string             `json:"capability,omitempty"`
	Transaction     string             `json:"transaction,omitempty"`
	ClientSignature hexutil.Bytes      `json:"clientSignature,omitempty"`
	AgentSignature  hexutil.Bytes      `json:"agentSignature,omitempty"`
	Validation      *validation        `json:"validation,omitempty"`
}

// validation is how the validator's confirmation of a result stands. The chain shows it to everybody.
type validation struct {
	Request     common.Hash     `json:"request"`
	Status      string          `json:"status" enum:"pending,requested,answered,judged,failed"`
	Validator   *common.Address `json:"validator,omitempty"`
	Transaction *common.Hash    `json:"transaction,omitempty"` // of the request
	Response    *uint8          `json:"response,omitempty"`    // 0 to 100
	Tag         string          `json:"tag,omitempty"`
	// Counts says whether the validator's score reaches what the policy asks for.
	Counts *bool  `json:"counts,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// maxReceipts bounds a page.
const maxReceipts = 200

// receiptParams are the parameters that page reads.
func receiptParams() []*huma.Param {
	return []*huma.Param{
		httpapi.CountParam("limit", "query", 1, maxReceipts, "How many are returned: 50 where it is left out"),
		httpapi.TextParam("before", "query", "receiptId of the last one of the page before"),
	}
}

// receiptsTask is what owner and clients sign to read receipts in full: the task of a capability of
// this name and version with the input {}.
const (
	receiptsTask    = "receipts"
	receiptsVersion = "1.0.0"
)

// receipts answers GET /agent/{id}/receipts.
func (s *surface) receipts(c echo.Context) error {
	id := s.router.ID()
	ref, err := repute.ParseAgentRef(c.Param("id"))
	if err != nil {
		return err
	}
	if ref.TokenID != id.TokenID || ref.ChainID != 0 && ref.ChainID != id.ChainID ||
		ref.Registry != nil && *ref.Registry != id.Registry {
		return &repute.MissingError{What: "agent", Why: "is another one", Hint: "ask for " + id.Short()}
	}
	caller, err := s.reader(c)
	if err != nil {
		return err
	}
	limit, before, err := page(c)
	if err != nil {
		return err
	}
	entries, err := s.router.Receipts(c.Request().Context(), before, limit)
	if err != nil {
		return err
	}
	checks, err := s.router.Validations(c.Request().Context(), entries)
	if err != nil {
		return err
	}
	all := s.o.PublicReceipts || s.o.Owners != nil && slices.Contains(s.o.Owners(), caller) &&
		caller != (common.Address{})
	out := []receipt{}
	for i := range entries {
		r := show(&entries[i], all || caller != (common.Address{}) && entries[i].Client == caller)
		if v, ok := checks[i]; ok {
			r.Validation = shown(&v)
		}
		out = append(out, r)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, out)
}

// reader is who proved to ask, zero for nobody.
func (s *surface) reader(c echo.Context) (common.Address, error) {
	client, err := signed.ReadRequest(c.Request().Header)
	if err != nil || client == nil {
		return common.Address{}, err
	}
	id := s.router.ID()
	task, err := capability.TaskHash(id.TokenID.Dec(), receiptsTask, receiptsVersion, []byte(`{}`))
	if err != nil {
		return common.Address{}, err
	}
	err = s.router.CheckClient(c.Request().Context(), task, client)
	var p *agent.Problem
	if errors.As(err, &p) {
		return common.Address{}, bodyOf(p)
	} else if err != nil {
		return common.Address{}, err
	}
	return client.Client, nil
}

// page reads limit and before.
func page(c echo.Context) (limit int, before *agentdb.Entry, err error) {
	limit = 50
	if text := c.QueryParam("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxReceipts {
			return 0, nil, repute.Invalid("limit", "is out of range", fmt.Sprintf("1 to %d", maxReceipts))
		}
	}
	text := c.QueryParam("before")
	if text == "" {
		return limit, nil, nil
	}
	at, number, ok := strings.Cut(text, "-")
	micros, err1 := strconv.ParseInt(at, 10, 64)
	n, err2 := strconv.ParseInt(number, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return 0, nil, repute.Invalid("before", "is no receiptId", "the last one of the page before")
	}
	return limit, &agentdb.Entry{At: time.UnixMicro(micros), Number: n}, nil
}

// show is a receipt as the caller may see it.
func show(e *agentdb.Entry, full bool) receipt {
	r := receipt{ReceiptID: e.ID(), TaskHash: e.TaskHash.Hex(), Timestamp: e.At.Unix(), Settlement: e.Settlement}
	if !full {
		return r
	}
	amount, err := x402.AmountOf(e.Amount)
	if err == nil {
		r.Amount = amount.Decimal(e.Decimals)
	}
	r.Currency, r.Client, r.Capability = e.Currency, e.Client.Hex(), e.Capability
	r.ClientSignature, r.AgentSignature = e.ClientSignature, e.AgentSignature
	if (e.TxHash != common.Hash{}) {
		r.Transaction = e.TxHash.Hex()
	}
	return r
}

// shown is how a validation stands.
func shown(v *agentdb.Validation) *validation {
	out := &validation{}
	_ = json.Unmarshal(v.Detail, out) // the log has it in this form; what is missing is not known yet
	out.Request, out.Status = v.Request, "pending"
	if v.Step != "" {
		out.Status = strings.TrimPrefix(string(v.Step), "validation ")
	}
	return out
}
