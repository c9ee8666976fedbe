package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/testenv/resources"
	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// appliesWith makes a node that has an applying manager make actual agree with desired.
func appliesWith(actual, desired *corev1.ConfigMap, changes ...func(*configMapManager)) func(*trace) widgetNode {
	return func(calls *trace) widgetNode {
		manager := &configMapManager{FieldManager: "widgets"}
		for _, change := range changes {
			change(manager)
		}
		return managing{manager: manager, actual: actual, desired: desired, calls: calls}
	}
}

// showManagedFields has the client in memory keep and return managed fields.
func showManagedFields(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithReturnManagedFields() }

// appliedBlue is configMap as it is applied to givenConfigMap.
func appliedBlue() *corev1apply.ConfigMapApplyConfiguration {
	owner := controlledBy(widget.Object())
	return corev1apply.ConfigMap("gadget", "default").WithUID("child-uid").
		WithOwnerReferences(metav1apply.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).
			WithUID(owner.UID).WithController(true).WithBlockOwnerDeletion(true)).
		WithData(map[string]string{"color": "blue"})
}

func applyOf(config *corev1apply.ConfigMapApplyConfiguration, force bool) rtesting.ApplyRef {
	return rtesting.ApplyRef{
		Kind: "ConfigMap", Namespace: "default", Name: "gadget", ApplyConfiguration: config, FieldOwner: "widgets", Force: &force,
	}
}

func TestApplyingObjectManager(t *testing.T) {
	guard := func(m *configMapManager) { m.Finalizer = ours }
	track := func(m *configMapManager) { m.TrackDesired = true }
	failing := func(m *configMapManager) { m.Conflicts = reconcilers.FailOnConflicts }
	leaving := func(m *configMapManager) { m.Conflicts = reconcilers.LeaveConflicts }
	saying := func(config runtime.ApplyConfiguration, err error) func(*configMapManager) {
		return func(m *configMapManager) {
			m.ApplyConfiguration = func(context.Context, client.Object, *corev1.ConfigMap) (runtime.ApplyConfiguration, error) {
				return config, err
			}
		}
	}
	guarded := widget.With(func(w *resources.Widget) { w.Finalizers = []string{ours} })
	add := finalizersPatch(`{"metadata":{"finalizers":["` + ours + `"],"resourceVersion":"999"}}`)
	patched := normal("FinalizerPatched", `Patched finalizer "`+ours+`"`)
	updated := normal("Updated", `Updated ConfigMap "gadget"`)

	desired := configMap.Object()
	given := givenConfigMap.With(func(c *corev1.ConfigMap) { c.ResourceVersion = "999" })
	red := given.With(func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red", "size": "1"} })
	agreeing := given.With(func(c *corev1.ConfigMap) {
		c.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "widgets", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"gadget-uid\"}":{}}},"f:data":{"f:color":{}}}`),
		}}
	})
	terminating := red.With(func(c *corev1.ConfigMap) {
		c.DeletionTimestamp = new(metav1.NewTime(time.UnixMilli(2000)))
		c.Finalizers = []string{theirs}
	})
	tracks := []rtesting.TrackRequest{rtesting.NewTrackRequest(given, widget, widgetScheme)}
	orphaning := deleteOf(given)
	orphaning.PropagationPolicy = new(metav1.DeletePropagationOrphan)
	fails := func(verb, kind string, err error) []rtesting.ReactionFunc {
		return []rtesting.ReactionFunc{rtesting.InduceFailure(verb, kind, rtesting.InduceFailureOpts{Error: err})}
	}
	hush := fmt.Errorf("%w: %w", errBoom, reconcilers.ErrQuiet)
	const me = `ApplyingObjectManager "ConfigMapApplyingObjectManager"`
	conflict := `fields of ConfigMap default/gadget are managed by others: .data.color by "before-first-apply"`

	nodeTests{
		"absent, not desired": {
			node:  appliesWith(nil, nil, guard),
			calls: []string{"patch Widget", "nothing"},
			widgetCase: widgetCase{
				Resource:       guarded.Object(),
				ExpectResource: widget.With(patchedBy()).Object(),
				ExpectPatches:  finalizersPatches(),
				ExpectEvents:   []rtesting.Event{patched},
			},
		},
		"present, not desired": {
			node:  appliesWith(given.Object(), nil, guard, func(m *configMapManager) { m.DeletionPropagation = metav1.DeletePropagationOrphan }),
			calls: []string{"delete ConfigMap", "nothing"},
			widgetCase: widgetCase{
				Resource:      guarded.Object(),
				GivenObjects:  []client.Object{given},
				ExpectDeletes: []rtesting.DeleteRef{orphaning},
				ExpectEvents:  []rtesting.Event{normal("Deleted", `Deleted ConfigMap "gadget"`)},
			},
		},
		"terminating, not desired": {
			node:       appliesWith(terminating.Object(), nil, guard, track),
			calls:      []string{"gadget red"},
			widgetCase: widgetCase{Resource: guarded.Object(), GivenObjects: []client.Object{terminating}, ExpectTracks: tracks},
		},
		"terminating, desired": {
			node:  appliesWith(terminating.Object(), desired, guard, track),
			calls: []string{"patch Widget", "gadget red"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{terminating},
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectTracks:   tracks,
			},
		},
		"desired, absent, guarded and tracked": {
			node:  appliesWith(nil, desired, guard, track),
			calls: []string{"patch Widget", "create ConfigMap", "gadget blue"},
			widgetCase: widgetCase{
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectCreates:  []client.Object{configMap},
				ExpectEvents:   []rtesting.Event{patched, normal("Created", `Created ConfigMap "gadget"`)},
				ExpectTracks:   tracks,
			},
		},
		"desired, absent, with a generated name": {
			node: appliesWith(nil, configMap.With(func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "gadget-" }).Object(),
				saying(corev1apply.ConfigMap("", "").WithData(map[string]string{"color": "green"}), nil)),
			calls: []string{"create ConfigMap", "gadget-001 green"},
			widgetCase: widgetCase{
				ExpectCreates: []client.Object{configMap.With(func(c *corev1.ConfigMap) {
					c.Name, c.GenerateName, c.Data = "", "gadget-", map[string]string{"color": "green"}
				})},
				ExpectEvents: []rtesting.Event{normal("Created", `Created ConfigMap "gadget-001"`)},
				// A node that lists its children remembers what it has created. This one does not.
				Replays: rtesting.Replays{Skip: []rtesting.Fault{rtesting.Stale("list ConfigMap *")}},
			},
		},
		"desired, absent, of another owner": {
			node:  appliesWith(nil, desired),
			calls: []string{"create ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				ExpectCreates: []client.Object{configMap},
				ExpectEvents:  []rtesting.Event{warning("CreationFailed", `Failed to create ConfigMap "gadget": configmaps "gadget" already exists`)},
				ShouldErr:     true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !apierrs.IsAlreadyExists(err) {
						t.Errorf("returned %v, expected that it exists", err)
					}
				},
			},
		},
		"desired, absent, cannot be created, quietly": {
			node: appliesWith(nil, desired),
			widgetCase: widgetCase{
				WithReactors:  fails("create", "ConfigMap", hush),
				ExpectCreates: []client.Object{configMap},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"in sync, guarded and tracked": {
			node:  appliesWith(agreeing.Object(), desired, guard, track),
			calls: []string{"patch Widget", "gadget blue"},
			widgetCase: widgetCase{
				GivenObjects:   []client.Object{given},
				ExpectResource: widget.With(patchedBy(ours)).Object(),
				ExpectPatches:  []rtesting.PatchRef{add},
				ExpectEvents:   []rtesting.Event{patched},
				ExpectTracks:   tracks,
			},
		},
		"outdated": {
			node:  appliesWith(red.Object(), desired, track),
			calls: []string{"apply ConfigMap", "gadget blue"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				ExpectApplies: []rtesting.ApplyRef{applyOf(appliedBlue(), true)},
				ExpectEvents:  []rtesting.Event{updated},
				ExpectTracks:  tracks,
			},
		},
		"outdated, as the author says": {
			node:  appliesWith(red.Object(), desired, saying(corev1apply.ConfigMap("gadget", "default").WithImmutable(false), nil)),
			calls: []string{"apply ConfigMap", "gadget red"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red},
				ExpectApplies: []rtesting.ApplyRef{applyOf(func() *corev1apply.ConfigMapApplyConfiguration {
					config := appliedBlue().WithImmutable(false)
					config.Data = nil
					return config
				}(), true)},
				ExpectEvents: []rtesting.Event{updated},
			},
		},
		"outdated, others may keep what is theirs, and it is": {
			node:  appliesWith(red.Object(), desired, failing),
			calls: []string{"apply ConfigMap", "nothing"},
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				ExpectApplies: []rtesting.ApplyRef{applyOf(appliedBlue(), false)},
				ExpectEvents:  []rtesting.Event{warning("UpdateFailed", `Failed to update ConfigMap "gadget": `+conflict)},
				ShouldErr:     true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if err == nil || err.Error() != conflict {
						t.Errorf("returned %v, expected %s", err, conflict)
					}
				},
			},
		},
		"outdated, what is theirs is left": {
			node:  appliesWith(red.Object(), configMap.With(func(c *corev1.ConfigMap) { c.Data["shape"] = "round" }).Object(), leaving),
			calls: []string{"apply ConfigMap", "apply ConfigMap", "gadget red"},
			widgetCase: widgetCase{
				GivenObjects: []client.Object{red},
				ExpectApplies: []rtesting.ApplyRef{
					applyOf(appliedBlue().WithData(map[string]string{"shape": "round"}), false),
					applyOf(func() *corev1apply.ConfigMapApplyConfiguration {
						config := appliedBlue()
						config.Data = map[string]string{"shape": "round"}
						return config
					}(), false),
				},
				ExpectEvents: []rtesting.Event{updated},
			},
		},
		"outdated, replaced since": {
			node: appliesWith(red.With(func(c *corev1.ConfigMap) { c.UID = "earlier" }).Object(), desired),
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				ExpectApplies: []rtesting.ApplyRef{applyOf(appliedBlue().WithUID("earlier"), true)},
				UseFake:       true, // The client of controller-runtime applies to an object of another UID.
				ExpectEvents: []rtesting.Event{warning("UpdateFailed", `Failed to update ConfigMap "gadget": Operation cannot be fulfilled on `+
					`ConfigMap "gadget": another object has taken its name: ConfigMap "gadget" is invalid: `+
					`metadata.uid: Invalid value: "earlier": field is immutable`)},
				ShouldErr: true,
				Verify: func(t *testing.T, _ reconcilers.Result, err error) {
					if !apierrs.IsConflict(err) || apierrs.IsInvalid(err) {
						t.Errorf("returned %v, expected a conflict", err)
					}
				},
			},
		},
		"outdated, cannot be applied, quietly": {
			node: appliesWith(red.Object(), desired),
			widgetCase: widgetCase{
				GivenObjects:  []client.Object{red},
				WithReactors:  fails("apply", "ConfigMap", hush),
				ExpectApplies: []rtesting.ApplyRef{applyOf(appliedBlue(), true)},
				ShouldErr:     true,
				Verify:        returns(errBoom),
			},
		},
		"the author fails": {
			node:       appliesWith(nil, desired, guard, saying(nil, errBoom)),
			calls:      []string{"nothing"},
			widgetCase: widgetCase{ShouldErr: true, Verify: returns(errBoom)},
		},
		"the author says nothing": {
			node:  appliesWith(nil, desired, guard, saying((*corev1apply.ConfigMapApplyConfiguration)(nil), nil)),
			calls: []string{"nothing"},
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    says(me + `: ApplyConfiguration returned nothing to apply`),
			},
		},
		"the author speaks of another object": {
			node: appliesWith(red.Object(), desired, saying(corev1apply.ConfigMap("other", "default"), nil)),
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    says(me + `: the apply configuration for ConfigMap default/gadget has another name: other`),
			},
		},
		"the author speaks of another namespace": {
			node: appliesWith(red.Object(), desired, saying(corev1apply.ConfigMap("gadget", "other"), nil)),
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    says(me + `: the apply configuration for ConfigMap default/gadget has another namespace: other`),
			},
		},
		"the author speaks of another kind": {
			node: appliesWith(red.Object(), desired, saying(corev1apply.Secret("gadget", "default"), nil)),
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    says(me + `: the apply configuration for ConfigMap default/gadget is for a /v1, Kind=Secret`),
			},
		},
		"not configured": {
			node: appliesWith(nil, desired, func(m *configMapManager) { m.FieldManager = "" }),
			widgetCase: widgetCase{
				ShouldErr: true,
				Verify:    says(me + ` must define FieldManager`),
			},
		},
	}.run(t)
}

// says checks the text of the error that a node returned.
func says(text string) rtesting.VerifyFunc {
	return func(t *testing.T, _ reconcilers.Result, err error) {
		t.Helper()
		checkError(t, "reconciling", err, text)
	}
}

func TestApplyingObjectManagerValidate(t *testing.T) {
	type unstructureds = reconcilers.ApplyingObjectManager[*unstructured.Unstructured]
	type thing interface{ client.Object }
	type anything = reconcilers.ApplyingObjectManager[thing]
	validationTests{
		"valid":   {node: &configMapManager{FieldManager: "widgets", Conflicts: reconcilers.LeaveConflicts, DeletionPropagation: "Foreground"}},
		"unnamed": {node: &configMapManager{}, shallow: `ApplyingObjectManager "ConfigMapApplyingObjectManager" must define FieldManager`},
		"named":   {node: &configMapManager{Name: "mine"}, shallow: `ApplyingObjectManager "mine" must define FieldManager`},
		"too long": {
			node:    &configMapManager{Name: "mine", FieldManager: strings.Repeat("x", 129)},
			shallow: `ApplyingObjectManager "mine" must have a FieldManager of at most 128 characters`,
		},
		"unknown policy": {
			node:    &configMapManager{Name: "mine", FieldManager: "widgets", Conflicts: "Win"},
			shallow: `ApplyingObjectManager "mine" must have a known ConflictPolicy, not "Win"`,
		},
		"unknown propagation": {
			node:    &configMapManager{Name: "mine", FieldManager: "widgets", DeletionPropagation: "Sometimes"},
			shallow: `ApplyingObjectManager "mine" must have a known DeletionPropagation, not "Sometimes"`,
		},
		"no type": {
			node:    &anything{Name: "mine", FieldManager: "widgets"},
			shallow: `ApplyingObjectManager "mine" must define Type since none can be made of reconcilers_test.thing`,
		},
		"no kind": {
			node:    &unstructureds{Name: "mine", FieldManager: "widgets"},
			shallow: `ApplyingObjectManager "mine" must define Type with apiVersion and kind since it is unstructured`,
		},
		"duck": {node: &reconcilers.ApplyingObjectManager[*duckWidget]{
			Type: &duckWidget{TypeMeta: metav1.TypeMeta{APIVersion: "test.espalier.dev/v1", Kind: "Widget"}}, FieldManager: "widgets",
		}},
	}.run(t)
	ctx := testContext(t, expectWidget().Config())
	checkError(t, "SetupWithManager", (&configMapManager{}).SetupWithManager(ctx, nil, nil),
		`ApplyingObjectManager "ConfigMapApplyingObjectManager" must define FieldManager`)
	checkError(t, "valid", (&configMapManager{FieldManager: "widgets"}).SetupWithManager(ctx, nil, nil), "")
}

// Invariant L9: neither what is desired nor what is there of a Secret is logged, recorded or in an error.
func TestL9ApplyingObjectManagerKeepsSecrets(t *testing.T) {
	var log strings.Builder
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gadget"},
			Data:       map[string][]byte{"password": []byte(value)},
			StringData: map[string]string{"token": value},
		}
	}
	expect := expectWidget()
	expect.WithClientBuilder = showManagedFields
	expect.WithReactors = []rtesting.ReactionFunc{assignUID}
	config := expect.Config()
	events := record.NewFakeRecorder(100)
	config.Recorder = events
	logger := funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{Verbosity: 9})
	ctx := logr.NewContext(testContext(t, config), logger)
	for _, policy := range []reconcilers.ConflictPolicy{reconcilers.ForceConflicts, reconcilers.LeaveConflicts, reconcilers.FailOnConflicts} {
		m := &reconcilers.ApplyingObjectManager[*corev1.Secret]{FieldManager: "widgets-" + string(policy), Conflicts: policy}
		actual := &corev1.Secret{}
		if err := config.Get(ctx, widgetKey, actual); err != nil {
			actual = nil
		}
		for _, value := range []string{"hush-one", "hush-two"} {
			written, err := m.Manage(ctx, widget.Object(), actual, secret(value))
			if err != nil {
				log.WriteString(err.Error())
				continue
			}
			actual = written
		}
	}
	close(events.Events)
	for event := range events.Events {
		log.WriteString(event + "\n")
	}
	for _, leaked := range []string{"hush", "aHVzaC"} {
		if strings.Contains(log.String(), leaked) {
			t.Errorf("%s is in the log, want it withheld:\n%s", leaked, log.String())
		}
	}
	if !strings.Contains(log.String(), "withheld") || !strings.Contains(log.String(), "UpdateFailed") || !strings.Contains(log.String(), "managed by others") {
		t.Errorf("the log has nothing to hide, want the failed update and withheld values:\n%s", log.String())
	}
}
