package registry

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ResetFields returns, by version, the fields of a built-in kind that a request cannot write, if its status is a
// subresource. They get no field manager. The subresource is "" or "status".
func ResetFields(t Type, subresource string) map[fieldpath.APIVersion]*fieldpath.Set {
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, v := range t.Versions {
		if !v.HasStatus {
			continue
		}
		set := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		switch {
		case subresource != "":
			set = fieldpath.NewSet(beyondStatus(t.Kind, v)...)
		case t.Kind == signingRequest:
			set.Insert(fieldpath.MakePathOrDie("spec"))
		}
		sets[fieldpath.APIVersion(schema.GroupVersion{Group: t.Kind.Group, Version: v.Name}.String())] = set
	}
	return sets
}

// signingRequest is the kind whose specification is never written after the creation.
var signingRequest = schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}

// metadataOfStatus are the parts of the metadata that a status of a kind cannot write, if it can write others.
var metadataOfStatus = map[schema.GroupKind][]fieldpath.Path{
	{Group: "apps", Kind: "Deployment"}: {fieldpath.MakePathOrDie("metadata", "labels")},
	{Kind: "Pod"}: {
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	},
}

// beyondStatus returns the fields of a kind that a request to its status cannot write.
func beyondStatus(kind schema.GroupKind, v Version) []fieldpath.Path {
	paths := metadataOfStatus[kind]
	if withStatusAlone[kind] {
		paths = append(paths, fieldpath.MakePathOrDie("metadata"))
	}
	t := reflect.TypeOf(v.New()).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "metadata" && name != "status" {
			paths = append(paths, fieldpath.MakePathOrDie(name))
		}
	}
	return paths
}
