// Package reference generates the reference pages of the documentation from declarations of the
// program: routes from the OpenAPI document, keys of definitions from the JSON Schemas, and
// commands from cobra. Tests compare the pages with the generated text, and rewrite them with the
// flag -update.
package reference
