// Package browser tests the page of an operator in a browser, as people use it. "make browser" runs the tests.
package browser
