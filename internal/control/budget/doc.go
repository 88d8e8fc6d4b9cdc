// Package budget has the prices of models, and counts what each tenant uses in a day against its
// budget.
//
// A budget has hard amounts, at which runs end, and soft amounts, at which a run asks approvers
// whether it may continue. Activities check the budget before a model call and count the call after
// it.
package budget
