package fakemanager

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guessingMapper maps the given resources, the kinds of the scheme, and as a guess any other kind.
type guessingMapper struct {
	meta.RESTMapper
}

func newMapper(scheme *runtime.Scheme, given meta.RESTMapper) meta.RESTMapper {
	return guessingMapper{meta.FirstHitRESTMapper{
		MultiRESTMapper: meta.MultiRESTMapper{given, testrestmapper.TestOnlyStaticRESTMapper(scheme)},
	}}
}

// RESTMapping implements [meta.RESTMapper].
func (m guessingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err == nil || len(versions) == 0 {
		return mapping, err
	}
	guess := meta.NewDefaultRESTMapper(nil)
	guess.Add(kind.WithVersion(versions[0]), meta.RESTScopeNamespace)
	return guess.RESTMapping(kind, versions...)
}
