package gotemplate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"

	"github.com/espalier-dev/espalier/generator"
	rtime "github.com/espalier-dev/espalier/time"
)

// Served says what an API server serves. It is shared, and must not be changed.
type Served struct {
	// Version is the version of the API server.
	Version *version.Info
	// Resources has all resources, subresources too. Groups, versions and resources are sorted. A version of a group
	// whose server does not answer has the resources that it had before, or none.
	Resources []*metav1.APIResourceList

	identity string
}

// Identity returns a hash of all fields, which is the same in each process.
func (s *Served) Identity() string { return s.identity }

const (
	// servedFor is how long an answer counts, servedForIfPartial that of an API server that could not ask all others.
	servedFor          = 10 * time.Minute
	servedForIfPartial = time.Minute
)

// served are the answers of the discovery clients that were used last.
var served = struct {
	sync.Mutex
	by map[discovery.DiscoveryInterface]*servedEntry
}{by: map[discovery.DiscoveryInterface]*servedEntry{}}

type servedEntry struct {
	// used is guarded by the lock of the map.
	used time.Time

	mu     sync.Mutex
	answer *Served
	until  time.Time
}

// Discover asks the API server that the component is deployed to what it serves, with the discovery client of the
// context, see [generator.DiscoveryFromContext]. It keeps the answer for 10 minutes for each client. If the server of a
// group does not answer, it is asked again after a minute.
func Discover(ctx context.Context) (*Served, error) {
	from, err := generator.DiscoveryFromContext(ctx)
	if err != nil {
		return nil, err
	}
	now := rtime.RetrieveNow(ctx)
	entry := entryOf(from, now)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if entry.answer != nil && now.Before(entry.until) {
		return entry.answer, nil
	}
	answer, partial, err := discover(ctx, discovery.ToDiscoveryInterfaceWithContext(from), entry.answer)
	if err != nil {
		return nil, err
	}
	entry.answer, entry.until = answer, now.Add(servedFor)
	if partial {
		entry.until = now.Add(servedForIfPartial)
	}
	return answer, nil
}

// entryOf returns the entry of a client, and drops those that were not used for too long.
func entryOf(from discovery.DiscoveryInterface, now time.Time) *servedEntry {
	if !reflect.ValueOf(from).Comparable() {
		return &servedEntry{}
	}
	served.Lock()
	defer served.Unlock()
	maps.DeleteFunc(served.by, func(_ discovery.DiscoveryInterface, e *servedEntry) bool {
		return now.Sub(e.used) > 2*servedFor
	})
	entry := served.by[from]
	if entry == nil {
		entry = &servedEntry{used: now}
		served.by[from] = entry
	}
	if now.After(entry.used) {
		entry.used = now
	}
	return entry
}

func discover(
	ctx context.Context, from discovery.DiscoveryInterfaceWithContext, before *Served,
) (_ *Served, partial bool, err error) {
	info, err := from.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("unable to read the version of the API server: %w", explain(err))
	}
	_, resources, err := from.ServerGroupsAndResourcesWithContext(ctx)
	var failed *discovery.ErrGroupDiscoveryFailed
	if partial = errors.As(err, &failed); err != nil && !partial {
		return nil, false, fmt.Errorf("unable to read what the API server serves: %w", explain(err))
	}
	if partial {
		// If the versions were missing, templates would leave out objects, which would then be deleted.
		resources = append(slices.Clone(resources), unanswered(failed.Groups, before)...)
	}
	answer := &Served{Version: info, Resources: sorted(resources)}
	h := sha256.New()
	if err := hashOf(h, answer.Version, answer.Resources); err != nil {
		return nil, false, fmt.Errorf("unable to read what the API server serves: %w", err)
	}
	answer.identity = hex.EncodeToString(h.Sum(nil))
	return answer, partial, nil
}

// explain says what may be missing. A discovery client drops what the API server says about that.
func explain(err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("forbidden: the user of the component may not do that, "+
			"or the permission to impersonate this user is missing: %w", err)
	}
	return err
}

// unanswered returns what versions of groups had before.
func unanswered(failed map[schema.GroupVersion]error, before *Served) []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for version := range failed {
		list := &metav1.APIResourceList{GroupVersion: version.String()}
		if before != nil {
			for _, known := range before.Resources {
				if known.GroupVersion == list.GroupVersion {
					list = known
				}
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// sorted returns a deep copy in which everything is sorted, and each version is there once.
func sorted(lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		if list == nil {
			continue
		}
		if known := byVersion[list.GroupVersion]; known != nil && len(known.APIResources) >= len(list.APIResources) {
			continue
		}
		list = list.DeepCopy()
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
		})
		byVersion[list.GroupVersion] = list
	}
	var all []*metav1.APIResourceList
	for _, name := range slices.Sorted(maps.Keys(byVersion)) {
		all = append(all, byVersion[name])
	}
	return all
}
