#!/bin/sh
# Creates the namespace and Perdure's search attributes. Safe to repeat. TEMPORAL_ADDRESS is the address of
# the server.
set -eu

temporal operator namespace describe --namespace default ||
  temporal operator namespace create --namespace default --retention 168h

# A new namespace is usable after some seconds.
tries=0
until temporal operator search-attribute list --namespace default; do
  tries=$((tries + 1))
  [ "$tries" -lt 30 ] || exit 1
  sleep 1
done

for name in PerdureTenant PerdureAgent PerdureRun; do
  temporal operator search-attribute create --namespace default --name "$name" --type Keyword
done
