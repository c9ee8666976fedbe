package page_test

import (
	"fmt"
	gosync "sync"
	"testing"

	"github.com/espalier-dev/espalier/page"
)

// Pages are made while requests run, resources come and go, and objects make room for others.
func TestPagesAreMadeWhileRequestsRun(t *testing.T) {
	p, reconcile := crowd(t, page.Options{Access: page.OnLoopback(), MaxResources: 50})
	var all gosync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				reconcile(worker*25 + i%100)
			}
		})
		all.Go(func() {
			for i := range 50 {
				for _, path := range []string{
					"", "root?root=configmap", "dump",
					fmt.Sprintf("resource?root=configmap&namespace=default&name=%05d", i),
				} {
					if a := serve(t, p, path); a.StatusCode != 200 && a.StatusCode != 404 {
						t.Errorf("GET %s: %s", path, a.Status)
					}
				}
			}
		})
	}
	all.Wait()
	root := p.Overview().Roots[0]
	counted := 0
	for _, c := range root.Counts {
		counted += c.Count
	}
	if root.Resources != 50 || counted != 50 {
		t.Errorf("%d resources are known, and %d are counted, not 50", root.Resources, counted)
	}
}
