#!/usr/bin/env bash
# Prints the readable part of `go test -json` output lines given on stdin.
sed -E 's/.*"Output":"(.*)"\}$/\1/; s/\\n$//; s/\\t/\t/g; s/\\"/"/g' |
  grep -vE '^(=== (RUN|PAUSE|CONT|NAME)|--- PASS|ok  |PASS|\?  )' | tail -300
