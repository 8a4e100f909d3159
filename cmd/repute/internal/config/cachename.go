package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
)

// CacheName returns a text that differs between processes whose answers do: by their database, or by the configuration
// that answers depend on. It tells nothing of either.
func (c *Config) CacheName() (string, error) {
	of := struct {
		Database, Private, Host string
		Chain                   uint64
		Trust                   trustConfig
		PublicURL               string
		Signs                   bool
	}{Database: c.Database, Chain: c.DefaultChain, Trust: c.Trust, PublicURL: c.Orchestrator.PublicURL,
		Signs: c.Signing.Signer != nil}
	if c.Database == "" { // the private one of this machine
		host, err := os.Hostname()
		if err != nil {
			return "", err
		}
		of.Private, of.Host = c.DataDir, host
	}
	raw, err := json.Marshal(of)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), err
}
