package api

// The API checks who may decide, before anything is written. The workflow knows no roles, and
// counts the votes that the API lets through.
