package inventory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/internal/component/inventory"
	"github.com/espalier-dev/espalier/internal/component/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// loud is a record that takes more room than others.
func loud(i int) apis.InventoryRecord {
	r := ready(i)
	r.Status, r.Message = apis.ObjectFailed, noise(i, 250)
	return r
}

// TestObjectsSurviveACrashAtEachWrite breaks a save off at each of its writes.
func TestObjectsSurviveACrashAtEachWrite(t *testing.T) {
	tests := map[string]struct{ before, after []apis.InventoryRecord }{
		"the first":                    {after: records(60, record)},
		"one that adds":                {before: records(30, record), after: records(90, record)},
		"one that adds buckets":        {before: records(1, record), after: records(60, loud)},
		"one that changes":             {before: records(60, record), after: records(60, ready)},
		"one that drops, adds, alters": {before: records(40, record), after: records(80, loud)[20:]},
		"one that drops all":           {before: records(60, record)},
	}
	t.Parallel()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, swallows := range []bool{false, true} {
				for k := 0; !crashAt(t, tc.before, tc.after, k, swallows); k++ {
					if k > 100 {
						t.Fatalf("the save has not ended after %d writes, want an end", k)
					}
				}
			}
		})
	}
}

// crashAt breaks a save off after k writes, and checks what is left. It reports whether the save was through before.
func crashAt(t *testing.T, before, after []apis.InventoryRecord, k int, swallows bool) (finished bool) {
	t.Helper()
	w := newWorld(t)
	first := open(t, optionsFor(w.link(t), ""))
	mustLoad(t, first)
	mustSave(t, first, before)

	l := w.link(t)
	l.breaksAfter, l.swallows = k, swallows
	store := open(t, optionsFor(l, ""))
	mustLoad(t, store)
	durable, err := store.Save(t.Context(), after)
	if finished = err == nil; finished != durable {
		t.Fatalf("after %d writes, durable is %v and the error %v, want durable only without an error", k, durable, err)
	}
	if err != nil && !errors.Is(err, errBroken) {
		t.Fatalf("after %d writes, the error is %v, want %v", k, err, errBroken)
	}

	store = open(t, optionsFor(w.link(t), ""))
	loaded := mustLoad(t, store)
	if diff := compare(loaded, byKey(before), after); diff != "" {
		t.Errorf("after %d writes, the last one lost: %v, the records differ from the wanted ones: %s", k, swallows,
			diff)
	}
	mustSave(t, store, loaded)
	if again := mustLoad(t, open(t, optionsFor(w.link(t), ""))); !inventory.Equal(again, loaded) {
		t.Errorf("after %d writes, and a save of what was loaded, the records differ from the wanted ones: %s", k,
			compare(again, byKey(loaded), loaded))
	}
	mustSave(t, store, after)
	if got := mustLoad(t, open(t, optionsFor(w.link(t), ""))); !inventory.Equal(got, after) {
		t.Errorf("after %d writes, and another save, the records differ from the wanted ones: %s", k,
			compare(got, byKey(after), after))
	}
	return finished
}

// compare says in what an inventory differs from all that a save of wanted over stored may leave when it is broken off: each
// record is as it was or as it was to be, and is missing only if it was before or was to go.
func compare(loaded []apis.InventoryRecord, stored map[plan.Key]apis.InventoryRecord, wanted ...[]apis.InventoryRecord) string {
	found := byKey(loaded)
	if len(found) != len(loaded) {
		return "a record is there twice"
	}
	may := map[plan.Key][]apis.InventoryRecord{}
	must := map[plan.Key]int{}
	for key, r := range stored {
		may[key] = append(may[key], r)
		must[key]++
	}
	for _, all := range wanted {
		for _, r := range all {
			may[plan.KeyOf(r)] = append(may[plan.KeyOf(r)], r)
			must[plan.KeyOf(r)]++
		}
	}
	for key, n := range must {
		if _, ok := found[key]; !ok && n == len(wanted)+1 {
			return key.String() + " is lost"
		}
	}
	for key, r := range found {
		if !slices.ContainsFunc(may[key], func(other apis.InventoryRecord) bool {
			return inventory.Equal([]apis.InventoryRecord{r}, []apis.InventoryRecord{other})
		}) {
			return fmt.Sprintf("%s is as it never was: %v", key, r)
		}
	}
	return ""
}

// TestObjectsAgreeWithAModel saves at random, breaks saves off at random, and loads anew. The model is what was durable last, and
// what was attempted since.
func TestObjectsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(20)
	if raceDetector {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			durable := map[plan.Key]apis.InventoryRecord{}
			l := w.link(t)
			store := open(t, optionsFor(l, ""))
			var view []apis.InventoryRecord
			known := false
			var attempts [][]apis.InventoryRecord
			for step := range 40 {
				if !known || random.IntN(5) == 0 {
					if random.IntN(2) == 0 {
						l = w.link(t)
						store = open(t, optionsFor(l, ""))
					}
					l.breaksAfter = -1
					view = mustLoad(t, store)
					if diff := compare(view, durable, attempts...); diff != "" {
						t.Fatalf("step %d: the records differ from the wanted ones: %s", step, diff)
					}
					durable, attempts, known = byKey(view), nil, true
				}
				if random.IntN(2) == 0 {
					l.requests()
					l.breaksAfter, l.swallows = random.IntN(6), random.IntN(2) == 0
				}
				next := mutate(random, view)
				_, err := store.Save(t.Context(), next)
				l.breaksAfter = -1
				if err != nil {
					if !errors.Is(err, errBroken) {
						t.Fatalf("step %d: the error is %v, want %v", step, err, errBroken)
					}
					attempts, known = append(attempts, next), false
					continue
				}
				durable, view = byKey(next), next
				if again := mustLoad(t, store); !inventory.Equal(again, next) {
					t.Fatalf("step %d: the records in memory differ from the wanted ones: %s", step,
						compare(again, byKey(next), next))
				}
			}
		})
	}
}

// mutate adds, drops, changes and shuffles records.
func mutate(random *rand.Rand, view []apis.InventoryRecord) []apis.InventoryRecord {
	var next []apis.InventoryRecord
	drop, alter := random.IntN(4), random.IntN(4)
	for _, r := range view {
		switch {
		case random.IntN(10) < drop:
			continue
		case random.IntN(10) < alter:
			r.Message = noise(random.IntN(1000), random.IntN(inventory.MaxMessage))
			r.Phase, r.Status = apis.PhaseUpdating, apis.ObjectFailed
		}
		next = append(next, r)
	}
	known := byKey(next)
	for range random.IntN(30) {
		r := record(random.IntN(150))
		if _, ok := known[plan.KeyOf(r)]; !ok {
			known[plan.KeyOf(r)] = r
			next = append(next, r)
		}
	}
	if random.IntN(3) == 0 {
		random.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
	}
	return next
}

// TestObjectsLoseNoKeyToARace has several stores write at the same time. Each adds records of its own to what it knows, and starts
// over when it is told to.
func TestObjectsLoseNoKeyToARace(t *testing.T) {
	w := newWorld(t)
	const writers, each = 3, 25
	conflicts := make([]int, writers)
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			store := open(t, optionsFor(w.link(t), ""))
			for n := range each {
				for {
					known, err := store.Load(t.Context())
					if err == nil {
						// A save that met a conflict may have stored some of it.
						if r := loud(writer*each + n); !has(known, r) {
							known = append(known, r)
						}
						_, err = store.Save(t.Context(), known)
					}
					if err == nil {
						break
					}
					if !apierrors.IsConflict(err) {
						t.Errorf("writer %d: the error is %v, want a conflict", writer, err)
						return
					}
					conflicts[writer]++
				}
			}
		})
	}
	group.Wait()
	got := mustLoad(t, open(t, optionsFor(w.link(t), "")))
	if !inventory.Equal(got, records(writers*each, loud)) {
		t.Errorf("there are %d records, want %d", len(got), writers*each)
	}
	t.Logf("conflicts: %v", conflicts)
}

func has(all []apis.InventoryRecord, r apis.InventoryRecord) bool {
	_, ok := byKey(all)[plan.KeyOf(r)]
	return ok
}
