package controller

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	v1 "github.com/espalier-dev/espalier/examples/plugins/api/v1"
)

// NewScheme returns a scheme with all types that the tree deals with.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme))
}
