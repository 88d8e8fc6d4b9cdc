// Package reference writes the reference pages of the documentation from what the program declares:
// routes from the OpenAPI document, keys of definitions from the JSON Schemas, and commands from
// cobra. Tests compare the pages with it, and rewrite them with the flag -update.
package reference
