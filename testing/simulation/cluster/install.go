package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/testing/internal/crdfile"
)

// definitions returns those of the fields. Of two with one name the last counts.
func (e *Environment) definitions() ([]crdfile.Definition, error) {
	more := e.CRDInstallOptions
	optional := !e.ErrorIfCRDPathMissing && !more.ErrorIfPathMissing
	read, err := crdfile.Read(slices.Concat(e.CRDDirectoryPaths, more.Paths), optional)
	if err != nil {
		return nil, fmt.Errorf("CRDDirectoryPaths: %w", err)
	}
	var all []crdfile.Definition
	for _, d := range slices.Concat(e.CRDs, more.CRDs) {
		all = append(all, crdfile.Definition{CustomResourceDefinition: d.DeepCopy(), Source: "CRDs"})
	}
	for _, d := range read {
		all = slices.DeleteFunc(all, func(other crdfile.Definition) bool { return other.Name == d.Name })
		all = append(all, d)
	}
	return all, nil
}

// pollInterval is how often the start looks whether a definition is served.
const pollInterval = 10 * time.Millisecond

// install installs definitions and webhooks, and waits until the definitions are served.
func (e *Environment) install(definitions []crdfile.Definition) error {
	hooks := &e.WebhookInstallOptions
	// What it makes before it fails is removed as well.
	e.ends = append(e.ends, hooks.Cleanup)
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return fmt.Errorf("WebhookInstallOptions: %w", err)
	}
	errs := make([]error, len(definitions))
	var group sync.WaitGroup
	for i, d := range definitions {
		group.Go(func() {
			_, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{
				Scheme: e.Scheme, CRDs: []*apiextensionsv1.CustomResourceDefinition{d.CustomResourceDefinition},
				WebhookOptions: *hooks, PollInterval: pollInterval,
			})
			if err != nil {
				errs[i] = fmt.Errorf("install the CustomResourceDefinition of %s: %w", d.Source, err)
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := e.age(definitions); err != nil {
		return err
	}
	if err := hooks.Install(e.Config); err != nil {
		return fmt.Errorf("WebhookInstallOptions: %w", err)
	}
	return nil
}

// youth is how long an API server has a create of a custom resource wait after its definition was established, so that
// other API servers know the definition. There are no others.
const youth = 3 * time.Second

// age has the definitions be established for long enough.
func (e *Environment) age(definitions []crdfile.Definition) error {
	clients, err := clientset.NewForConfig(e.Config)
	if err != nil {
		return err
	}
	api := clients.ApiextensionsV1().CustomResourceDefinitions()
	for _, d := range definitions {
		// Controllers of the server write the status, too.
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			live, err := api.Get(context.Background(), d.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for i := range live.Status.Conditions {
				c := &live.Status.Conditions[i]
				if c.Type == apiextensionsv1.Established && time.Since(c.LastTransitionTime.Time) < youth {
					c.LastTransitionTime.Time = c.LastTransitionTime.Add(-youth)
				}
			}
			_, err = api.UpdateStatus(context.Background(), live, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for the CustomResourceDefinition of %s: %w", d.Source, err)
		}
	}
	return nil
}
