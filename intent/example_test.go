package intent_test

import (
	"context"
	"fmt"
	"log"

	"repute/intent"
	"repute/intent/sentence"
)

func Example() {
	embedder, err := sentence.New()
	if err != nil {
		log.Fatal(err)
	}
	index, err := intent.New(embedder)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = index.Add(ctx,
		intent.Item{ID: "8453:22#book_flight", Kind: intent.KindIntent, Name: "book_flight",
			Description: "Reserve seats on an airline between two cities."},
		intent.Item{ID: "8453:31#get_weather", Kind: intent.KindTool, Name: "get_weather",
			Description: "Forecast of temperature, rain and wind for a place."})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"get me a plane ticket to Berlin", "will it snow tomorrow", "tell me a joke"} {
		r, err := index.Search(ctx, intent.Query{Text: text, Limit: 1})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s, score %.2f, sure %v\n", text, r.Matches[0].ID, r.Matches[0].Score, r.Sure)
	}
	// Output:
	// get me a plane ticket to Berlin: 8453:22#book_flight, score 0.48, sure true
	// will it snow tomorrow: 8453:31#get_weather, score 0.42, sure false
	// tell me a joke: 8453:31#get_weather, score 0.08, sure false
}

// Vectors are stored next to the item, so that it is embedded only once.
func Example_storedVectors() {
	embedder, err := sentence.New()
	if err != nil {
		log.Fatal(err)
	}
	item := intent.Item{ID: "1", Kind: intent.KindSkill, Name: "translate_text", Examples: []string{"say it in French"}}
	vectors, err := intent.Vectors(context.Background(), embedder, item)
	if err != nil {
		log.Fatal(err)
	}
	var stored [][]byte
	for _, v := range vectors[0] {
		b, err := v.MarshalBinary()
		if err != nil {
			log.Fatal(err)
		}
		stored = append(stored, b)
	}

	read := make([]intent.Vector, len(stored))
	for i, b := range stored {
		if err := read[i].UnmarshalBinary(b); err != nil {
			log.Fatal(err)
		}
	}
	index, err := intent.New(embedder)
	if err != nil {
		log.Fatal(err)
	}
	if err := index.Put(item, read); err != nil {
		log.Fatal(err)
	}
	fmt.Println(index.Len(), "item,", len(read), "vectors of", read[0].Model)
	// Output:
	// 1 item, 2 vectors of universal-sentence-encoder-lite/int8/1
}
