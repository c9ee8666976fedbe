//go:build race

package foreign_test

const raceDetector = true
