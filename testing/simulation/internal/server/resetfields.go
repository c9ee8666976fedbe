package server

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var _ rest.ResetFieldsStrategy = strategy{}

// GetResetFields implements [rest.ResetFieldsStrategy]: what a request cannot write gets no field manager.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	if !s.rules.HasStatus() {
		return sets
	}
	for _, v := range s.kind.versions {
		version := fieldpath.APIVersion(schema.GroupVersion{Group: s.kind.Kind.Group, Version: v.Name}.String())
		if s.subresource == "" {
			sets[version] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
			if s.kind.Kind == signingRequest {
				sets[version].Insert(fieldpath.MakePathOrDie("spec"))
			}
			continue
		}
		sets[version] = fieldpath.NewSet(metadataOfStatus[s.kind.Kind]...)
		for _, name := range contents(reflect.TypeOf(v.New()).Elem()) {
			sets[version].Insert(fieldpath.MakePathOrDie(name))
		}
	}
	return sets
}

// signingRequest is the kind whose specification is never written after the creation.
var signingRequest = schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}

// metadataOfStatus are the parts of the metadata that a status of a kind cannot write.
var metadataOfStatus = map[schema.GroupKind][]fieldpath.Path{
	{Group: "apps", Kind: "Deployment"}: {fieldpath.MakePathOrDie("metadata", "labels")},
	{Kind: "Pod"}: {
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                           {fieldpath.MakePathOrDie("metadata")},
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                           {fieldpath.MakePathOrDie("metadata")},
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                         {fieldpath.MakePathOrDie("metadata")},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 {fieldpath.MakePathOrDie("metadata")},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:  {fieldpath.MakePathOrDie("metadata")},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: {fieldpath.MakePathOrDie("metadata")},
}

// contents returns the names in JSON of the fields of a kind, without type, metadata and status.
func contents(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "metadata" && name != "status" {
			names = append(names, name)
		}
	}
	return names
}
