// Package feature has gates: switches for a feature, for one of its objects, or for a mutation.
package feature

// Gate says whether something is on. An error means that it is not known.
type Gate interface {
	Enabled() (bool, error)
}
