//lint:file-ignore SA1019 what is deprecated is part of the promise too

package surface_test

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/duck"
	"github.com/espalier-dev/espalier/stash"
	rtime "github.com/espalier-dev/espalier/time"
	"github.com/espalier-dev/espalier/tracker"
	"github.com/espalier-dev/espalier/validation"
)

// Package stash.
var (
	_ func(context.Context, stash.Key) interface{}  = stash.ClearValue
	_ func(context.Context, stash.Key) bool         = stash.HasValue
	_ func(stash.Key) stash.Stasher[string]         = stash.New[string]
	_ func(context.Context, stash.Key) interface{}  = stash.RetrieveValue
	_ func(context.Context, stash.Key, interface{}) = stash.StoreValue
	_ func(context.Context) context.Context         = stash.WithContext
	_ string                                        = string(stash.Key(""))
	_ error                                         = stash.ErrValueNotAssignable
	_ error                                         = stash.ErrValueNotFound

	_ interface {
		Key() stash.Key
		Store(ctx context.Context, value string)
		Clear(ctx context.Context) string
		Has(ctx context.Context) bool
		RetrieveOrDie(ctx context.Context) string
		RetrieveOrError(ctx context.Context) (string, error)
		RetrieveOrEmpty(ctx context.Context) string
	} = stash.Stasher[string](nil)
)

// Package tracker.
var (
	_ func(*runtime.Scheme, time.Duration) tracker.Tracker            = tracker.New
	_ func(schema.GroupVersionKind, types.NamespacedName) tracker.Key = tracker.NewKey
	_                                                                 = tracker.Key{GroupKind: schema.GroupKind{}, NamespacedName: types.NamespacedName{}}
	_                                                                 = tracker.Reference{APIGroup: "", Kind: "", Namespace: "", Name: "", Selector: labels.Selector(nil)}
	_ interface {
		TrackReference(ref tracker.Reference, obj client.Object) error
		TrackObject(ref client.Object, obj client.Object) error
		GetObservers(obj client.Object) ([]types.NamespacedName, error)
	} = tracker.Tracker(nil)
	// Somebody else's tracker is one too.
	_ tracker.Tracker = interface {
		TrackReference(ref tracker.Reference, obj client.Object) error
		TrackObject(ref client.Object, obj client.Object) error
		GetObservers(obj client.Object) ([]types.NamespacedName, error)
	}(nil)
)

// Package apis.
var (
	_ func(*metav1.Condition) bool                 = apis.ConditionIsFalse
	_ func(*metav1.Condition) bool                 = apis.ConditionIsTrue
	_ func(*metav1.Condition) bool                 = apis.ConditionIsUnknown
	_ func(...string) apis.ConditionSet            = apis.NewBatchConditionSet
	_ func(string, ...string) apis.ConditionSet    = apis.NewBatchConditionSetWithHappyReason
	_ func(...string) apis.ConditionSet            = apis.NewLivingConditionSet
	_ func(string, ...string) apis.ConditionSet    = apis.NewLivingConditionSetWithHappyReason
	_ apis.ConditionsAccessor                      = &apis.Status{ObservedGeneration: int64(0), Conditions: []metav1.Condition(nil)}
	_ func(*apis.Status, string) *metav1.Condition = (*apis.Status).GetCondition
	_ string                                       = apis.ConditionReady
	_ string                                       = apis.ConditionSucceeded

	_ func(apis.ConditionSet, apis.ConditionsAccessor) apis.ConditionManager                  = apis.ConditionSet.Manage
	_ func(apis.ConditionSet, context.Context, apis.ConditionsAccessor) apis.ConditionManager = apis.ConditionSet.ManageWithContext

	_ interface {
		IsHappy() bool
		GetCondition(t string) *metav1.Condition
		SetCondition(new metav1.Condition)
		ClearCondition(t string) error
		MarkTrue(t string, reason, messageFormat string, messageA ...interface{})
		MarkUnknown(t string, reason, messageFormat string, messageA ...interface{})
		MarkFalse(t string, reason, messageFormat string, messageA ...interface{})
		InitializeConditions()
	} = apis.ConditionManager(nil)
)

// Package duck.
var (
	_ func(runtime.Object, runtime.Object) error             = duck.Convert
	_ func(runtime.Object, *runtime.Scheme) bool             = duck.IsDuck
	_ func(client.Client) client.Client                      = duck.NewDangerousDuckAwareClientWrapper
	_ func(client.Reader, duck.SchemeAccessor) client.Reader = duck.NewDuckAwareAPIReaderWrapper
	_ func(client.Client) client.Client                      = duck.NewDuckAwareClientWrapper
	_ interface{ Scheme() *runtime.Scheme }                  = duck.SchemeAccessor(nil)
)

// Packages time and validation.
var (
	_ func(context.Context) time.Time                  = rtime.RetrieveNow
	_ func(context.Context, time.Time) context.Context = rtime.StashNow
	_ func(context.Context) bool                       = validation.IsRecursive
	_ func(context.Context) context.Context            = validation.WithRecursive
	_ interface{ Default(context.Context) error }      = validation.Defaulter(nil)
	_ interface {
		Validate(ctx context.Context) error
	} = validation.Validator(nil)
)
