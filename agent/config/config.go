package config

import (
	"encoding/json"
	"time"

	"repute/agent/capability"
	"repute/agent/llm/modelfile"
	"repute/policy"
)

// Config is an agent as its operator describes it.
//
// The tags doc and default are what the reference in docs says of a member. A member without a default is empty where
// the file does not name it.
type Config struct {
	Agent      Agent      `json:"agent" doc:"who the agent is, and where its chain and index are"`
	Profile    Profile    `json:"profile" doc:"what the agent says of itself"`
	Listen     string     `json:"listen" doc:"address of the HTTP surface; AGENT_PORT sets its port" default:"127.0.0.1:3000"`
	LogLevel   string     `json:"log_level" doc:"debug, info, warn or error (AGENT_LOG_LEVEL)" default:"info"`
	Policy     Policy     `json:"policy" doc:"the policy.json"`
	Payments   Payments   `json:"payments" doc:"how the agent is paid"`
	Limits     Limits     `json:"limits" doc:"bounds of requests"`
	Validation Validation `json:"validation" doc:"who confirms results where the policy asks for it"`
	Manifest   Manifest   `json:"manifest" doc:"the agent.json that the agent serves of itself"`
	Receipts   Receipts   `json:"receipts" doc:"what is kept and shown of executions"`
	// Models are needed by handlers of kind oaf.
	Models modelfile.Table `json:"models" doc:"language models of handlers of kind oaf: see below"`
	// Capabilities MUST have at least one item.
	Capabilities []Capability `json:"capabilities" doc:"what the agent does"`

	// Notes say where the environment wins over the file.
	Notes []string `json:"-"`
}

// Agent names the agent.
type Agent struct {
	ID          Text   `json:"id" doc:"token id, or the full id eip155:chain:registry:token (AGENT_ID)"`
	Registry    string `json:"registry" doc:"address of the identity registry (AGENT_REGISTRY_CONTRACT)"`
	Key         string `json:"key" doc:"of the owner or wallet: env:NAME or file:PATH (AGENT_PRIVATE_KEY is the key)"`
	MetadataURI string `json:"metadata_uri" doc:"URI of the registration file; the chain's wins (AGENT_METADATA_URI)"`
	RPC         List   `json:"rpc" doc:"URLs of nodes, asked in order (RPC_URL, separated by commas)"`
	Indexer     string `json:"indexer" doc:"URL of the index that scores agents (INDEXER_URL)"`
	// Reputation and Validations are asked for feedback and validation requests.
	Reputation  string `json:"reputation" doc:"address of the reputation registry; the known one of the chain"`
	Validations List   `json:"validations" doc:"addresses of validation registries; the known ones of the chain"`
}

// Profile is the beginning of the registration file.
type Profile struct {
	Name           string `json:"name" doc:"name of the agent"`
	Description    string `json:"description" doc:"what it does, for people"`
	Version        string `json:"version" doc:"of the agent, three numbers" default:"1.0.0"`
	Image          string `json:"image" doc:"URL of a picture"`
	URL            string `json:"url" doc:"where clients reach the agent, https in production; the host of each request"`
	SupportedTrust List   `json:"supported_trust" doc:"trust models, such as reputation"`
}

// Policy says where the policy is.
type Policy struct {
	URI      string `json:"uri" doc:"file or https URL (AGENT_POLICY_URI); none: everything is allowed"`
	Unsigned bool   `json:"unsigned" doc:"accept a policy that its owner did not sign"`
}

// Payments say how the agent is paid.
type Payments struct {
	Address      string  `json:"address" doc:"account that is paid (AGENT_PAYMENT_ADDRESS); that of the key"`
	Facilitators List    `json:"facilitators" doc:"URLs, asked in order; settlements are confirmed on the chain"`
	Settler      string  `json:"settler" doc:"instead: slug of orchestrator.wallets whose key settles here"`
	Promises     bool    `json:"promises" doc:"accept signed receipts of the specification, by which no money moves"`
	RequireID    bool    `json:"require_id" doc:"demand an id of each payment (payment-identifier)"`
	NoOffers     bool    `json:"no_offers" doc:"leave out signed offers and receipts (offer-receipt)"`
	Tokens       []Token `json:"tokens" doc:"tokens that prices may name, beside the USDC that is known of a network"`
}

// Token is a token that prices are paid in.
type Token struct {
	Network  string `json:"network" doc:"CAIP-2, such as eip155:8453; the agent's chain"`
	Asset    string `json:"asset" doc:"address of the token"`
	Symbol   string `json:"symbol" doc:"how prices name it"`
	Decimals uint8  `json:"decimals" doc:"what the token's decimals() says"`
	Name     string `json:"name" doc:"of the EIP-712 domain; empty: paid by Permit2, without EIP-3009"`
	Version  string `json:"version" doc:"of the token's EIP-712 domain"`
}

// Validation says who confirms results.
type Validation struct {
	Validator string `json:"validator" doc:"address that is asked to confirm paid results; none: nobody is asked, and answers say that it is required"`
	Sender    string `json:"sender" doc:"slug of orchestrator.wallets whose key sends the requests and pays their gas: of the agent's owner or operator"`
	Registry  string `json:"registry" doc:"address of the validation registry that is asked; the first one of agent.validations"`
	Answerer  string `json:"answerer" doc:"slug of orchestrator.wallets whose key answers requests that name its address as validator, for capabilities with validates; none: no request is answered"`
	Daily     int    `json:"daily" doc:"requests that are judged in 24 hours, in all processes together" default:"24"`
}

// Manifest says for which host the agent's agent.json speaks.
type Manifest struct {
	Domain string `json:"domain" doc:"host that serves agent.json; that of profile.url. Without either there is none"`
	KeyEnv string `json:"key_env" doc:"variable of the environment with the Ed25519 key in PEM that proves the domain (tier 3) and signs commitments (tier 3+)"`
	// Commitments need a key.
	Commitments []Commitment `json:"commitments" doc:"promises that the key signs: see below"`
}

// Commitment is a promise of the operator.
type Commitment struct {
	Type       string `json:"type" doc:"such as latency_bound, uptime_sla or data_residency"`
	Constraint string `json:"constraint" doc:"what is promised; p99 < 500ms and 99.9% monthly uptime are measured, too"`
	Verifiable bool   `json:"verifiable" doc:"others can measure it"`
	Ref        string `json:"ref" doc:"URL of the details"`
}

// Limits bound requests.
type Limits struct {
	Concurrency int     `json:"concurrency" doc:"requests that are answered at once" default:"10"`
	Degraded    int     `json:"degraded" doc:"the same in mode degraded; half of it"`
	MaxBody     int64   `json:"max_body" doc:"bytes of a request" default:"10485760"`
	Rate        float64 `json:"rate" doc:"requests per second of one caller" default:"5"`
	Burst       int     `json:"burst" doc:"requests of one caller at once" default:"30"`
	Proxies     List    `json:"trusted_proxies" doc:"networks such as 10.0.0.0/8 whose X-Forwarded-For counts"`
	Drain       Seconds `json:"drain" doc:"how long requests in flight are waited for at the end, in seconds" default:"30"`
}

// Receipts say what is kept.
type Receipts struct {
	Public bool `json:"public" doc:"show amounts and signatures to everybody"`
	Days   int  `json:"days" doc:"how long the log is kept, 90 or more" default:"90"`
}

// Capability is a definition with its handler.
type Capability struct {
	capability.Definition
	Handler Handler
	// ChargeFrom and Repeatable are those of agent.Price and agent.Service.
	ChargeFrom string
	Repeatable bool
	// Validates judges results of others' capabilities of this name; nil: they are not judged.
	Validates *Handler
}

// Handler is the work behind a capability: exactly one of Exec, HTTP, MCP, Task and OAF.
type Handler struct {
	Exec   []string          `json:"exec" doc:"path of a program and its arguments; input on standard input, output on standard output"`
	Dir    string            `json:"dir" doc:"working directory of the program of exec or mcp.command; by default the directory of this file"`
	Env    map[string]string `json:"env" doc:"its environment, which is empty otherwise"`
	Memory int64             `json:"memory" doc:"exec: MiB of address space of each process" default:"512"`
	CPU    Seconds           `json:"cpu" doc:"exec: seconds of CPU time of each process" default:"10"`
	HTTP   string            `json:"http" doc:"URL that takes the call by POST and answers the output"`
	MCP    *MCP              `json:"mcp" doc:"a tool of an MCP server: see below"`
	Task   *Task             `json:"task" doc:"a task of an orchestrator: see below"`
	OAF    *OAF              `json:"oaf" doc:"an agent of the Open Agent Format: see below"`
}

// OAF is an agent of the Open Agent Format, which a model of Models drives.
type OAF struct {
	Dir        string `json:"dir" doc:"directory with the agent's AGENTS.md"`
	Programs   bool   `json:"programs" doc:"run programs that the agent brings: MCP servers on standard input and output, without limits, and scripts of skills, with limits"`
	Env        List   `json:"env" doc:"variables of the environment that the agent's files may name as ${NAME}; no others are read"`
	MaxTokens  int64  `json:"max_tokens" doc:"tokens that the model may read and write in one call; 0: no bound"`
	MaxCostUSD Text   `json:"max_cost_usd" doc:"dollars that the model may cost in one call; empty: no bound"`
}

// MCP is a tool of an MCP server, which is named by exactly one of URL and Command.
type MCP struct {
	URL      string   `json:"url" doc:"of a server over streamable HTTP"`
	Command  []string `json:"command" doc:"instead: program and arguments of a server on standard input and output; it keeps running"`
	Tool     string   `json:"tool" doc:"name of the tool; the input is its arguments"`
	TokenEnv string   `json:"token_env" doc:"variable of the environment with the bearer token for url"`
}

// Task is work that an orchestrator does.
type Task struct {
	URL         string        `json:"url" doc:"of the orchestrator, without /v1"`
	TokenEnv    string        `json:"token_env" doc:"variable of the environment with the bearer token of the orchestrator"`
	Coordinator string        `json:"coordinator" doc:"slug of the agent that plans the task; the orchestrator's choice"`
	Goal        string        `json:"goal" doc:"what to do; the description of the capability"`
	Tags        List          `json:"tags" doc:"tags of the task, for the rules of the orchestrator's policy"`
	Budget      policy.Bounds `json:"budget" doc:"maxSteps, maxToolCalls, maxRuntimeMs, maxOnchainWrites, maxGasWei; the orchestrator's defaults"`
	Step        string        `json:"step" doc:"step of the plan whose result is the output; the only step's result, or all results by step id"`
}

// own are the members of a capability that are not of its definition.
type own struct {
	Handler    Handler  `json:"handler" doc:"what does the work"`
	ChargeFrom string   `json:"chargeFrom" doc:"scheme upto: JSON Pointer into the output, to the amount that is charged"`
	Repeatable bool     `json:"repeatable" doc:"the handler may be called again for a payment after a crash"`
	Validates  *Handler `json:"validates" doc:"a handler that judges results of this capability of other agents, for validation.answerer"`
}

// UnmarshalJSON separates the definition from the other members.
func (c *Capability) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	ours := map[string]json.RawMessage{}
	for _, name := range []string{"handler", "chargeFrom", "repeatable", "validates"} {
		if v, ok := members[name]; ok {
			ours[name] = v
			delete(members, name)
		}
	}
	definition, err := json.Marshal(members)
	if err != nil {
		return err
	}
	if c.Definition, err = capability.ParseDefinition(definition); err != nil {
		return err
	}
	rest, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	var o own
	if err := decode("capabilities", rest, &o); err != nil {
		return err
	}
	c.Handler, c.ChargeFrom, c.Repeatable, c.Validates = o.Handler, o.ChargeFrom, o.Repeatable, o.Validates
	return nil
}

// Text is a text that may be written as a number.
type Text string

// UnmarshalJSON reads a string or a number.
// A number is taken as strictjson has converted it from YAML: a token id beyond 64 bits MUST be in quotes, since it
// would become a float otherwise.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] != '"' {
		*t = Text(raw)
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// List is a list of texts that may be written as one text.
type List []string

// UnmarshalJSON reads a list or a text.
func (l *List) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*l = List{""}
		return json.Unmarshal(raw, &(*l)[0])
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

// Seconds is a time in seconds.
// It is a number and no text such as "30s", as the file's other numbers are.
type Seconds float64

// Duration returns the time.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }
