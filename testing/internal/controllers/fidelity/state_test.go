package fidelity_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorded are the kinds that are recorded, with the fields of them that controllers decide about beside the metadata
// and the status.
var recorded = []struct {
	apiVersion, kind string
	fields           []string
}{
	{"v1", "Namespace", []string{"spec"}},
	{"v1", "ConfigMap", nil},
	{"v1", "PersistentVolumeClaim", []string{"spec.resources", "spec.accessModes"}},
	{"apps/v1", "Deployment", []string{"spec.replicas"}},
	{"apps/v1", "ReplicaSet", []string{
		"spec.replicas", "spec.minReadySeconds", "spec.selector", "spec.template.metadata",
	}},
	{"apps/v1", "StatefulSet", []string{"spec.replicas"}},
	{"apps/v1", "DaemonSet", nil},
	{"apps/v1", "ControllerRevision", []string{"revision"}},
	{"batch/v1", "CronJob", nil},
	{"batch/v1", "Job", []string{"spec.suspend", "spec.selector", "spec.template.metadata"}},
	{"v1", "Pod", []string{"spec.hostname", "spec.subdomain", "spec.volumes", "status.phase"}},
}

// ignored are fields that only the server sets, and such as differ from run to run.
var ignored = []string{
	"metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.managedFields",
	"metadata.namespace", "metadata.name", "apiVersion", "kind",
}

// lists returns all objects of the play.
func (p *play) lists() []*unstructured.UnstructuredList {
	p.Helper()
	var all []*unstructured.UnstructuredList
	for _, of := range recorded {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(of.apiVersion)
		list.SetKind(of.kind + "List")
		if of.kind == "Namespace" {
			own := unstructured.Unstructured{}
			own.SetAPIVersion(of.apiVersion)
			own.SetKind(of.kind)
			err := p.Get(p.Context(), client.ObjectKey{Name: p.namespace}, &own)
			if !apierrors.IsNotFound(err) {
				p.must(err)
				list.Items = append(list.Items, own)
			}
		} else {
			p.must(p.List(p.Context(), list, client.InNamespace(p.namespace)))
		}
		all = append(all, list)
	}
	return all
}

// state returns lines of all objects of the play: each a field with its value.
func (p *play) state() []string {
	p.Helper()
	lists := p.lists()
	p.mask.learn(lists)
	var lines []string
	for i, of := range recorded {
		texts := map[string][][]string{}
		for _, obj := range lists[i].Items {
			if of.kind == "Namespace" && obj.GetDeletionTimestamp() == nil {
				continue
			}
			name := p.mask.name(obj)
			texts[name] = append(texts[name], p.mask.fields(obj, of.fields))
		}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			// Objects of the same prefix have no order but that of their fields.
			slices.SortFunc(texts[name], slices.Compare)
			for n, text := range texts[name] {
				prefix := of.kind + " " + name
				if len(texts[name]) > 1 {
					prefix += fmt.Sprintf(" #%d", n+1)
				}
				lines = append(lines, prefix)
				for _, line := range text {
					lines = append(lines, prefix+" "+line)
				}
			}
		}
	}
	return lines
}

// mask replaces what differs from run to run.
type mask struct {
	namespace string
	// uids are the objects with a UID, hashes the ends of names that are derived from templates.
	uids, hashes map[string]string
}

func newMask(namespace string) *mask {
	return &mask{namespace: namespace, uids: map[string]string{}, hashes: map[string]string{}}
}

var (
	uid       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timestamp = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z`)
	minute    = regexp.MustCompile(`-[0-9]{8}\b`)
)

// hashLabels are the labels with hashes of templates.
var hashLabels = []string{"pod-template-hash", "controller.kubernetes.io/hash", "controller-revision-hash"}

// learn gives numbers to the hashes that are new, in the order of the objects that have them.
func (m *mask) learn(lists []*unstructured.UnstructuredList) {
	for _, list := range lists {
		slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
			first, second := a.GetCreationTimestamp(), b.GetCreationTimestamp()
			return cmp.Or(first.Compare(second.Time), strings.Compare(a.GetName(), b.GetName()))
		})
		for _, obj := range list.Items {
			for _, label := range hashLabels {
				hash := obj.GetLabels()[label]
				if i := strings.LastIndex(hash, "-"); i >= 0 {
					hash = hash[i+1:]
				}
				if hash != "" && m.hashes[hash] == "" {
					m.hashes[hash] = fmt.Sprintf("HASH%d", len(m.hashes)+1)
				}
			}
		}
		for _, obj := range list.Items {
			m.uids[string(obj.GetUID())] = "the UID of " + obj.GetKind() + " " + m.name(obj)
		}
	}
}

// name returns the name of an object without what is random.
func (m *mask) name(obj unstructured.Unstructured) string {
	if prefix := obj.GetGenerateName(); prefix != "" && obj.GetLabels()["statefulset.kubernetes.io/pod-name"] == "" {
		return m.text(prefix) + "?"
	}
	return m.text(obj.GetName())
}

func (m *mask) text(s string) string {
	s = uid.ReplaceAllStringFunc(s, func(uid string) string { return cmp.Or(m.uids[uid], "a UID") })
	s = timestamp.ReplaceAllString(s, "a time")
	s = strings.ReplaceAll(s, m.namespace, "NAMESPACE")
	for hash, name := range m.hashes {
		s = strings.ReplaceAll(s, hash, name)
	}
	return minute.ReplaceAllString(s, "-MINUTE")
}

// fields returns the metadata, the status and some fields of an object, in their order.
func (m *mask) fields(obj unstructured.Unstructured, kept []string) []string {
	kept = append([]string{"metadata"}, kept...)
	if obj.GetKind() != "Pod" && obj.GetKind() != "PersistentVolumeClaim" {
		kept = append(kept, "status")
	}
	var lines []string
	flatten("", obj.Object, func(path string, value any) {
		under := func(parent string) bool { return path == parent || strings.HasPrefix(path, parent+".") }
		if !slices.ContainsFunc(kept, under) || slices.ContainsFunc(ignored, under) ||
			strings.HasSuffix(path, ".resourceVersion") {
			return
		}
		text, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		lines = append(lines, m.text(path+" = "+string(text)))
	})
	slices.Sort(lines)
	return lines
}

// flatten calls a function for all fields. Items of a list are named by their type, name or UID, or by their place.
func flatten(path string, value any, each func(path string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			flatten(strings.TrimPrefix(path+"."+name, "."), child, each)
		}
	case []any:
		for i, child := range value {
			name := fmt.Sprint(i)
			if item, ok := child.(map[string]any); ok {
				for _, field := range []string{"type", "name"} {
					if text, ok := item[field].(string); ok {
						name = text
						break
					}
				}
			}
			flatten(path+"."+name, child, each)
		}
	default:
		each(path, value)
	}
}
