// Package gotemplate executes Go templates that the operator's author does not trust. The templates have the functions
// of Helm and of Sprig, and functions that read a cluster. Each execution is bounded in time and in size.
//
// A [Set] is parsed once and executed often. [ParameterTransformer] makes parameters of a component by a template.
//
// The generators of Helm charts and kustomizations are built on this package: [Guard] bounds templates that something
// else executes, such as the Helm SDK.
package gotemplate
