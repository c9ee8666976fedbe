package fidelity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// check is a program that makes calls to a cluster and notes what came of them.
type check struct {
	name string
	run  func(p *probe)
}

// Cluster is an API server that checks run on, with controllers that collect garbage and empty namespaces. It has the
// namespaces of the system, and [Definitions].
type Cluster interface {
	// Connect returns a client with [Scheme] that knows the kinds that are served now.
	Connect() (client.WithWatch, error)
	// Eventually lets the controllers work until done, and reports whether it is.
	Eventually(ctx context.Context, done func() bool) bool
	// Patience is how long a change may take to reach a watch.
	Patience() time.Duration
}

// probe is what a check works with. Its client answers for the namespace of the check, which is empty at first.
type probe struct {
	client.WithWatch
	cluster   Cluster
	ctx       context.Context
	namespace string
	notes     []string
}

// timeout is that of one check. The controllers of a control plane take their time.
const timeout = 10 * time.Minute

// errSetUp ends a check.
type errSetUp struct{ err error }

// answer runs a check and returns what it noted. Namespaces have names of their own, which are masked.
func (c check) answer(ctx context.Context, newCluster func() (Cluster, error), namespace string) (answer string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p := &probe{ctx: ctx, namespace: namespace}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case errSetUp:
			p.note("not set up: %s", verdict(r.err))
		default:
			p.note("panic: %v", r)
		}
		line := strings.Join(strings.Fields(strings.Join(p.notes, "; ")), " ")
		answer = strings.NewReplacer(namespace, "NAMESPACE", kindOf(namespace), "KIND").Replace(line)
	}()
	cluster, err := newCluster()
	p.must(err)
	p.cluster = cluster
	p.reconnect()
	p.must(p.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	c.run(p)
	return ""
}

func (p *probe) reconnect() {
	c, err := p.cluster.Connect()
	p.must(err)
	p.WithWatch = c
}

// must ends the check if a step fails that is not what the check asks about.
func (p *probe) must(err error) {
	if err != nil {
		panic(errSetUp{err})
	}
}

func (p *probe) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// call notes what came of a call, and reports whether it succeeded.
func (p *probe) call(what string, err error) bool {
	p.note("%s: %s", what, verdict(err))
	return err == nil
}

// eventually notes whether something happens once the controllers have worked.
func (p *probe) eventually(what string, done func() bool) {
	p.note("%s: %t", what, p.cluster.Eventually(p.ctx, done))
}

// verdict is the reason of an error with the fields it names. What the client refuses by itself is a plain error.
func verdict(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return "ok"
	case meta.IsNoMatchError(err):
		return "NoMatch"
	case errors.As(err, &status):
		reason := string(status.Status().Reason)
		if reason == "" {
			reason = "code " + strconv.Itoa(int(status.Status().Code))
		}
		return strings.TrimSpace(reason + " " + causes(status.Status().Details))
	default:
		return "plain error"
	}
}

func causes(details *metav1.StatusDetails) string {
	if details == nil {
		return ""
	}
	fields := map[string]bool{}
	for _, cause := range details.Causes {
		// That some rules were not checked is a cause without a field.
		if cause.Field != "" && cause.Field != "<nil>" {
			fields[cause.Field] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(fields)), " ")
}

func (p *probe) create(obj client.Object, opts ...client.CreateOption) error {
	return p.Create(p.ctx, obj, opts...)
}

func (p *probe) update(obj client.Object, opts ...client.UpdateOption) error {
	return p.Update(p.ctx, obj, opts...)
}

func (p *probe) updateStatus(obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return p.Status().Update(p.ctx, obj, opts...)
}

func (p *probe) remove(obj client.Object, opts ...client.DeleteOption) error {
	return p.Delete(p.ctx, obj, opts...)
}

func (p *probe) patch(obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return p.Patch(p.ctx, obj, patch, opts...)
}

func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

func jsonPatch(patch string) client.Patch {
	return client.RawPatch(types.JSONPatchType, []byte(patch))
}

func strategic(patch string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(patch))
}

// given creates an object that the check needs.
func (p *probe) given(obj client.Object) {
	p.must(p.create(obj))
}

// read returns the object as it is now. It must exist.
func (p *probe) read(obj client.Object) client.Object {
	now := obj.DeepCopyObject().(client.Object)
	p.must(p.get(now))
	return now
}

// get reads into obj what is there now.
func (p *probe) get(obj client.Object) error {
	return p.Get(p.ctx, client.ObjectKeyFromObject(obj), obj)
}

// gone reports whether the object does not exist.
func (p *probe) gone(obj client.Object) bool {
	return apierrors.IsNotFound(p.get(obj.DeepCopyObject().(client.Object)))
}

// exists notes whether the object exists.
func (p *probe) exists(what string, obj client.Object) {
	p.note("%s: %t", what, p.get(obj.DeepCopyObject().(client.Object)) == nil)
}

// names lists the namespace of the check and returns the names in the order of the list, or the verdict.
func (p *probe) names(list client.ObjectList, opts ...client.ListOption) string {
	err := p.List(p.ctx, list, append(opts, client.InNamespace(p.namespace))...)
	if err != nil {
		return verdict(err)
	}
	names := []string{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	p.must(err)
	return fmt.Sprint(names)
}

// writes notes what came of a write, and whether the stored object got another resource version.
func (p *probe) writes(what string, obj client.Object, write func() error) {
	before := p.read(obj).GetResourceVersion()
	err := write()
	kept := "written"
	if p.read(obj).GetResourceVersion() == before {
		kept = "not written"
	}
	p.note("%s: %s, %s", what, verdict(err), kept)
}

// at returns the JSON of what is at a path of the object.
func at(obj any, path ...string) string {
	raw, err := json.Marshal(obj)
	if err != nil {
		return err.Error()
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err.Error()
	}
	for _, field := range path {
		fields, _ := value.(map[string]any)
		value = fields[field]
	}
	if value == nil {
		return "-"
	}
	raw, err = json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func kind(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
