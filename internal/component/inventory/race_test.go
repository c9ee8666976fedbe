//go:build race

package inventory_test

const raceDetector = true
