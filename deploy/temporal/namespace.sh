#!/bin/sh
# Creates the namespace with the search attributes that runs are started with. May run again at any
# time. The server's address is in TEMPORAL_ADDRESS.
set -eu

temporal operator namespace describe --namespace default ||
  temporal operator namespace create --namespace default --retention 168h

# A namespace can be used some seconds after it was created.
tries=0
until temporal operator search-attribute list --namespace default; do
  tries=$((tries + 1))
  [ "$tries" -lt 30 ] || exit 1
  sleep 1
done

for name in PerdureTenant PerdureAgent PerdureRun; do
  temporal operator search-attribute create --namespace default --name "$name" --type Keyword
done
