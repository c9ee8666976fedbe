package fake_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-dev/espalier/testing/fake"
)

// TestTheBuilderHasAllMethods compares the builder with that of controller-runtime: code that uses the latter compiles.
func TestTheBuilderHasAllMethods(t *testing.T) {
	t.Parallel()
	theirs, ours := reflect.TypeFor[*ctrlfake.ClientBuilder](), reflect.TypeFor[*fake.ClientBuilder]()
	// signature is the type of a method without its receiver, with our builder in the place of theirs.
	signature := func(m reflect.Method) string {
		var words []string
		for i := 1; i < m.Type.NumIn(); i++ {
			words = append(words, m.Type.In(i).String())
		}
		for i := range m.Type.NumOut() {
			out := m.Type.Out(i)
			if out == theirs {
				out = ours
			}
			words = append(words, out.String())
		}
		return fmt.Sprint(strings.Join(words, ", "), " variadic: ", m.Type.IsVariadic())
	}
	for i := range theirs.NumMethod() {
		want := theirs.Method(i)
		got, ok := ours.MethodByName(want.Name)
		if !ok {
			t.Errorf("got no method %s, want %s", want.Name, signature(want))
			continue
		}
		if signature(got) != signature(want) {
			t.Errorf("%s: got %s, want %s", want.Name, signature(got), signature(want))
		}
	}
}

func TestGivenObjects(t *testing.T) {
	t.Parallel()
	owned := configMap("owned", "team")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner"}}
	builder := fake.NewClientBuilder().WithScheme(newScheme()).
		WithObjects(configMap("owner", "team"), owned, standIn{newWidget("stand-in")}).
		WithLists(&widgetList{Items: []widget{*newWidget("listed")}}).
		WithRuntimeObjects(newWidget("one"), &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("item", "team")}})
	first, second := builder.Build(), builder.Build()

	widgets := &widgetList{}
	must(t, first.List(t.Context(), widgets))
	var names []string
	for _, w := range widgets.Items {
		names = append(names, w.Name)
		if w.UID == "" || w.ResourceVersion == "" || w.Generation != 1 || w.CreationTimestamp.IsZero() {
			t.Errorf("%s: got the metadata %+v, want UID, version, generation and time", w.Name, w.ObjectMeta)
		}
	}
	if want := []string{"listed", "one", "stand-in"}; !slices.Equal(names, want) {
		t.Errorf("got the widgets %v, want %v", names, want)
	}
	maps := &corev1.ConfigMapList{}
	must(t, first.List(t.Context(), maps, client.InNamespace("team")))
	if len(maps.Items) != 3 {
		t.Fatalf("got %d ConfigMaps, want 3", len(maps.Items))
	}
	got := &corev1.ConfigMap{}
	must(t, first.Get(t.Context(), client.ObjectKeyFromObject(owned), got))
	owner := &corev1.ConfigMap{}
	must(t, first.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "owner"}, owner))
	if got.OwnerReferences[0].UID != owner.UID {
		t.Errorf("got the owner %q, want %q", got.OwnerReferences[0].UID, owner.UID)
	}
	if owned.OwnerReferences[0].UID != "" {
		t.Error("got a changed object that was given, want it as it was")
	}

	must(t, first.Delete(t.Context(), newWidget("one")))
	get(t, second, &widget{}, "one") // The two share nothing.
	get(t, fake.NewFakeClient(configMap("a", "default")), &corev1.ConfigMap{}, "a")
}

func TestNamespacesCanBeLeftOut(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().WithoutNamespaces().WithObjects(configMap("a", "team")).Build()
	namespaces := &corev1.NamespaceList{}
	must(t, c.List(t.Context(), namespaces))
	if len(namespaces.Items) != 1 || namespaces.Items[0].Name != "team" {
		t.Errorf("got %v, want the namespace of the object alone", namespaces.Items)
	}
	if err := c.Create(t.Context(), configMap("a", "default")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want the namespace default not to be found", err)
	}
}

// standIn stands for an object, as builders of objects do.
type standIn struct{ client.Object }

func (s standIn) DeepCopyObject() runtime.Object { return s.Object.DeepCopyObject() }

// TestCallsSayWhatCannotBeBuilt has each test fail by itself: a panic would end those of the others.
func TestCallsSayWhatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	deleted := newWidget("deleted")
	deleted.DeletionTimestamp = new(metav1.Now())
	size := func(obj client.Object) []string { return []string{fmt.Sprint(obj.(*widget).Spec.Size)} }
	for _, test := range []struct {
		what  string
		build func(b *fake.ClientBuilder) *fake.ClientBuilder
		want  string
	}{
		{"a tracker", func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjectTracker(nil) },
			"WithInterceptorFuncs"},
		{"converters", func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithTypeConverters() },
			"give the definition of the type"},
		{"an object without finalizers that is being deleted",
			func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(deleted) },
			`"default/deleted" is given with a deletion timestamp and no finalizer`},
		{"an object twice", func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithObjects(newWidget("a")).WithRuntimeObjects(newWidget("a"))
		}, "Widget default/a: it is already there"},
		{"nothing", func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects((*widget)(nil)) },
			"one of the given objects is nil"},
		{"what is no object", func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithRuntimeObjects(&metav1.Status{})
		}, "a given *v1.Status is no object"},
		{"an object of an unknown kind",
			func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(newGadget("a")) },
			`no matches for kind "Gadget"`},
		{"a status of an unknown type", func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithScheme(runtime.NewScheme()).WithStatusSubresource(newWidget(""))
		}, "WithStatusSubresource: no kind is registered for the type fake_test.widget"},
		{"an index of an unknown type", func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithScheme(runtime.NewScheme()).WithIndex(newWidget(""), "size", size)
		}, "WithIndex: no kind is registered for the type fake_test.widget"},
		{"an index twice", func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithIndex(newWidget(""), "size", size).WithIndex(newWidget(""), "size", size)
		}, "the field size of Widget is indexed already"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			answered := interceptor.Funcs{Get: func(
				context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
			) error {
				return nil
			}}
			b := fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(answered)
			c, one := test.build(b).Build(), configMap("a", "default")
			_, watchErr := c.Watch(t.Context(), &corev1.ConfigMapList{})
			for call, err := range map[string]error{
				"get":           c.Get(t.Context(), client.ObjectKeyFromObject(one), one),
				"list":          c.List(t.Context(), &corev1.ConfigMapList{}),
				"watch":         watchErr,
				"create":        c.Create(t.Context(), one),
				"update":        c.Update(t.Context(), one),
				"patch":         c.Patch(t.Context(), one, client.MergeFrom(one)),
				"apply":         c.Apply(t.Context(), applycorev1.ConfigMap("a", "default")),
				"delete":        c.Delete(t.Context(), one),
				"delete all":    c.DeleteAllOf(t.Context(), one),
				"get status":    c.SubResource("status").Get(t.Context(), one, one),
				"create status": c.Status().Create(t.Context(), one, one),
				"update status": c.Status().Update(t.Context(), one),
				"patch status":  c.Status().Patch(t.Context(), one, client.MergeFrom(one)),
				"apply status":  c.Status().Apply(t.Context(), applycorev1.ConfigMap("a", "default")),
			} {
				if got := fmt.Sprint(err); !strings.Contains(got, test.want) {
					t.Errorf("%s: got the error %q, want one with %q", call, got, test.want)
				}
			}
			if fake.CollectGarbage(c) {
				t.Error("got garbage of a client that has no objects")
			}
		})
	}
}

func TestIndexes(t *testing.T) {
	t.Parallel()
	large := newWidget("large")
	large.Spec.Size = 7
	size := func(obj client.Object) []string { return []string{fmt.Sprint(obj.(*widget).Spec.Size)} }
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(newWidget("small"), large).
		WithIndex(newWidget(""), "size", size).WithInterceptorFuncs(interceptor.Funcs{}).Build()
	must(t, fake.AddIndex(c, newWidget(""), "double", func(obj client.Object) []string {
		return []string{fmt.Sprint(2 * obj.(*widget).Spec.Size)}
	}))
	if err := fake.AddIndex(c, newWidget(""), "size", size); err == nil {
		t.Error("got an index twice, want an error")
	}
	for _, test := range []struct {
		fields client.MatchingFields
		want   []string
		err    string
	}{
		{fields: client.MatchingFields{"size": "7"}, want: []string{"large"}},
		{fields: client.MatchingFields{"double": "14", "size": "7"}, want: []string{"large"}},
		{fields: client.MatchingFields{"double": "14", "size": "0"}},
		{fields: client.MatchingFields{"metadata.name": "small"}, want: []string{"small"}},
		{fields: client.MatchingFields{"color": "red"}, err: "field label not supported: color"},
	} {
		list := &widgetList{}
		err := c.List(t.Context(), list, test.fields)
		if got := fmt.Sprint(err); err != nil && test.err == "" || !strings.Contains(got, test.err) {
			t.Errorf("%v: got the error %v, want %q", test.fields, err, test.err)
		}
		var got []string
		for _, w := range list.Items {
			got = append(got, w.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.fields, got, test.want)
		}
	}
}

func TestRESTMapper(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(widgetKind, meta.RESTScopeRoot)
	mapper.Add(gadgetKind, meta.RESTScopeNamespace)
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(mapper).Build()
	if c.RESTMapper() != meta.RESTMapper(mapper) {
		t.Errorf("got the mapper %T, want the one that was set", c.RESTMapper())
	}
	for kind, want := range map[schema.GroupVersionKind]bool{widgetKind: false, gadgetKind: true} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		got, err := c.IsObjectNamespaced(u)
		must(t, err)
		if got != want {
			t.Errorf("%s: got namespaced %v, want %v", kind.Kind, got, want)
		}
	}
	w := newWidget("a")
	must(t, c.Create(t.Context(), w))
	if w.Namespace != "" {
		t.Errorf("got the namespace %q of an object of a cluster-scoped kind, want none", w.Namespace)
	}
	must(t, c.Create(t.Context(), newGadget("a"))) // It has no Go type, and no definition.
	get(t, c, newGadget("a"), "a")

	known, err := fake.NewClientBuilder().WithObjects(gadgets()).WithScheme(newScheme()).Build().
		RESTMapper().RESTMapping(gadgetKind.GroupKind())
	must(t, err)
	if known.Resource != version.WithResource("gadgets") {
		t.Errorf("got the resource %v by default, want that of the definition", known.Resource)
	}
}

// TestDefinitionsServeTheirKinds gives definitions, which have no status, in each Go type, and creates one.
func TestDefinitionsServeTheirKinds(t *testing.T) {
	t.Parallel()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(gadgets())
	must(t, err)
	untyped := &unstructured.Unstructured{Object: content}
	untyped.SetAPIVersion("apiextensions.k8s.io/v1")
	untyped.SetKind("CustomResourceDefinition")
	created := fake.NewClientBuilder().WithScheme(newScheme()).Build()
	must(t, created.Create(t.Context(), gadgets()))
	for name, c := range map[string]client.Client{
		"typed":   fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(newGadget("given"), gadgets()).Build(),
		"untyped": fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(untyped).Build(),
		"created": created,
	} {
		gadget, known := newGadget("a"), len(c.Scheme().AllKnownTypes())
		gadget.Object["spec"] = map[string]any{"size": int64(0)}
		if err := c.Create(t.Context(), gadget); !apierrors.IsInvalid(err) {
			t.Errorf("%s: got the error %v for a size that the schema refuses, want Invalid", name, err)
		}
		gadget.Object["spec"] = map[string]any{"size": int64(1)}
		must(t, c.Create(t.Context(), gadget))
		if now := len(c.Scheme().AllKnownTypes()); now != known {
			t.Errorf("%s: the scheme of the test has %d types, want the %d that it had", name, now, known)
		}
	}
}

func TestManagedFields(t *testing.T) {
	t.Parallel()
	for want, builder := range map[int]*fake.ClientBuilder{
		0: fake.NewClientBuilder(),
		1: fake.NewClientBuilder().WithReturnManagedFields(),
	} {
		c := builder.Build()
		m := configMap("a", "default")
		m.Data = map[string]string{"k": "v"}
		must(t, c.Create(t.Context(), m, client.FieldOwner("me")))
		if got := len(m.ManagedFields); got != want {
			t.Errorf("got %d managers, want %d", got, want)
		}
	}
}

func TestInterceptors(t *testing.T) {
	t.Parallel()
	calls := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			calls++
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	must(t, c.Create(t.Context(), configMap("a", "default")))
	get(t, c, &corev1.ConfigMap{}, "a")
	if calls != 1 {
		t.Errorf("got %d intercepted calls, want 1", calls)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	c := fake.NewClientBuilder().WithGlobalResourceVersionCounter().WithScheme(newScheme()).Build()
	w, err := c.Watch(t.Context(), &widgetList{}, client.InNamespace("default"))
	must(t, err)
	defer w.Stop()
	obj := newWidget("a")
	must(t, c.Create(t.Context(), obj))
	obj.Status.Ready = true
	must(t, c.Status().Update(t.Context(), obj))
	must(t, c.Delete(t.Context(), obj))
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		if got := (<-w.ResultChan()).Type; got != want {
			t.Errorf("got the event %s, want %s", got, want)
		}
	}
}

func TestADroppedStatusIsRefused(t *testing.T) {
	t.Parallel()
	update := func(ctx context.Context, c client.Client, w *widget) error {
		w.Status.Ready = true
		return c.Update(ctx, w)
	}
	for _, test := range []struct {
		what string
		do   func(ctx context.Context, c client.Client, w *widget) error
		// refused says that the request is refused unless the client is built AsAPIServer.
		refused bool
	}{
		{"an update of the status", update, true},
		{"a patch of the status", func(ctx context.Context, c client.Client, w *widget) error {
			return c.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":true}}`)))
		}, true},
		{"an update of the status and of something else", func(ctx context.Context, c client.Client, w *widget) error {
			w.Spec.Size = 2
			return update(ctx, c, w)
		}, false},
		{"an update of nothing", func(ctx context.Context, c client.Client, w *widget) error {
			return c.Update(ctx, w)
		}, false},
		{"a patch of the status to what it is", func(ctx context.Context, c client.Client, w *widget) error {
			return c.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":false}}`)))
		}, false},
		{"an apply with a status", func(ctx context.Context, c client.Client, w *widget) error {
			w.TypeMeta, w.ManagedFields = metav1.TypeMeta{APIVersion: version.String(), Kind: widgetKind.Kind}, nil
			w.Status.Ready = true
			//lint:ignore SA1019 It is how objects without an apply configuration are applied.
			return c.Patch(ctx, w, client.Apply, client.FieldOwner("me"))
		}, false},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(newWidget("a"))
			c := builder.Build()
			err := test.do(t.Context(), c, get(t, c, &widget{}, "a"))
			switch {
			case !test.refused:
				must(t, err)
			case err == nil || !strings.Contains(err.Error(), "Widget default/a: ") ||
				!strings.Contains(err.Error(), "Status().Update") || !strings.Contains(err.Error(), "AsAPIServer()"):
				t.Errorf("got the error %v, want one that names the object and what to do", err)
			}
			c = builder.AsAPIServer().Build()
			must(t, test.do(t.Context(), c, get(t, c, &widget{}, "a")))
			if get(t, c, &widget{}, "a").Status.Ready {
				t.Error("got a written status, want none")
			}
		})
	}
}

func TestCollectGarbage(t *testing.T) {
	t.Parallel()
	owned := configMap("owned", "default")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: version.String(), Kind: "Widget", Name: "owner"}}
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(newWidget("owner"), owned).
		WithInterceptorFuncs(interceptor.Funcs{}).Build()
	if fake.CollectGarbage(c) {
		t.Error("got a change, want none")
	}
	must(t, c.Delete(t.Context(), newWidget("owner")))
	get(t, c, owned, "owned")
	if !fake.CollectGarbage(c) {
		t.Error("got no change, want one")
	}
	if err := c.Get(t.Context(), keyOf("owned"), owned); !apierrors.IsNotFound(err) {
		t.Errorf("got the error %v for a dependent of what is gone, want NotFound", err)
	}
}
