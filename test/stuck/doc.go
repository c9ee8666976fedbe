// Package stuck has the tests of docs/stuck.md: each row of its tables is a case that happens here, on an operator and
// an API server. What the row quotes has to be seen where it says, and what it tells to do has to help.
package stuck
