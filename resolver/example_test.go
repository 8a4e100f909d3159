package resolver_test

import (
	"errors"
	"fmt"
	"log"

	"repute/resolver"
)

// Inline decodes a document that the URI itself contains. Nothing is fetched.
func ExampleInline() {
	body, err := resolver.Inline("data:application/json;base64,eyJuYW1lIjoiVHJhbnNsYXRvciJ9", 1024)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", body)

	_, err = resolver.Inline("data:application/json;base64,eyJuYW1lIjoiVHJhbnNsYXRvciJ9", 8)
	var failure *resolver.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Reason)
	}
	// Output:
	// {"name":"Translator"}
	// too_large
}
