// Package wire has the JSON shapes of the answers of REST and, by their field names, of GraphQL, and their conversion
// from the domain's types. It reads no database.
//
// The types are the contract: the tags doc, enum and example of a field are its documentation in OpenAPI and in the
// tools, and its Go name is its resolver in GraphQL. The functions Encode… fill them in; nothing else does. Types that
// only dashboards, streams or the orchestrator show are in packages below this one.
//
// What holds for all of them:
//
//   - Lists are never null, and what may be null is a pointer: Each and OrNull make them.
//   - Numbers of the chain have any size and are decimal texts (BigInt, Decimal); Long is a number of 64 bits.
//   - Texts of the chain and of documents are hostile. Invalid UTF-8 and NUL are mended, and then a field whose name
//     ends in Hex carries the raw bytes. A long text is cut, ends with an ellipsis, and the field cut names the path
//     that gives the whole, so that an answer stays small whatever somebody registered.
//   - Errors of endpoints and sources are shown WithoutSecrets: providers put keys into URLs.
package wire

import "encoding/json"

// Agent is an agent's state.
type Agent struct {
	ID           ID         `json:"id" doc:"eip155:{chainId}:{registry}:{tokenId}" example:"eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22"`
	ShortID      ID         `json:"shortId" doc:"{chainId}:{tokenId}"`
	ChainID      Long       `json:"chainId"`
	Registry     Address    `json:"registry"`
	TokenID      BigInt     `json:"tokenId" doc:"uint256, decimal"`
	Owner        Address    `json:"owner"`
	OwnerClaimed bool       `json:"ownerClaimed" doc:"true where the owner is only known from the registration, because the import has no transfers"`
	Wallet       *Address   `json:"wallet" doc:"null when cleared"`
	Approved     *Address   `json:"approved" doc:"the one approved address, null when none"`
	URI          string     `json:"uri" doc:"no more than 2 KiB; where the document is denied a data: URI ends with its comma, and a document in place of a URI is empty"`
	URIHex       *Hex       `json:"uriHex,omitempty"`
	URISize      Long       `json:"uriSize" doc:"bytes of the whole uri on chain"`
	Metadata     []Metadata `json:"metadata" doc:"the first 200 on-chain keys; always empty in a list of agents"`
	// MetadataCount is beside what is shown of them.
	MetadataCount Long     `json:"metadataCount" doc:"how many on-chain keys there are; always 0 in a list of agents"`
	Registered    Point    `json:"registered"`
	Updated       Point    `json:"updated" doc:"last event that touched the agent, its feedback or validations"`
	Counts        Counts   `json:"counts"`
	Document      Document `json:"document" doc:"what is known of the bytes behind uri"`
	// Similar is set in a search by text that is not unfolded.
	Similar *Long `json:"similar" doc:"how many near-identical agents of the same owner the search left out of its answer in favor of this one; null where they were not looked for: outside of a search by text, and with fold=false, which lists them"`
	// Manifest is set at the latest view.
	Manifest *AgentManifest `json:"manifest" doc:"the agent.json manifest of the agent in short, of several the proven one, then the one of the highest verified tier; null without one, and unless at is latest"`
	Standing
	Said
	Cut []Cut `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
}

// Counts are an agent's totals.
type Counts struct {
	Feedback    Long `json:"feedback" doc:"live ratings"`
	Revoked     Long `json:"revoked"`
	Clients     Long `json:"clients" doc:"distinct clients with live ratings"`
	Responses   Long `json:"responses"`
	Validations Long `json:"validations" doc:"answered requests of allow-listed contracts"`
}

// Point is where on the chain something happened.
type Point struct {
	Block    Long  `json:"block"`
	LogIndex Long  `json:"logIndex"`
	TxHash   Hash  `json:"txHash"`
	Time     *Time `json:"time" doc:"of the block, null when unknown" format:"date-time"`
}

// Metadata is one on-chain key.
type Metadata struct {
	Key    string  `json:"key"`
	KeyHex *Hex    `json:"keyHex,omitempty"`
	Value  Hex     `json:"value" doc:"0x and hex digits; no more than the first 2 KiB, and nothing behind what an answer shows of an agent's metadata"`
	Text   *string `json:"text" doc:"the value shown when it is plain UTF-8 text"`
	Size   Long    `json:"size" doc:"bytes of the whole value on chain"`
	// Partial: not all of it is shown.
	Partial bool  `json:"partial" doc:"key or value were cut: the agent's cut says where the whole is"`
	Set     Point `json:"set"`
}

// Document is what is known of a URI's bytes.
type Document struct {
	Status       string        `json:"status" enum:"none,pending,ok,invalid,failed,dead,denied"`
	Source       *string       `json:"source" doc:"data, inline, https or ipfs; null before the first fetch"`
	SHA256       *Hash         `json:"sha256"`
	Size         Long          `json:"size" doc:"bytes"`
	FetchedAt    *Time         `json:"fetchedAt" format:"date-time"`
	Reason       *string       `json:"reason" doc:"code of the last failure"`
	Detail       *string       `json:"detail" doc:"the failure in words"`
	NextTry      *Time         `json:"nextTry" format:"date-time"`
	Registration *Registration `json:"registration,omitempty"`
	Problems     []Problem     `json:"problems" doc:"no more than a hundred, in a list the first ten"`
	ProblemCount Long          `json:"problemCount" doc:"how many problems there are"`
	Proof        HashProof     `json:"proof" doc:"what shows that these bytes were meant"`
}

// Registration is a registration file as its author wrote it.
type Registration struct {
	Type           string                     `json:"type" example:"https://eips.ethereum.org/EIPS/eip-8004#registration-v1"`
	Name           string                     `json:"name"`
	Description    string                     `json:"description"`
	Image          string                     `json:"image"`
	Active         *bool                      `json:"active"`
	X402           *bool                      `json:"x402"`
	Services       []Service                  `json:"services"`
	Registrations  []RegistrationLink         `json:"registrations"`
	SupportedTrust []string                   `json:"supportedTrust"`
	Extra          map[string]json.RawMessage `json:"extra,omitempty" doc:"unknown members that are short, as written; never in a list"`
	Partial        bool                       `json:"partial" doc:"something was left out or cut: in a list unknown members, of a long file much; the document itself has all"`
}

// Service is one endpoint an agent offers.
type Service struct {
	Name      string                     `json:"name"`
	Endpoint  string                     `json:"endpoint"`
	Version   string                     `json:"version"`
	Skills    []string                   `json:"skills"`
	Domains   []string                   `json:"domains"`
	Tools     []string                   `json:"tools" doc:"of an MCP server (mcpTools)"`
	Prompts   []string                   `json:"prompts" doc:"of an MCP server (mcpPrompts)"`
	Resources []string                   `json:"resources" doc:"of an MCP server (mcpResources)"`
	Extra     map[string]json.RawMessage `json:"extra,omitempty"`
}

// RegistrationLink is a file's claim to be an agent's file.
type RegistrationLink struct {
	TokenID  *BigInt `json:"tokenId"`
	Registry string  `json:"registry"`
}

// Problem is one defect of a document.
type Problem struct {
	Code     string `json:"code"`
	Severity string `json:"severity" enum:"error,warning,info"`
	Path     string `json:"path" doc:"JSON pointer, empty for the whole document"`
	Message  string `json:"message"`
}

// Amount is an exact number: value / 10^decimals.
type Amount struct {
	Value    BigInt  `json:"value" doc:"integer, decimal digits"`
	Decimals int32   `json:"decimals"`
	Decimal  Decimal `json:"decimal" doc:"the same number written out, exact"`
}

// Feedback is one rating.
type Feedback struct {
	Agent  ID      `json:"agent" doc:"agent id"`
	Client Address `json:"client"`
	Index  Long    `json:"index" doc:"from 1 per agent and client"`
	Amount
	Tag1          string     `json:"tag1"`
	Tag1Hex       *Hex       `json:"tag1Hex,omitempty"`
	Tag2          string     `json:"tag2"`
	Tag2Hex       *Hex       `json:"tag2Hex,omitempty"`
	Endpoint      string     `json:"endpoint"`
	EndpointHex   *Hex       `json:"endpointHex,omitempty"`
	URI           string     `json:"uri"`
	URIHex        *Hex       `json:"uriHex,omitempty"`
	Hash          *Hash      `json:"hash" doc:"keccak256 of the file behind uri, null when not given"`
	File          *File      `json:"file" doc:"behind uri; null without uri and hash"`
	Payment       *Payment   `json:"payment" doc:"that the file claims for what it rates; null when it claims none"`
	Given         Point      `json:"given"`
	IsRevoked     bool       `json:"isRevoked"`
	Revoked       *Point     `json:"revoked,omitempty" doc:"where it was revoked; absent while live"`
	Responses     []Response `json:"responses" doc:"the first ten"`
	ResponseCount Long       `json:"responseCount"`
	Partial       bool       `json:"partial" doc:"a text of it, of its file or of a response was cut"`
	Cut           []Cut      `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
}

// Payment is what a rating's file claims to have been paid, and what the chain says of it.
type Payment struct {
	State    string   `json:"state" enum:"pending,verified,refused,unavailable"`
	Reason   *string  `json:"reason" doc:"why it is refused or unavailable"`
	ChainID  *Long    `json:"chainId" doc:"where it was paid, as claimed; null when the file does not say"`
	TxHash   *Hash    `json:"txHash"`
	From     *Address `json:"from"`
	To       *Address `json:"to"`
	Token    *Address `json:"token" doc:"of a verified payment, as what follows"`
	Symbol   *string  `json:"symbol"`
	Amount   *Decimal `json:"amount" doc:"in the token"`
	USD      *Decimal `json:"usd" doc:"what of it counts: less what came back"`
	Block    *Long    `json:"block"`
	LogIndex *Long    `json:"logIndex"`
	Time     *Time    `json:"time" format:"date-time"`
}

// Response is one answer appended to a rating.
type Response struct {
	Responder Address `json:"responder"`
	URI       string  `json:"uri"`
	URIHex    *Hex    `json:"uriHex,omitempty"`
	Hash      *Hash   `json:"hash"`
	File      *File   `json:"file" doc:"behind uri; null without uri and hash"`
	At        Point   `json:"at"`
}

// Validation is one request with its latest answer.
type Validation struct {
	Agent           ID                `json:"agent" doc:"agent id"`
	ChainID         Long              `json:"chainId"`
	Contract        Address           `json:"contract"`
	ContractTrusted bool              `json:"contractTrusted" doc:"on the chain's allow-list; anybody can answer 100 from another contract"`
	RequestHash     Hash              `json:"requestHash"`
	Validator       Address           `json:"validator"`
	RequestURI      string            `json:"requestUri"`
	RequestURIHex   *Hex              `json:"requestUriHex,omitempty"`
	RequestFile     *File             `json:"requestFile" doc:"behind requestUri, judged by requestHash, which many contracts make of something else than the file; null without uri"`
	Requested       Point             `json:"requested"`
	Status          string            `json:"status" enum:"pending,answered"`
	Answer          *ValidationAnswer `json:"answer,omitempty" doc:"absent while pending"`
	Answers         Long              `json:"answers" doc:"how many answers were given; the latest counts"`
	Partial         bool              `json:"partial" doc:"a text of it or of its answer was cut"`
	Cut             []Cut             `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
}

// ValidationAnswer is a validator's answer.
type ValidationAnswer struct {
	Response int32  `json:"response" maximum:"100"`
	URI      string `json:"uri"`
	URIHex   *Hex   `json:"uriHex,omitempty"`
	Hash     *Hash  `json:"hash"`
	File     *File  `json:"file" doc:"behind uri; null without uri and hash"`
	Tag      string `json:"tag"`
	TagHex   *Hex   `json:"tagHex,omitempty"`
	At       Point  `json:"at"`
}

// Summary is what getSummary returns.
type Summary struct {
	Count Long `json:"count"`
	Amount
}

// TagSummary is the robust view of one tag: one vote per reviewer.
type TagSummary struct {
	Tag       string  `json:"tag"`
	TagHex    *Hex    `json:"tagHex,omitempty"`
	Partial   bool    `json:"partial" doc:"the tag was cut"`
	Cut       []Cut   `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
	Count     Long    `json:"count" doc:"live ratings"`
	Reviewers Long    `json:"reviewers" doc:"distinct clients, one vote each"`
	Median    Amount  `json:"median"`
	Mean      Amount  `json:"mean"`
	Min       Amount  `json:"min"`
	Max       Amount  `json:"max"`
	Unit      *string `json:"unit" doc:"what the values mean, null when unknown"`
}

// AsOf says how fresh an answer of one chain is.
type AsOf struct {
	ChainID      Long         `json:"chainId"`
	Block        Long         `json:"block" doc:"the block the answer is true at"`
	Hash         *Hash        `json:"hash"`
	Time         *Time        `json:"time" doc:"of the block" format:"date-time"`
	Finality     string       `json:"finality" doc:"latest, safe, finalized or block"`
	Safe         *Long        `json:"safe"`
	Finalized    *Long        `json:"finalized"`
	Head         *Long        `json:"head" doc:"the node's head when last asked"`
	HeadSeenAt   *Time        `json:"headSeenAt" format:"date-time"`
	LagSeconds   *Long        `json:"lagSeconds" doc:"now minus the block's time; null when that is unknown"`
	LagBlocks    *Long        `json:"lagBlocks" doc:"null when the head was not seen lately"`
	Completeness Completeness `json:"completeness"`
}

// Completeness is how much of a chain's history the index vouches for.
type Completeness struct {
	Status          string       `json:"status" enum:"complete,verifying,unproven,partial,incomplete" doc:"complete: every block from the start to the newest final one, less those of ten minutes (32 to 4,096), is indexed and proven"`
	Reason          string       `json:"reason" doc:"what complete lacks; empty for complete"`
	VerifiedToBlock *Long        `json:"verifiedToBlock" doc:"block up to which every block from the start on is proven; null while the first ones are not: newer blocks are proven first"`
	Ranges          []BlockRange `json:"ranges" doc:"what is covered"`
	Pending         Long         `json:"pending" doc:"stored events that wait for a missing one"`
	// Undecoded and OpenGaps are what else keeps a chain from being complete.
	Undecoded Long `json:"undecoded" doc:"stored logs of the registries that nobody can read"`
	OpenGaps  Long `json:"openGaps" doc:"events that the chain has and the index lacks; /status lists them"`
}

// KindCompleteness is how much of one kind of event the index vouches for.
type KindCompleteness struct {
	Kind            string `json:"kind" doc:"the event's Solidity name"`
	Status          string `json:"status" enum:"complete,verifying,unproven,partial,incomplete"`
	Reason          string `json:"reason" doc:"what complete lacks; empty for complete"`
	VerifiedToBlock *Long  `json:"verifiedToBlock" doc:"newest block at which what these events lead to was compared with the chain's own state and found equal; null when it never was"`
	Pending         Long   `json:"pending" doc:"stored events that wait for one of this kind"`
	OpenGaps        Long   `json:"openGaps" doc:"events of this kind that are known to be missing"`
	Gaps            []Gap  `json:"gaps" doc:"the oldest of them"`
}

// Gap is an event that the chain has and the index lacks.
type Gap struct {
	Agent   *ID        `json:"agent" doc:"short id of the agent concerned, null when of no single one"`
	Client  *Address   `json:"client" doc:"of whose feedback, null when that says nothing"`
	Blocks  BlockRange `json:"blocks" doc:"where the event must be"`
	Reason  string     `json:"reason" doc:"what shows that it is missing"`
	Since   *Time      `json:"since" doc:"when that was noticed" format:"date-time"`
	Tries   Long       `json:"tries" doc:"how often it was looked for in vain"`
	NextTry *Time      `json:"nextTry" format:"date-time"`
}

// BlockRange is inclusive on both ends.
type BlockRange struct {
	From Long `json:"from"`
	To   Long `json:"to"`
}

// Registries are a chain's contracts.
type Registries struct {
	Identity    Address   `json:"identity"`
	Reputation  Address   `json:"reputation"`
	Validations []Address `json:"validations" doc:"allow-list"`
}

// ChainDocuments counts a chain's document URIs.
type ChainDocuments struct {
	Known Long `json:"known"`
	Due   Long `json:"due" doc:"waiting to be fetched"`
}

// Endpoint is the health of one JSON-RPC endpoint as one process sees it.
type Endpoint struct {
	Name        string  `json:"name" doc:"its host, never path or key"`
	Process     string  `json:"process" doc:"tells processes apart that ask the same endpoint"`
	Kind        string  `json:"kind" enum:"http,ws"`
	State       string  `json:"state" enum:"closed,open,half_open,excluded" doc:"of its circuit: closed works, open is left alone for a while, half_open is being tried, excluded serves another chain"`
	LatencyMs   float64 `json:"latencyMs" doc:"milliseconds, smoothed"`
	ErrorRate   float64 `json:"errorRate" doc:"failures per request, smoothed, 0 to 1"`
	Requests    Long    `json:"requests" doc:"since the process started"`
	Failures    Long    `json:"failures"`
	RateLimit   float64 `json:"rateLimit" doc:"requests per second it is asked at most, 0 for any"`
	Concurrency Long    `json:"concurrency" doc:"requests at a time it is asked at most"`
	Head        *Long   `json:"head" doc:"newest block it has reported"`
	LastError   *string `json:"lastError"`
	LastOKAt    *Time   `json:"lastOkAt" format:"date-time"`
	UpdatedAt   *Time   `json:"updatedAt" doc:"when the process last told" format:"date-time"`
}

// ChainScores tells how far the scores of a chain are.
type ChainScores struct {
	Epoch      *Long         `json:"epoch" doc:"of the newest weights of raters, null before the first"`
	Block      *Long         `json:"block" doc:"last block of that epoch"`
	WalkedAt   *Time         `json:"walkedAt" doc:"when those weights were found" format:"date-time"`
	Final      bool          `json:"final" doc:"all final scores of the epoch are stored"`
	Roots      Long          `json:"roots" doc:"the chain's own roots of trust that have not expired; without any only sources give raters weight"`
	Stale      Long          `json:"stale" doc:"agents whose scores are to be recomputed"`
	StaleSince *Time         `json:"staleSince" doc:"since when the first of them waits" format:"date-time"`
	LookedAt   *Time         `json:"lookedAt" doc:"when a process last checked for changes, to about ten seconds" format:"date-time"`
	Verified   bool          `json:"verified" doc:"every block that the newest final scores follow from is proven to be indexed completely"`
	VerifiedTo *Long         `json:"verifiedTo" doc:"block up to which every block from the start on was proven when they were made; null for none"`
	Sources    []SourceState `json:"sources" doc:"how the sources of raters' first weight were read for them; empty where none is read"`
	Coverage   Coverage      `json:"coverage" doc:"of the newest epoch that was closed; all 0 before the first"`
	Late       bool          `json:"late" doc:"true when no process checked for a minute, or a change has waited that long; before the first epoch: when there could be scores"`
}

// Coverage tells how much of what was said of a chain's agents counts in scores.
type Coverage struct {
	Records  Counted       `json:"records" doc:"live ratings, and latest answers of validation contracts on the allow-list; one counts if the table of tags can read it and its rater has weight"`
	Raters   Counted       `json:"raters" doc:"addresses that rated; those count of which a record does"`
	Agents   Counted       `json:"agents" doc:"that have records; those count of which a record does"`
	Several  Long          `json:"several" doc:"agents that three or more distinct raters rated, of any weight"`
	ByRoots  Long          `json:"byRoots" doc:"of the records that count, those by roots themselves"`
	Rated    Long          `json:"rated" doc:"agents with that status when the epoch was closed"`
	Thin     Long          `json:"thin" doc:"agents with that status when the epoch was closed"`
	BySource []SourceCount `json:"bySource" doc:"of the records that count, those whose rater has weight by a source, by several sources more than once; the most frequent first"`
	ToFifty  *LiftPrice    `json:"toFifty" doc:"what it costs to lift a new agent to a score of 50 by credentials alone; null where no source is read"`
	Left     []ReasonCount `json:"left" doc:"the records that do not count by reason, the most frequent first: those of explanations, and no-weight: the rater has no weight"`
	Tags     []UnreadTag   `json:"tags" doc:"the ten most frequent tags of the records that are left out because of their tag"`
}

// SourceCount counts records by a source.
type SourceCount struct {
	Source string `json:"source" doc:"its id in the policy of sources"`
	Count  Long   `json:"count"`
}

// LiftPrice is what credentials cost that lift a new agent to a score.
type LiftPrice struct {
	Dollars  *float64 `json:"dollars" doc:"least sum of published prices, within the bounds of each source, each class and all; null where it is out of reach. To rent a holder for one rating costs less, and no price of that is known"`
	Units    float64  `json:"units" doc:"of evidence that the score needs; where it is out of reach the most that there is at published prices"`
	Priced   []string `json:"priced" doc:"the sources that were counted, the cheapest by unit first"`
	Unpriced []string `json:"unpriced" doc:"sources that give weight and have no published price: they were not counted"`
}

// UnreadTag is a tag that the table of tags does not read, or reads for another purpose than the score.
type UnreadTag struct {
	Tag     string `json:"tag" doc:"with U+FFFD for what is not printable; empty for records without a tag"`
	Reason  string `json:"reason" doc:"unknown-tag or other-channel"`
	Records Long   `json:"records"`
}

// Counted is how many of all count.
type Counted struct {
	All     Long `json:"all"`
	Counted Long `json:"counted"`
}

// Chain is one indexed chain.
type Chain struct {
	ChainID         Long           `json:"chainId"`
	Name            string         `json:"name"`
	Registries      Registries     `json:"registries"`
	StartBlock      Long           `json:"startBlock"`
	Imported        bool           `json:"imported" doc:"fed by import, never followed"`
	Agents          Long           `json:"agents"`
	Feedback        Long           `json:"feedback"`
	Documents       ChainDocuments `json:"documents"`
	Scores          ChainScores    `json:"scores"`
	Reorgs          Long           `json:"reorgs"`
	Upgrades        Long           `json:"upgrades" doc:"times that a registry got another implementation"`
	UpgradedAtBlock *Long          `json:"upgradedAtBlock" doc:"the last such upgrade, null when there was none"`
	Halted          bool           `json:"halted" doc:"stopped by a reorganization below finality"`
	Stalled         bool           `json:"stalled" doc:"the head moves and nothing is stored"`
	LastError       *string        `json:"lastError"`
	// Endpoints and Kinds are for operators.
	Endpoints []Endpoint `json:"endpoints" doc:"the JSON-RPC endpoints that are asked; one entry per process that asks"`
	// Kinds is the completeness of asOf in detail.
	Kinds []KindCompleteness `json:"kinds" doc:"completeness of every kind of event"`
	AsOf  AsOf               `json:"asOf"`
}
