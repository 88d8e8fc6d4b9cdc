// Package budget knows what models cost, and what a tenant may use in a day.
package budget
