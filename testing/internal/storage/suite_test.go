package storage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	apistorage "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// plain are the tests of k8s.io/apiserver/pkg/storage/testing, the suite that the storage in etcd passes, that need
// nothing but a storage.
var plain = map[string]func(context.Context, *testing.T, apistorage.Interface){
	"CreateWithKeyExist":                      storagetesting.RunTestCreateWithKeyExist,
	"Get":                                     storagetesting.RunTestGet,
	"UnconditionalDelete":                     storagetesting.RunTestUnconditionalDelete,
	"ConditionalDelete":                       storagetesting.RunTestConditionalDelete,
	"DeleteWithSuggestion":                    storagetesting.RunTestDeleteWithSuggestion,
	"DeleteWithSuggestionAndConflict":         storagetesting.RunTestDeleteWithSuggestionAndConflict,
	"DeleteWithConflict":                      storagetesting.RunTestDeleteWithConflict,
	"DeleteWithSuggestionOfDeletedObject":     storagetesting.RunTestDeleteWithSuggestionOfDeletedObject,
	"ValidateDeletionWithSuggestion":          storagetesting.RunTestValidateDeletionWithSuggestion,
	"ValidateDeletionWithOnlySuggestionValid": storagetesting.RunTestValidateDeletionWithOnlySuggestionValid,
	"PreconditionalDeleteWithSuggestion":      storagetesting.RunTestPreconditionalDeleteWithSuggestion,
	"PreconditionalDeleteWithOnlySuggestionPass": storagetesting.
		RunTestPreconditionalDeleteWithOnlySuggestionPass,
	"GetListRecursivePrefix":                storagetesting.RunTestGetListRecursivePrefix,
	"GuaranteedUpdateWithConflict":          storagetesting.RunTestGuaranteedUpdateWithConflict,
	"GuaranteedUpdateWithSuggestion":        storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict,
	"ListPaging":                            storagetesting.RunTestListPaging,
	"NamespaceScopedList":                   storagetesting.RunTestNamespaceScopedList,
	"KeySchema":                             storagetesting.RunTestKeySchema,
	"Watch":                                 storagetesting.RunTestWatch,
	"DeleteTriggerWatch":                    storagetesting.RunTestDeleteTriggerWatch,
	"WatchFromNonZero":                      storagetesting.RunTestWatchFromNonZero,
	"WatchContextCancel":                    storagetesting.RunTestWatchContextCancel,
	"WatchDeleteEventObjectHaveLatestRV":    storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV,
	"WatchInitializationSignal":             storagetesting.RunTestWatchInitializationSignal,
	"ClusterScopedWatch":                    storagetesting.RunTestClusterScopedWatch,
	"NamespaceScopedWatch":                  storagetesting.RunTestNamespaceScopedWatch,
	"SendInitialEventsBackwardCompatibilty": storagetesting.RunSendInitialEventsBackwardCompatibility,
	"WatchSemantics":                        storagetesting.RunWatchSemantics,
	"WatchSemanticInitialEventsExtended":    storagetesting.RunWatchSemanticInitialEventsExtended,
	"WatchListMatchSingle":                  storagetesting.RunWatchListMatchSingle,
}

// fitted are those that change the storage from outside.
var fitted = map[string]func(context.Context, *testing.T, *fixture){
	"Create": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreate(ctx, t, f, f.validate)
	},
	"List": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestList(ctx, t, f, f.compact, false, nil)
	},
	"ConsistentList": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConsistentList(ctx, t, f, f.increase, false, true, false)
	},
	"GetListNonRecursive": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, f.increase, f)
	},
	"ListContinuation": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuation(ctx, t, f, nil)
	},
	"ListPaginationRareObject": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, f, nil)
	},
	"ListContinuationWithFilter": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, f, nil)
	},
	"ListInconsistentContinuation": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, f, f.compact)
	},
	"ListResourceVersionMatch": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, f)
	},
	"GuaranteedUpdate": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, f, f.validate)
	},
	"GuaranteedUpdateChecksStoredData": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, f)
	},
	"TransformationFailure": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestTransformationFailure(ctx, t, f)
	},
	"GetListWithoutErrorAggregation": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, f, errors.New("bits flipped"))
	},
	"Stats": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, f, f.codec, f.values, false)
	},
	"StatsWithSizes": func(ctx context.Context, t *testing.T, f *fixture) {
		keys := func(context.Context) ([]string, error) { return nil, nil }
		if err := f.EnableResourceSizeEstimation(keys); err != nil {
			t.Fatal(err)
		}
		storagetesting.RunTestStats(ctx, t, f, f.codec, f.values, true)
	},
	"CompactRevision": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCompactRevision(ctx, t, f, f.increase, f.compact)
	},
	"WatchFromZero": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromZero(ctx, t, f, f.compact)
	},
	"WatchError": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchError(ctx, t, f)
	},
	"WatchErrorIsBlockingFurtherEvents": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, f)
	},
	"WatchDispatchBookmarkEvents": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f, true)
	},
}

// waiting are those that wait. They do so in virtual time, for they have no subtests, which a bubble cannot have.
var waiting = map[string]func(context.Context, *testing.T, *fixture){
	"CreateWithTTL": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreateWithTTL(ctx, t, f)
	},
	"GuaranteedUpdateWithTTL": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdateWithTTL(ctx, t, f)
	},
	"DelayedWatchDelivery": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, f)
	},
	"WatcherTimeout": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatcherTimeout(ctx, t, f)
	},
	"ProgressNotify": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, f, f.increase)
	},
	"WatchBookmarksWithCorrectRV": func(ctx context.Context, t *testing.T, f *fixture) {
		// A watch gets bookmarks for what does not concern it.
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, increasing{f, t})
	},
}

// corrupt are those of objects that cannot be decoded and are deleted all the same.
var corrupt = map[string]func(context.Context, *testing.T, *fixture){
	"WatchWithUnsafeDelete": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, f, errors.New("bits flipped"))
	},
	"DeleteExpectedTransformError": func(ctx context.Context, t *testing.T, f *fixture) {
		revert := func() {}
		fail := func(failing bool) {
			if revert(); failing {
				revert = f.UpdatePrefixTransformer(failingPrefix)
			}
		}
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, fail)
	},
	"DeleteExpectedDecodeError": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, f.codec.failing.Store)
	},
	"DeleteWithConflictAndMissingExpectedError": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(
			ctx, t, f, f.codec.failing.Store)
	},
	"DeleteWithSuggestionAndMissingExpectedError": func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, f)
	},
}

// All tests of the suite run but these:
//
//   - RunTestGetListWithErrorAggregation: lists do not collect the errors of corrupt objects. What collects them in
//     kube-apiserver, behind a feature gate that is off by default, knows them by a type that the package for etcd does
//     not export.
//   - The benchmarks, which take minutes; those of this package are smaller.
//
// RunTestList and the tests of continued lists can also count requests to etcd. There are none.
func TestUpstream(t *testing.T) {
	options := storage.Options{BookmarkInterval: 100 * time.Millisecond}
	for name, run := range plain {
		t.Run(name, func(t *testing.T) { run(t.Context(), t, newFixture(t, options)) })
		t.Run(name+"Untransformed", func(t *testing.T) {
			run(t.Context(), t, newFixture(t, options).untransformed(t))
		})
	}
	for name, run := range fitted {
		t.Run(name, func(t *testing.T) { run(t.Context(), t, newFixture(t, options)) })
	}
	for name, run := range waiting {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t.Context(), t, newFixture(t, options)) })
		})
	}
	for name, run := range corrupt {
		t.Run(name, func(t *testing.T) {
			gate := utilfeature.DefaultFeatureGate
			featuregatetesting.SetFeatureGateDuringTest(t, gate, features.AllowUnsafeMalformedObjectDeletion, true)
			run(t.Context(), t, newFixture(t, options))
		})
	}
}

func failingPrefix(*storagetesting.PrefixTransformer) value.Transformer {
	return storagetesting.NewPrefixTransformer([]byte("another"), false)
}

// increasing makes a write to another resource after each creation.
type increasing struct {
	*fixture
	t *testing.T
}

func (i increasing) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := i.fixture.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	i.increase(ctx, i.t)
	return nil
}
