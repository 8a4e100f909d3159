// Package export serves whole sets of a chain as files, as of one final block. A manifest lists the parts of a set by
// ranges of keys, with the number of rows and the sha256 of each. A part is made when it is asked for, is the same
// bytes each time and in each process, and is served only while it has the hash of the manifest: byte ranges of it can
// therefore be put together. Where what is stored of the block has changed, because missed events were found or a
// document was denied, the answer is 410 and the caller takes a new manifest.
package export
