package controller

import "k8s.io/apimachinery/pkg/util/validation/field"

// DefaultsKey is where the nodes find the defaults in the stash.
var DefaultsKey = defaultsStash.Key()

// ParseDefaults returns what goes into the stash.
func ParseDefaults(data map[string]string) (any, field.ErrorList) { return parseDefaults(data) }
