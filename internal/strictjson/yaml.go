package strictjson

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v4"

	"repute"
)

// ReadFile reads a YAML file of at most most bytes. repute.ErrInvalid names field.
func ReadFile(field, path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, repute.Invalid(field, err.Error(), "a readable YAML file")
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil || int64(len(text)) > most {
		return nil, repute.Invalid(field, fmt.Sprintf("cannot be read, or is larger than %d KiB", most>>10),
			"a readable YAML file")
	}
	return text, nil
}

// FromYAML returns the JSON of a YAML document. repute.ErrInvalid names field; hint says what the document may have.
func FromYAML(field string, text []byte, hint string) ([]byte, error) {
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, repute.Invalid(field, fmt.Sprintf("%.300s", err.Error()), "YAML")
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, repute.Invalid(field, "is no YAML of texts, numbers, lists and objects", hint)
	}
	return raw, nil
}
