package storage_test

import (
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

const many = 10_000

// full returns a storage with many pods, and its options for b.
func full(b *testing.B) *fixture {
	b.Helper()
	f := newFixture(b, storage.Options{})
	for i := range many {
		f.create(b, fmt.Sprintf("pod-%05d", i), 0)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return f
}

func BenchmarkCreate(b *testing.B) {
	f := full(b)
	for i := 0; b.Loop(); i++ {
		f.create(b, strconv.Itoa(i), 0)
	}
}

func BenchmarkUpdate(b *testing.B) {
	f := full(b)
	for i := 0; b.Loop(); i++ {
		if err := increment(b.Context(), f, fmt.Sprintf("pod-%05d", i%many)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	f := full(b)
	for i := 0; b.Loop(); i++ {
		f.exists(b, fmt.Sprintf("pod-%05d", i%many))
	}
}

func BenchmarkList(b *testing.B) {
	everything := apistorage.Everything
	page := everything
	page.Limit = 500
	one := apistorage.SelectionPredicate{
		Label:    labels.Everything(),
		Field:    fields.OneTermEqualSelector("metadata.name", "pod-05000"),
		GetAttrs: apistorage.DefaultNamespaceScopedAttr,
	}
	for name, predicate := range map[string]apistorage.SelectionPredicate{"all": everything, "page": page, "one": one} {
		b.Run(name, func(b *testing.B) {
			f := full(b)
			for b.Loop() {
				opts := apistorage.ListOptions{Predicate: predicate, Recursive: true}
				if err := f.GetList(b.Context(), "/pods/", opts, &example.PodList{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkListOfThePast lists at a revision after which each pod was updated.
func BenchmarkListOfThePast(b *testing.B) {
	f := full(b)
	past := strconv.FormatInt(f.storage.Revision(), 10)
	for i := range many {
		if err := increment(b.Context(), f, fmt.Sprintf("pod-%05d", i)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := f.list(b.Context(), past); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatch measures one creation and its event at each of many watches.
func BenchmarkWatch(b *testing.B) {
	for _, watches := range []int{1, 10, 100} {
		for name, concerned := range map[string]bool{"concerned": true, "others": false} {
			b.Run(fmt.Sprintf("%d/%s", watches, name), func(b *testing.B) {
				f := newFixture(b, storage.Options{})
				var results []<-chan string
				for range watches {
					results = append(results, follow(b, f, concerned))
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f.create(b, strconv.Itoa(i), 0)
					for _, result := range results {
						if concerned {
							<-result
						}
					}
				}
			})
		}
	}
}

// follow reads a watch, either of all pods or of a namespace without any, and sends the name of each pod.
func follow(b *testing.B, f *fixture, concerned bool) <-chan string {
	key := "/pods/ns"
	if !concerned {
		key = "/pods/other"
	}
	opts := from("1")
	opts.Recursive = true
	w, err := f.Watch(b.Context(), key, opts)
	if err != nil {
		b.Fatal(err)
	}
	names := make(chan string, 1)
	go func() {
		for event := range w.ResultChan() {
			names <- event.Object.(*example.Pod).Name
		}
	}()
	return names
}
