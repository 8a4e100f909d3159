package exportdb

import "time"

// The rows of the sets, in the names and types of their files. Addresses, hashes and bytes are lower-case hex with 0x,
// and null where there is none. Numbers of the chain that exceed 64 bits are decimal texts. Texts are UTF-8: bytes of
// the chain that are not are replaced by U+FFFD, and set events has the exact ones.

// Agent is an agent as it was after the block.
type Agent struct {
	ChainID        uint64     `parquet:"chain_id" json:"chain_id"`
	Registry       string     `parquet:"registry,dict" json:"registry"`
	TokenID        string     `parquet:"token_id" json:"token_id"`
	Owner          *string    `parquet:"owner,dict" json:"owner"`
	Wallet         *string    `parquet:"wallet,dict" json:"wallet"`
	Approved       *string    `parquet:"approved,dict" json:"approved"`
	URI            string     `parquet:"uri" json:"uri"`
	URIDenied      bool       `parquet:"uri_denied" json:"uri_denied"`
	RegisteredAt   uint64     `parquet:"registered_block" json:"registered_block"`
	RegisteredLog  uint64     `parquet:"registered_log_index" json:"registered_log_index"`
	RegisteredTx   *string    `parquet:"registered_tx_hash" json:"registered_tx_hash"`
	RegisteredTime *time.Time `parquet:"registered_time,timestamp(millisecond)" json:"registered_time"`
	Feedback       uint64     `parquet:"feedback" json:"feedback"`
	Revoked        uint64     `parquet:"revoked" json:"revoked"`
	Clients        uint64     `parquet:"clients" json:"clients"`
}

// Feedback is a rating, also one that was revoked up to the block.
type Feedback struct {
	ChainID       uint64     `parquet:"chain_id" json:"chain_id"`
	TokenID       string     `parquet:"token_id,dict" json:"token_id"`
	Client        string     `parquet:"client,dict" json:"client"`
	Index         uint64     `parquet:"feedback_index" json:"feedback_index"`
	Value         string     `parquet:"value,dict" json:"value"`
	Decimals      int32      `parquet:"value_decimals" json:"value_decimals"`
	Tag1          string     `parquet:"tag1,dict" json:"tag1"`
	Tag2          string     `parquet:"tag2,dict" json:"tag2"`
	Endpoint      string     `parquet:"endpoint,dict" json:"endpoint"`
	URI           string     `parquet:"uri" json:"uri"`
	URIDenied     bool       `parquet:"uri_denied" json:"uri_denied"`
	Hash          *string    `parquet:"feedback_hash" json:"feedback_hash"`
	Block         uint64     `parquet:"block" json:"block"`
	LogIndex      uint64     `parquet:"log_index" json:"log_index"`
	TxHash        *string    `parquet:"tx_hash" json:"tx_hash"`
	Time          *time.Time `parquet:"block_time,timestamp(millisecond)" json:"block_time"`
	RevokedBlock  *uint64    `parquet:"revoked_block" json:"revoked_block"`
	RevokedLog    *uint64    `parquet:"revoked_log_index" json:"revoked_log_index"`
	RevokedTxHash *string    `parquet:"revoked_tx_hash" json:"revoked_tx_hash"`
}

// Event is a log of the registries as it was received.
type Event struct {
	ChainID   uint64     `parquet:"chain_id" json:"chain_id"`
	Block     uint64     `parquet:"block" json:"block"`
	LogIndex  uint64     `parquet:"log_index" json:"log_index"`
	TxIndex   uint64     `parquet:"tx_index" json:"tx_index"`
	Name      string     `parquet:"name,dict" json:"name"`
	Address   string     `parquet:"address,dict" json:"address"`
	TxHash    string     `parquet:"tx_hash" json:"tx_hash"`
	BlockHash *string    `parquet:"block_hash" json:"block_hash"`
	Time      *time.Time `parquet:"block_time,timestamp(millisecond)" json:"block_time"`
	TokenID   *string    `parquet:"token_id,dict" json:"token_id"`
	Topic0    *string    `parquet:"topic0,dict" json:"topic0"`
	Topic1    *string    `parquet:"topic1" json:"topic1"`
	Topic2    *string    `parquet:"topic2" json:"topic2"`
	Topic3    *string    `parquet:"topic3" json:"topic3"`
	// Data is null where the deny-list withholds what it holds.
	Data *string `parquet:"data" json:"data"`
}

// Score is the final score of an agent by the newest closed run up to the block. An agent that was never rated has
// none.
type Score struct {
	ChainID uint64 `parquet:"chain_id" json:"chain_id"`
	TokenID string `parquet:"token_id" json:"token_id"`
	// Run is the run that computed the score; Block is the newest block that the run knows.
	Run        uint64 `parquet:"run" json:"run"`
	Block      uint64 `parquet:"block" json:"block"`
	Status     string `parquet:"status,dict" json:"status"`
	Score      int32  `parquet:"score_milli" json:"score_milli"`
	Low        int32  `parquet:"low_milli" json:"low_milli"`
	High       int32  `parquet:"high_milli" json:"high_milli"`
	Mean       int32  `parquet:"mean_milli" json:"mean_milli"`
	Confidence int32  `parquet:"confidence_millionths" json:"confidence_millionths"`
	Tier       int32  `parquet:"tier" json:"tier"`
	Limited    bool   `parquet:"limited" json:"limited"`
	Evidence   string `parquet:"evidence_sha256" json:"evidence_sha256"`
}

// Change is a change of the feed up to the block that no reorganization took back.
type Change struct {
	ChainID  uint64    `parquet:"chain_id" json:"chain_id"`
	Cursor   string    `parquet:"cursor" json:"cursor"`
	Kind     string    `parquet:"kind,dict" json:"kind"`
	Block    uint64    `parquet:"block" json:"block"`
	LogIndex uint64    `parquet:"log_index" json:"log_index"`
	TokenID  *string   `parquet:"token_id,dict" json:"token_id"`
	Data     string    `parquet:"data" json:"data"` // JSON as text
	At       time.Time `parquet:"learned_at,timestamp(microsecond)" json:"learned_at"`
}
