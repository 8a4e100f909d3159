package agents

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// Identity requests one of three successive changes: a new identity, its registration file, its
// wallet.
type Identity struct {
	Action  string `json:"action"` // register, describe or wallet
	ChainID uint64 `json:"chainId,omitempty"`
	// Agent is the agent of describe and wallet; empty: the one that the step before registered.
	Agent string `json:"agent,omitempty"`
	// URI is the URI of a registration file, for register and describe.
	URI string `json:"uri,omitempty"`
	// Registration is the file itself: it is stored on the chain. describe adds the agent's id to
	// it.
	Registration json.RawMessage `json:"registration,omitempty"`
	// Wallet is the agent's new wallet. Signature is its consent (EIP-712, AgentWalletSet) until
	// Deadline, in Unix seconds. Without a signature the tool wallet-consent signs for wallets
	// whose keys the orchestrator has.
	Wallet    string `json:"wallet,omitempty"`
	Deadline  int64  `json:"deadline,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// Registered describes the change.
type Registered struct {
	Agent  string      `json:"agent"` // eip155:chain:registry:id
	Owner  string      `json:"owner,omitempty"`
	URI    string      `json:"uri,omitempty"`
	Wallet string      `json:"wallet,omitempty"`
	Tx     common.Hash `json:"tx"`
}

// ConsentTool signs that a wallet becomes an agent's: it is given a ConsentRequest and
// answers a Consent. It refuses for wallets whose keys it has not.
const ConsentTool = "wallet-consent"

// ConsentRequest is the input of ConsentTool.
type ConsentRequest struct {
	ChainID  uint64 `json:"chainId"`
	AgentID  string `json:"agentId"` // decimal
	Wallet   string `json:"wallet"`
	Owner    string `json:"owner"`              // of the identity
	Deadline int64  `json:"deadline,omitempty"` // 0: the longest that the registry accepts
}

// Consent is the answer of ConsentTool.
type Consent struct {
	Signature string `json:"signature"` // 0x and hex
	Deadline  int64  `json:"deadline"`  // the signed deadline
}

// registrarSheet returns the registrar's part of its manifest.
func registrarSheet() sheet {
	return sheet{name: "Registrar",
		does:         "Registers agents, publishes their registration files, and sets their wallets with the wallet's consent.",
		capabilities: []string{"identity"},
		tools: []standard.ManifestTool{{Name: ConsentTool,
			Description: "signs for wallets whose keys the orchestrator has"}},
		categories: []string{"register"}, writes: 1}
}

// registrar is the craft of the registrar.
type registrar struct {
	self   Self
	chains places
}

// Accept refuses an order that the identity registry would refuse. repute.ErrInvalid names the
// field.
func (r *registrar) Accept(o order[Identity]) error {
	in := &o.In
	switch in.Action {
	case jobRegister:
		if _, err := r.chains.at(in.ChainID); err != nil {
			return err
		}
		if in.URI != "" && in.Registration != nil {
			return repute.Invalid("input.uri", "comes beside a registration", "one of both, or none")
		}
	case jobDescribe:
		if (in.URI == "") == (in.Registration == nil) {
			return repute.Invalid("input.registration", "is missing, or comes beside a uri", "one of both")
		}
	case jobWallet:
		if _, err := repute.ParseAddress("input.wallet", in.Wallet); err != nil {
			return err
		}
		if in.Signature != "" && in.Deadline == 0 {
			return repute.Invalid("input.deadline", "is missing", "the one that was signed, in unix seconds")
		}
	default:
		return repute.Invalid("input.action", fmt.Sprintf("%.40q is none", in.Action), "register, describe or wallet")
	}
	if len(in.Registration) > 0 {
		if _, problems := manifest.Parse(in.Registration); repute.HasErrors(problems) {
			return repute.Invalid("input.registration", "is no registration file: "+problems[0].Code,
				"repute manifest check tells what is wrong")
		}
	}
	if in.Agent == "" && in.Action != jobRegister && o.Before[jobRegister] == nil {
		return repute.Invalid("input.agent", "is missing", "chain:id, or a step that registers one before")
	}
	return nil
}

// subject returns the agent that an order concerns. The registrar itself is refused: its key sends the
// transactions, so that the author of a task could otherwise rename it or move its wallet.
func (r *registrar) subject(o order[Identity]) (id repute.AgentID, c Chain, err error) {
	text := o.In.Agent
	if text == "" {
		made, err := before[Registered](o.Before, jobRegister)
		if err != nil {
			return id, c, err
		}
		text = made.Agent
	}
	if id, c, err = r.chains.agent("input.agent", text); err == nil && r.self.owns(id) {
		err = repute.Invalid("input.agent", "is the registrar itself", "another agent")
	}
	return id, c, err
}

// file returns the URI of a registration: the given one, or a data URI of the file with the agent's
// id.
func (in *Identity) file(id *repute.AgentID) (string, error) {
	if in.URI != "" || in.Registration == nil {
		return in.URI, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(in.Registration, &members); err != nil {
		return "", repute.Invalid("input.registration", "is no object", "a registration file")
	}
	if id != nil {
		own, err := json.Marshal([]map[string]any{{"agentId": json.RawMessage(id.TokenID.Dec()),
			"agentRegistry": fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry)}})
		if err != nil {
			return "", err
		}
		members["registrations"] = own
	}
	uri, _, err := publish(members)
	return uri, err
}

// tx returns the transaction of an order. uri is the published URI, empty for none.
func (r *registrar) tx(ctx context.Context, w World, o order[Identity]) (tx transaction.Tx, id repute.AgentID,
	uri string, err error) {
	if o.In.Action == jobRegister {
		c, err := r.chains.at(o.In.ChainID)
		if err != nil {
			return tx, id, "", err
		}
		uri, err = o.In.file(nil)
		return transaction.Tx{Key: jobRegister, ChainID: c.ID, Target: c.Identity,
			Data:    identities.PackRegisterURI(uri),
			Purpose: "register an agent"}, id, uri, err
	}
	id, c, err := r.subject(o)
	if err != nil {
		return tx, id, "", err
	}
	tx = transaction.Tx{Key: o.In.Action, ChainID: c.ID, Target: c.Identity,
		Purpose: o.In.Action + " of agent " + id.Short()}
	if o.In.Action == jobDescribe {
		if uri, err = o.In.file(&id); err == nil {
			tx.Data = identities.PackSetAgentURI(id.TokenID.ToBig(), uri)
		}
		return tx, id, uri, err
	}
	tx.Data, err = r.walletData(ctx, w, o, c, id)
	return tx, id, "", err
}

// walletData returns the call that sets a wallet, with the wallet's consent.
func (r *registrar) walletData(ctx context.Context, w World, o order[Identity], c Chain, id repute.AgentID) ([]byte,
	error) {
	wallet, err := repute.ParseAddress("input.wallet", o.In.Wallet)
	if err != nil {
		return nil, err
	}
	text, deadline := o.In.Signature, o.In.Deadline
	if text == "" {
		owner, err := view(ctx, w, c.ID, c.Identity, identities.PackOwnerOf(id.TokenID.ToBig()),
			identities.UnpackOwnerOf)
		if err != nil {
			return nil, err
		}
		var consent Consent
		if consent, err = ask(ctx, w, ConsentRequest{ChainID: c.ID, AgentID: id.TokenID.Dec(), Wallet: wallet.Hex(),
			Owner: owner.Hex(), Deadline: deadline}); err != nil {
			return nil, err
		}
		text, deadline = consent.Signature, consent.Deadline
	}
	signature, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil || len(signature) == 0 || len(signature) > maxSignature {
		return nil, repute.Invalid("input.signature", "is no signature",
			"0x and hex digits, as the wallet signed AgentWalletSet")
	}
	return identities.PackSetAgentWallet(id.TokenID.ToBig(), wallet, big.NewInt(deadline), signature), nil
}

// maxSignature bounds signatures of wallets, in bytes; signatures of contract wallets may be long.
const maxSignature = 4 << 10

// ask calls the tool that signs consents.
func ask(ctx context.Context, w World, q ConsentRequest) (c Consent, err error) {
	input, err := json.Marshal(q)
	if err != nil {
		return c, err
	}
	answer, err := w.Tool(ctx, ConsentTool, input)
	if err != nil {
		return c, fmt.Errorf("consent of wallet %s: %w", q.Wallet, err)
	}
	return c, json.Unmarshal(answer, &c)
}

// DryRun declares the transaction of the order. The consent of the dry run is not the one that is sent, as it has a
// deadline; any other difference from the declared call ends the run.
func (r *registrar) DryRun(ctx context.Context, w World, o order[Identity]) (d standard.DryRun, err error) {
	tx, _, _, err := r.tx(ctx, w, o)
	if o.In.Action == jobWallet && o.In.Signature == "" { // the wallet consents anew when it is sent
		tx.Placeholders = []transaction.Placeholder{
			{Path: "2", Type: "uint256", Min: "0", Max: fmt.Sprint(math.MaxInt64)},
			{Path: "3", Type: "bytes", MaxLength: maxSignature}}
	}
	d.Calls = []transaction.Tx{tx}
	return d, err
}

// Do sends the transaction and reads the result from its logs.
func (r *registrar) Do(ctx context.Context, w World, o order[Identity]) (done Registered, err error) {
	tx, id, uri, err := r.tx(ctx, w, o)
	if err != nil {
		return done, err
	}
	sent, err := w.Send(ctx, tx)
	if err != nil {
		return done, err
	}
	done = Registered{URI: uri, Tx: sent.Hash, Wallet: o.In.Wallet}
	if o.In.Action == jobRegister {
		event, err := logOf(sent, tx.Target, identities.UnpackRegisteredEvent)
		if err != nil {
			return done, err
		}
		id = repute.AgentID{ChainID: tx.ChainID, Registry: tx.Target}
		id.TokenID.SetFromBig(event.AgentId)
		done.Owner = event.Owner.Hex()
	}
	done.Agent = id.String()
	return done, nil
}

// Verify reads the changed values from the registry, and takes nothing from the result but the agent's id.
func (r *registrar) Verify(ctx context.Context, w World, o order[Identity],
	done Registered) (out []standard.Check, err error) {
	id, c, err := r.chains.agent("result.agent", done.Agent)
	if err != nil {
		return nil, err
	}
	number := id.TokenID.ToBig()
	owner, err := view(ctx, w, c.ID, c.Identity, identities.PackOwnerOf(number), identities.UnpackOwnerOf)
	if err != nil {
		return []standard.Check{{Name: "identity exists", Details: err.Error()}}, nil
	}
	out = append(out, standard.Check{Name: "identity exists", Passed: true})
	if o.In.Action == jobRegister {
		out = append(out, check("owner", owner.Hex(), done.Owner))
	}
	if o.In.Action == jobWallet {
		wallet, err := view(ctx, w, c.ID, c.Identity, identities.PackGetAgentWallet(number),
			identities.UnpackGetAgentWallet)
		if err != nil {
			return nil, err
		}
		return append(out, check("wallet", wallet, common.HexToAddress(o.In.Wallet))), nil
	}
	uri, err := view(ctx, w, c.ID, c.Identity, identities.PackTokenURI(number), identities.UnpackTokenURI)
	if err != nil {
		return nil, err
	}
	var said *repute.AgentID
	if o.In.Action == jobDescribe {
		said = &id
	}
	want, err := o.In.file(said)
	if err != nil {
		return nil, err
	}
	return append(out, check("uri", uri, want)), nil
}

// Summary describes the change.
func (r *registrar) Summary(o order[Identity], done Registered) standard.Summary {
	what := map[string]string{jobRegister: "was registered", jobDescribe: "has a registration file",
		jobWallet: "has the wallet " + done.Wallet}[o.In.Action]
	return standard.Summary{Text: fmt.Sprintf("Agent %s %s.", done.Agent, what), KeyActions: []string{o.In.Action},
		Receipts: []string{done.Tx.Hex()}}
}
