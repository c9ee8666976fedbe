// Package projecttest has tests of generated projects: they are built, vetted, tested and run.
package projecttest
