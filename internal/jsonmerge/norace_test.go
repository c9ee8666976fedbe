//go:build !race

package jsonmerge_test

const raceDetector = false
