// Package behavior has the tests that hold for both shop operators: the one that is written with Espalier, and the one
// that is written with controller-runtime alone. It also counts their lines.
package behavior
